"""A field of one version of a CRD renamed, or one string cut in several: the schema and all that names the field by its
path, which are defaults around it, printer columns, selectable fields, paths of scale, and CEL rules."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from apimachinery.conversion.moves import move, split
from kubewright.tools.scaffold.writing import RefusedError

Json = dict[str, Any]
_PATH = re.compile(r"[A-Za-z_][\w-]*(?:\[\*\])?(?:\.[A-Za-z_][\w-]*(?:\[\*\])?)*")
_ROOTS = ("apiVersion", "kind", "metadata", "status")
_CEL_TEXTS = ("rule", "messageExpression", "fieldPath")
_OF_TEXT = ("pattern", "enum", "format", "minLength")


class FieldPath:
    """A path such as ``spec.stores[*].address``: ``parent`` leads to the struct, ``name`` is its field."""

    def __init__(self, text: str) -> None:
        if not _PATH.fullmatch(text) or text.endswith("]"):
            raise RefusedError(
                f"{text!r} is no path of a field", "such as spec.mode, or spec.stores[*].address"
            )
        if text.partition(".")[0].partition("[")[0] in _ROOTS[:3]:
            raise RefusedError(f"{text} is the same in every version of every kind")
        self.text = text
        self.parent, _, self.name = text.rpartition(".")

    def beside(self, text: str) -> FieldPath:
        """Another field, which must be of the same struct. Raises ``RefusedError``."""
        other = FieldPath(text)
        if other.parent != self.parent:
            raise RefusedError(
                f"{other.text} is not next to {self.text}", f"a field stays in its struct: {self.parent}.NAME"
            )
        return other


def rename_in(entry: Json, old: FieldPath, new: FieldPath, place: str) -> Json:
    """An entry of ``spec.versions`` after the field is called otherwise. Raises ``RefusedError``."""
    changed: Json = copy.deepcopy(entry)
    holder, listed = _holder(changed, old, place)
    _is_free(holder, new, place)
    inner = holder["properties"][old.name]
    if isinstance(inner, dict) and isinstance(inner.get("description"), str):
        inner["description"] = re.sub(rf"^{re.escape(old.name)}\b", new.name, inner["description"])
    _exchange(holder, old.name, {new.name: inner}, [new.name])
    keys = listed.get("x-kubernetes-list-map-keys")
    if isinstance(keys, list):
        listed["x-kubernetes-list-map-keys"] = [new.name if key == old.name else key for key in keys]
    _follow(changed, old, new.name, lambda value, here, there: move(value, here, there))
    return changed


def split_in(entry: Json, old: FieldPath, parts: list[FieldPath], separator: str, place: str) -> Json:
    """An entry of ``spec.versions`` after one string is cut in several. Raises ``RefusedError``."""
    changed: Json = copy.deepcopy(entry)
    holder, listed = _holder(changed, old, place)
    inner = holder["properties"][old.name]
    if not isinstance(inner, dict) or inner.get("type") != "string":
        raise RefusedError(f"{place}: {old.text} is no string", "only a string is split")
    told = [word for word in _OF_TEXT if word in inner]
    if told:
        raise RefusedError(
            f"{place}: {old.text} has {', '.join(told)}, which says nothing of its parts",
            "take it out of the new version's field first, and write what holds for the parts afterwards",
        )
    if old.name in listed.get("x-kubernetes-list-map-keys", ()):
        raise RefusedError(f"{place}: {old.text} is a key of its list", "a key is not split")
    for part in parts:
        _is_free(holder, part, place)
    values: list[str] = []
    if isinstance(inner.get("default"), str):
        values = inner["default"].split(separator, len(parts) - 1)
    schemas = {}
    for index, part in enumerate(parts):
        schema: Json = {"type": "string", "description": _described(index, len(parts), part, old, separator)}
        schema |= {word: inner[word] for word in ("maxLength", "nullable") if word in inner}
        if index < len(parts) - 1 and len(separator) == 1:
            schema["pattern"] = f"^[^{re.escape(separator)}]*$"  # else joining would give other parts
        if index < len(values):
            schema["default"] = values[index]
        schemas[part.name] = schema
    _exchange(holder, old.name, schemas, [parts[0].name])

    def cut(value: Json, here: str, there: str) -> None:
        prefix = there.rpartition(".")[0]
        split(value, here, [f"{prefix}.{part.name}".lstrip(".") for part in parts], separator)

    _follow(changed, old, parts[0].name, cut, rules=False)
    return changed


def _described(index: int, number: int, part: FieldPath, old: FieldPath, separator: str) -> str:
    where = "before" if index == 0 else "behind" if index == number - 1 else "between"
    sign = f"the first {separator!r}" if index == 0 else f"{separator!r}"
    return f"{part.name} is what {old.name} has {where} {sign}."


def _schema(entry: Json) -> Json:
    schema = (entry.get("schema") or {}).get("openAPIV3Schema")
    return schema if isinstance(schema, dict) else {}


def _steps(path: str) -> list[str]:
    """The names on the way, ``*`` for every item of a list."""
    return [
        step
        for part in path.split(".")
        if part
        for step in (part.partition("[")[0], *("*" * part.count("[*]")))
    ]


def _holder(entry: Json, path: FieldPath, place: str) -> tuple[Json, Json]:
    """The schema of the struct that has the field, and that of the list whose items it is. Raises ``RefusedError``."""
    node, above = _schema(entry), {}
    way = ""
    for step in _steps(path.parent):
        inner = node.get("items") if step == "*" else (node.get("properties") or {}).get(step)
        if not isinstance(inner, dict):
            raise RefusedError(f"{place}: there is no {path.parent}", _near(step, node, way))
        above, node = (node if step == "*" else {}), inner
        way = f"{way}[*]" if step == "*" else f"{way}.{step}".lstrip(".")
    if path.name not in (node.get("properties") or {}):
        raise RefusedError(f"{place}: there is no {path.text}", _near(path.name, node, way))
    return node, above


def _near(name: str, node: Json, way: str) -> str:
    known = sorted(node.get("properties") or ())
    close = get_close_matches(name, known, 1)
    if close:
        return f"did you mean {f'{way}.{close[0]}'.lstrip('.')}?"
    return f"{way or 'the kind'} has {', '.join(known) or 'no fields'}"


def _is_free(holder: Json, path: FieldPath, place: str) -> None:
    if path.name in holder["properties"]:
        raise RefusedError(f"{place}: {path.text} is there already", "take another name", 1)


def _exchange(holder: Json, old: str, new: Json, required: list[str]) -> None:
    """Puts other properties in the place of one."""
    holder["properties"] = {
        name: schema
        for key, value in holder["properties"].items()
        for name, schema in (new.items() if key == old else [(key, value)])
    }
    if old in (holder.get("required") or ()):
        holder["required"] = [
            name for each in holder["required"] for name in (required if each == old else [each])
        ]


def _follow(entry: Json, old: FieldPath, new: str, change: Any, *, rules: bool = True) -> None:
    """Changes what names the field by its path."""
    steps = _steps(old.text)
    plain = "".join(r"\[[^\]]*\]" if step == "*" else rf"\.{re.escape(step)}" for step in steps)
    json_path = re.compile(rf"^({plain[: plain.rindex(re.escape(old.name))]}){re.escape(old.name)}(?![\w-])")

    def renamed(holder: Json, word: str) -> None:
        if isinstance(holder.get(word), str):
            holder[word] = json_path.sub(lambda found: found[1] + new, holder[word])

    for column in [*(entry.get("additionalPrinterColumns") or ()), *(entry.get("selectableFields") or ())]:
        renamed(column, "jsonPath")
    scale = (entry.get("subresources") or {}).get("scale") or {}
    for word in [*scale]:
        renamed(scale, word)
    for node, below in _around(_schema(entry), steps):
        there = f"{below.rpartition('.')[0]}.{new}".lstrip(".")
        if isinstance(node.get("default"), dict):
            change(node["default"], below, there)
        for rule in (node.get("x-kubernetes-validations") or ()) if rules and "*" not in below else ():
            _rename_in_rule(rule, below, there)


def _rename_in_rule(rule: Json, old: str, new: str) -> None:
    """Changes a CEL rule where it names a field by its path from ``self``."""
    for word in _CEL_TEXTS:
        if isinstance(rule.get(word), str):
            begin = "^" if word == "fieldPath" else r"\b(?:self|oldSelf)"
            rule[word] = re.sub(rf"({begin})\.{re.escape(old)}(?!\w)", rf"\g<1>.{new}", rule[word])


def _around(schema: Json, steps: list[str]) -> Iterator[tuple[Json, str]]:
    """The schemas that the way to a field leads through, each with the rest of the way."""
    node = schema
    for index, step in enumerate(steps):
        rest = ""
        for each in steps[index:]:
            rest += "[*]" if each == "*" else f".{each}"
        if not rest.startswith("["):
            yield node, rest.lstrip(".")
        inner = node.get("items") if step == "*" else (node.get("properties") or {}).get(step)
        if not isinstance(inner, dict):
            return
        node = inner
