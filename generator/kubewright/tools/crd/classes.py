"""Typed Python classes that say a CustomResourceDefinition: what ``source.python_classes`` reads, the other way.

The law of both: the definition of the classes is the definition that they were written from. What types say is in the
type, what markers say in ``Annotated``, prose in docstrings; what neither has a word for is in
``Meta(extra_json_schema=…)``, as it was.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubewright.emit.code.names import RESERVED_CLASSES, attribute_names, camel, class_name
from kubewright.emit.code.render import literal
from kubewright.ir.types import Json
from kubewright.ir.words import plural_of
from kubewright.tools.crd.inlining import UndefinableError

_HEAD: Final = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
_PYTHON: Final = {"string": str, "integer": int, "boolean": bool}
_LENGTHS: Final = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "object": ("minProperties", "maxProperties"),
}
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_VALIDATIONS: Final = "x-kubernetes-validations"
_RULE: Final = {
    "rule": "rule",
    "message": "message",
    "messageExpression": "message_expression",
    "reason": "reason",
    "fieldPath": "field_path",
    "optionalOldSelf": "optional_old_self",
}
_COLUMN: Final = ("name", "jsonPath", "type", "format", "description", "priority")
_FROM_MARKERS: Final = (
    *("CelRule", "Column", "Default", "EmbeddedResource", "FormatName", "ListMerge", "MapMerge"),
    *("PreserveUnknown", "ScalePaths", "kind", "rules"),
)
_FROM_TYPING: Final = ("Annotated", "Any", "Literal")
_FROM_MSGSPEC: Final = ("UNSET", "Meta", "Struct", "UnsetType", "field")
_TAKEN: Final = RESERVED_CLASSES | {*_FROM_MARKERS, *_FROM_TYPING, *_FROM_MSGSPEC}
_WIDTH: Final = 100


def classes_of(manifests: Iterable[Json]) -> str:
    """A module of msgspec Structs for definitions: one for each version, and one for each object in it. Raises
    ``UndefinableError`` for what no class says."""
    module = _Module()
    for manifest in manifests:
        for number, version in enumerate(manifest["spec"]["versions"]):
            module.kind(manifest, version, first=not number)
    return module.text()


@dataclass(slots=True)
class _Module:
    classes: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    known: dict[str, str] = field(default_factory=dict)
    """By their schemas."""

    def text(self) -> str:
        body = "\n\n\n".join(self.classes) + "\n"
        imports = [
            f"from {module} import {', '.join(used)}"
            for module, names in (
                ("typing", _FROM_TYPING),
                ("msgspec", _FROM_MSGSPEC),
                ("apimachinery.typed.markers", _FROM_MARKERS),
            )
            if (used := [name for name in names if _uses(body, name)])
        ]
        return "from __future__ import annotations\n\n" + "\n\n".join(imports) + f"\n\n\n{body}"

    def kind(self, manifest: Json, version: Json, *, first: bool) -> None:
        """Adds the class of one version of a kind."""
        spec = manifest["spec"]
        kind, schema = spec["names"]["kind"], dict(version["schema"]["openAPIV3Schema"])
        name = self._free(class_name(kind if first else f"{kind} {version['name']}"))
        fields = dict(schema.get("properties") or {})
        asked = {*schema.get("required", ())} & _HEAD.keys()
        nodes = {key: fields.pop(key, node) for key, node in _HEAD.items()}
        head = {key: node for key, node in nodes.items() if node != _HEAD[key] or key in asked}
        extra: Json = {"properties": head} if head else {}
        if asked:
            extra["required"] = schema["required"]
        if "description" in schema and not _is_docstring(schema["description"]):
            extra["description"] = schema["description"]
        own = {"type", "description", "properties", "required", _VALIDATIONS}
        extra |= {key: schema[key] for key in schema if key not in own}
        said = dict(_said_of_kind(manifest, version, name, first=first, has_status="status" in fields))
        if extra:
            said["extra_json_schema"] = literal(extra)
        arguments = "".join(f"    {key}={value},\n" for key, value in said.items())
        self._write(
            name,
            {**schema, "properties": fields},
            f"{name} ",
            decorators=[f"@kind(\n{arguments})"],
            prefix=kind,
        )

    def _free(self, name: str) -> str:
        free, count = name, 2
        while free in self.names or free in _TAKEN:
            free, count = f"{name}{count}", count + 1
        self.names.add(free)
        return free

    def _class(self, node: Json, name: str, outer: str) -> str:
        """The name of the class of an object with fields; equal ones have one."""
        parts = {
            key: node[key] for key in ("description", "properties", "required", _VALIDATIONS) if key in node
        }
        known = json.dumps(parts, sort_keys=True)
        if known not in self.known:
            plain = class_name(name)
            taken = plain in self.names or plain in _TAKEN
            self.known[known] = self._free(class_name(f"{outer} {name}") if taken else plain)
            self._write(self.known[known], node, name, decorators=[], prefix=outer)
        return self.known[known]

    def _write(self, name: str, node: Json, path: str, *, decorators: list[str], prefix: str) -> None:
        properties: Mapping[str, Json] = node.get("properties") or {}
        required = {*(node.get("required") or ())}
        attributes = attribute_names(properties, {"field"})
        told: dict[str, str] = {}
        lines = []
        for wire, given in properties.items():
            if any(each in wire for each in '"\\') or not wire.isprintable():
                raise UndefinableError(f"the field {wire!r} is no name of a field in Python")
            child = dict(given)
            words = child.get("description", "")
            if words and "properties" not in child and _is_one_line(words):
                told[attributes[wire]] = child.pop("description")
            lines.append(self._field(attributes[wire], wire, child, wire in required, prefix))
        description = node.get("description", "")
        parts = [f'class {name}(Struct, rename="camel", kw_only=True):']
        parts += _docstring(description if _is_docstring(description) else "", told)
        if validations := [_rule(each) for each in node.get(_VALIDATIONS) or () if {*each} <= _RULE.keys()]:
            decorators = ["@rules(\n" + "".join(f"    {each},\n" for each in validations) + ")", *decorators]
        body = "\n".join(f"    {line}" for line in lines) or ("" if len(parts) > 1 else "    pass")
        self.classes.append("\n".join([*decorators, *parts, *([body] if body else [])]))

    def _field(self, attribute: str, wire: str, node: Json, required: bool, outer: str) -> str:
        default = node.pop("default", _NOTHING)
        nullable = node.pop("nullable", False)
        scalar = _PYTHON.get(node.get("type", ""), float if node.get("type") == "number" else None)
        plain = (
            not required
            and scalar is not None
            and type(default) in (scalar, int if scalar is float else scalar)
        )
        kind = self._type(node, wire, outer, [] if plain or default is _NOTHING else [default])
        value = literal(default) if plain else ""
        if nullable and not required:
            kind, value = f"{kind} | UnsetType | None", value or "UNSET"
        elif nullable or (not required and not plain):
            kind, value = f"{kind} | None", value or ("" if required else "None")
        if camel(attribute) != wire:
            given = f", default={value}" if value else ""
            value = f"field(name={literal(wire)}{given})"
        return f"{attribute}: {kind}" + (f" = {value}" if value else "")

    def _inner(self, given: Json, name: str, outer: str) -> str:
        node = dict(given)
        default = node.pop("default", _NOTHING)
        nullable = node.pop("nullable", False)
        kind = self._type(node, name, outer, [] if default is _NOTHING else [default])
        return f"{kind} | None" if nullable else kind

    def _type(self, node: Json, name: str, outer: str, defaults: Sequence[Json]) -> str:
        """The type of a node, with what it does not say in ``Annotated``."""
        rest = dict(node)
        base = self._base(rest, name, outer)
        markers = [*_markers(rest, node.get("type", "")), *(f"Default({literal(each)})" for each in defaults)]
        return f"Annotated[{', '.join([base, *markers])}]" if markers else base

    def _base(self, rest: dict[str, Json], name: str, outer: str) -> str:
        """The type of a node; takes out of ``rest`` what it says."""
        kind = rest.get("type", "")
        if not kind and rest.get("x-kubernetes-int-or-string"):
            del rest["x-kubernetes-int-or-string"]
            return "int | str"
        if not kind and rest.get(_UNKNOWN):
            del rest[_UNKNOWN]
            return "Any"
        if not kind:
            raise UndefinableError(f"{name} has no type")
        del rest["type"]
        if kind in _SCALARS:
            if _is_literal(rest.get("enum"), kind):
                return f"Literal[{', '.join(map(literal, rest.pop('enum')))}]"
            return _SCALARS[kind]
        if kind == "array":
            return f"list[{self._inner(rest.pop('items'), name, outer)}]"
        if isinstance(rest.get("additionalProperties"), dict):
            values = rest["additionalProperties"]
            inner = self._inner(values, name, outer)
            del rest["additionalProperties"]
            # A map of any value is a type of its own, without them.
            return f"dict[str, {'Annotated[Any, PreserveUnknown()]' if inner == 'Any' else inner}]"
        if "properties" not in rest and rest.get(_UNKNOWN):
            del rest[_UNKNOWN]
            return "dict[str, Any]"
        made = self._class(rest, name, outer)
        described = rest.pop("description", "")
        rest.pop("properties", None)
        rest.pop("required", None)
        rules = rest.pop(_VALIDATIONS, [])
        if described and not _is_docstring(described):
            rest["description"] = described
        if any(not {*each} <= _RULE.keys() for each in rules):
            raise UndefinableError(f"{name} has a rule with other words than {', '.join(_RULE)}")
        return made


_NOTHING: Final = object()


def _uses(body: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", body) is not None


def _said_of_kind(
    manifest: Json, version: Json, name: str, *, first: bool, has_status: bool
) -> Iterator[tuple[str, str]]:
    """The arguments of ``@kind``, those that are not as they mostly are."""
    spec, names = manifest["spec"], manifest["spec"]["names"]
    kind = names["kind"]
    yield "group", literal(spec["group"])
    yield "version", literal(version["name"])
    usual = {
        "kind": name,
        "plural": plural_of(kind),
        "singular": kind.lower(),
        "listKind": f"{kind}List",
        "shortNames": [],
        "categories": [],
    }
    for key, expected in usual.items():
        if names.get(key, expected) != expected:
            yield {"listKind": "list_kind", "shortNames": "short_names"}.get(key, key), literal(names[key])
    if spec["scope"] != "Namespaced":
        yield "scope", literal(spec["scope"])
    subresources = version.get("subresources") or {}
    if ("status" in subresources) != has_status:
        yield "status", literal("status" in subresources)
    if scale := subresources.get("scale"):
        paths = {"specReplicasPath": "spec_replicas_path", "statusReplicasPath": "status_replicas_path"}
        paths |= {"labelSelectorPath": "label_selector_path"}
        given = ", ".join(f"{word}={literal(scale[key])}" for key, word in paths.items() if scale.get(key))
        yield "scale", f"ScalePaths({given})"
    if columns := version.get("additionalPrinterColumns"):
        yield "columns", f"[{', '.join(map(_column, columns))}]"
    if fields := version.get("selectableFields"):
        yield "selectable_fields", literal([each["jsonPath"] for each in fields])
    for key, expected in (("served", True), ("storage", True), ("deprecated", False)):
        if version.get(key, expected) != expected:
            yield key, literal(not expected)
    if version.get("deprecationWarning"):
        yield "deprecation_warning", literal(version["deprecationWarning"])
    for key in ("labels", "annotations") if first else ():
        if manifest["metadata"].get(key):
            yield key, literal(manifest["metadata"][key])
    if first and spec.get("conversion"):
        yield "conversion", literal(spec["conversion"])


def _column(column: Json) -> str:
    words = {"jsonPath": "json_path"}
    given = (f"{words.get(key, key)}={literal(column[key])}" for key in _COLUMN if key in column)
    return f"Column({', '.join(given)})"


def _rule(rule: Json) -> str:
    given = (f"{_RULE[key]}={literal(value)}" for key, value in rule.items())
    return f"CelRule({', '.join(given)})"


def _markers(rest: dict[str, Json], kind: str) -> Iterator[str]:
    """What ``Annotated`` says of a node besides its type."""
    if "x-kubernetes-list-type" in rest:
        keys = rest.pop("x-kubernetes-list-map-keys", None)
        word = literal(rest.pop("x-kubernetes-list-type"))
        yield f"ListMerge({word}, {literal(tuple(keys))})" if keys else f"ListMerge({word})"
    if "x-kubernetes-map-type" in rest:
        yield f"MapMerge({literal(rest.pop('x-kubernetes-map-type'))})"
    if "format" in rest:
        yield f"FormatName({literal(rest.pop('format'))})"
    if rest.get(_UNKNOWN) is True:
        del rest[_UNKNOWN]
        yield "PreserveUnknown()"
    if rest.get("x-kubernetes-embedded-resource") is True:
        del rest["x-kubernetes-embedded-resource"]
        yield "EmbeddedResource()"
    if all({*each} <= _RULE.keys() for each in rest.get(_VALIDATIONS, ())):
        yield from map(_rule, rest.pop(_VALIDATIONS, ()))
    said = dict(_bounds(rest, kind))
    said |= {key: rest.pop(key) for key in ("title", "description") if rest.get(key)}
    if rest:
        said["extra_json_schema"] = rest
    if said:
        yield f"Meta({', '.join(f'{key}={literal(value)}' for key, value in said.items())})"


def _bounds(rest: dict[str, Json], kind: str) -> Iterator[tuple[str, Json]]:
    if kind in ("integer", "number"):
        for key, exclusive, word, strict in (
            ("minimum", "exclusiveMinimum", "ge", "gt"),
            ("maximum", "exclusiveMaximum", "le", "lt"),
        ):
            if key in rest:
                yield strict if rest.pop(exclusive, False) else word, rest.pop(key)
        if rest.get("multipleOf", 0) > 0:
            yield "multiple_of", rest.pop("multipleOf")
    if kind == "string" and _compiles(rest.get("pattern")):
        yield "pattern", rest.pop("pattern")
    for key, word in zip(_LENGTHS.get(kind, ()), ("min_length", "max_length"), strict=False):
        if rest.get(key, -1) >= 0:
            yield word, rest.pop(key)


def _compiles(pattern: str | None) -> bool:
    """Whether a pattern of Go is one of Python too, without a doubt: msgspec compiles it."""
    if pattern is None:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(pattern)
        except (re.error, Warning, OverflowError, RecursionError):
            return False
    return True


def _is_literal(values: Any, kind: str) -> bool:
    return (
        isinstance(values, list)
        and bool(values)
        and kind in _PYTHON
        and all(type(each) is _PYTHON[kind] for each in values)
        and len({*values}) == len(values)
    )


def _is_one_line(text: str) -> bool:
    return " ".join(text.split()) == text


def _is_docstring(text: str) -> bool:
    """Whether a docstring gives a text back as it is."""
    if not text or "\nFields:\n" in f"\n{text}\n" or inspect.cleandoc(text).strip() != text:
        return False
    return _is_one_line(text) or "\n\n" in text


def _docstring(description: str, told: Mapping[str, str]) -> list[str]:
    """The lines of a class's docstring: its own text, and those of its fields."""
    lines = description.split("\n") if description else []
    if told:
        lines += ["", "Fields:"]
        for attribute, text in told.items():
            lines += textwrap.wrap(
                f"{attribute}: {text}",
                _WIDTH,
                initial_indent="    ",
                subsequent_indent="        ",
                break_long_words=False,
                break_on_hyphens=False,
            )
    if not lines:
        return []
    text = "\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = text.removesuffix('"') + '\\"' if text.endswith('"') else text
    shown = "\n".join(f"    {line}" if line else "" for line in text.split("\n")).removeprefix("    ")
    return [f'    """{shown}"""', ""] if "\n" not in shown else [f'    """{shown}', '    """', ""]
