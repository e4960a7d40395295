"""What ``allOf``, ``anyOf``, ``oneOf`` and ``not`` of a place mean: which objects they refuse that passed before.

In structural schemas they carry validations alone, mostly which fields must be there together. So both states become
formulas over facts of an object: that a field is there, and that a value keeps some bound. If old objects can have such
facts that the old formula holds and the new one does not, that is an object refused now, and the finding shows it.
Facts that are no fields are taken as independent of each other, so an object shown may be none that can be written;
that nothing more is refused is certain. With more than ``MAX_FACTS`` facts nothing is decided.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, TypeAlias

from kubewright.ir.types import Absent, Constraints, EmbeddedObject, Struct, Value

MAX_FACTS: Final = 14
_PROSE: Final = frozenset({"description", "title", "example", "externalDocs", "default"})

Facts: TypeAlias = Mapping[str, bool]
Formula: TypeAlias = Callable[[Facts], bool]


@dataclass(slots=True)
class _Reading:
    """Collects the facts that formulas speak of. ``present`` are facts ``path`` for a field that is there; the others
    hold a path and what is said of its value."""

    present: dict[str, None] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)

    def whole(self, constraints: Constraints) -> Formula:
        """All four keywords of a place."""
        schema = {
            "allOf": constraints.all_of,
            "anyOf": constraints.any_of,
            "oneOf": constraints.one_of,
        }
        given: dict[str, Any] = {keyword: [*schemas] for keyword, schemas in schema.items() if schemas}
        if constraints.negated is not None:
            given["not"] = constraints.negated
        return self.schema(given, "")

    def schema(self, schema: Any, path: str) -> Formula:
        """What a schema says of the value at ``path``, which is there."""
        if not isinstance(schema, dict):
            return lambda facts: schema is not False
        parts: list[Formula] = []
        rest = {}
        for keyword, said in schema.items():
            if keyword == "required":
                parts += [self._there(f"{path}.{name}".lstrip(".")) for name in said]
            elif keyword == "properties":
                parts += [self._property(f"{path}.{name}".lstrip("."), sub) for name, sub in said.items()]
            elif keyword in ("allOf", "anyOf", "oneOf"):
                parts.append(_joined(keyword, [self.schema(sub, path) for sub in said]))
            elif keyword == "not":
                parts.append(_negated(self.schema(said, path)))
            elif keyword not in _PROSE:
                rest[keyword] = said
        if rest:
            parts.append(self._said(path, rest))
        return _joined("allOf", parts)

    def _property(self, path: str, schema: Any) -> Formula:
        there, held = self._there(path), self.schema(schema, path)
        return lambda facts: not there(facts) or held(facts)

    def _there(self, path: str) -> Formula:
        self.present[path] = None
        return lambda facts: facts[path]

    def _said(self, path: str, rest: dict[str, Any]) -> Formula:
        name = f"{path or 'it'} is {json.dumps(rest, sort_keys=True, default=str)}"
        self.others[name] = None
        return lambda facts: facts[name]


def _joined(keyword: str, parts: list[Formula]) -> Formula:
    if len(parts) == 1:
        return parts[0]
    if keyword == "allOf":
        return lambda facts: all(part(facts) for part in parts)
    if keyword == "anyOf":
        return lambda facts: any(part(facts) for part in parts)
    return lambda facts: sum(part(facts) for part in parts) == 1


def _negated(part: Formula) -> Formula:
    return lambda facts: not part(facts)


@dataclass(frozen=True, slots=True)
class LogicVerdict:
    """``refuses``: whether an object that passed may be refused, ``None`` where that is open; ``example`` shows one."""

    refuses: bool | None
    example: str = ""


def judge(old: Value, new: Value, follow: Callable[[Value], Value]) -> LogicVerdict:
    """Whether the logical keywords of ``new`` refuse what those of ``old`` let pass. ``follow`` resolves references of
    the old state."""
    reading = _Reading()
    before, after = reading.whole(old.constraints), reading.whole(new.constraints)
    facts = [*reading.present, *reading.others]
    choices = [_choices(path, old, follow) for path in reading.present] + [(False, True)] * len(
        reading.others
    )
    if sum(len(choice) > 1 for choice in choices) > MAX_FACTS:
        return LogicVerdict(None)
    # Few facts make the shortest example.
    for values in sorted(product(*choices), key=sum):
        assumed = dict(zip(facts, values, strict=True))
        if _is_possible(assumed, reading.present) and before(assumed) and not after(assumed):
            return LogicVerdict(True, _example(assumed, reading))
    return LogicVerdict(False)


def _choices(path: str, value: Value, follow: Callable[[Value], Value]) -> tuple[bool, ...]:
    """Whether a field can be there, and whether it can be missing, in an object of the old state."""
    *above, name = path.split(".")
    for word in above:
        found = _field(value, word, follow)
        if found is None:
            return (False, True)
        value = found.value
    body = _body(value, follow)
    if body is None or body.preserve_unknown or body.extra is not None:
        return (False, True)
    found = next((f for f in body.fields if f.wire_name == name), None)
    if found is None:
        return (False,)
    is_always = found.required or not isinstance(found.value.default, Absent)
    return (True,) if is_always and not above else (False, True)


def _field(value: Value, name: str, follow: Callable[[Value], Value]) -> Any:
    body = _body(value, follow)
    return next((f for f in body.fields if f.wire_name == name), None) if body is not None else None


def _body(value: Value, follow: Callable[[Value], Value]) -> Struct | None:
    kind = follow(value).type
    return kind if isinstance(kind, Struct) else kind.body if isinstance(kind, EmbeddedObject) else None


def _is_possible(assumed: Facts, present: Mapping[str, None]) -> bool:
    """Where a field is there, what is around it is too."""
    return not any(
        assumed[path] and above in assumed and not assumed[above]
        for path in present
        if (above := path.rpartition(".")[0])
    )


def _example(assumed: Facts, reading: _Reading) -> str:
    there = [path for path in reading.present if assumed[path]]
    missing = [path for path in reading.present if not assumed[path]]
    parts = []
    if there:
        parts.append(f"with {_listed(there)}")
    if missing and len(there) < 2:
        parts.append(f"without {_listed(missing)}")
    parts += [f"where {name}" for name in reading.others if assumed[name]][:2]
    parts += [f"where not {name}" for name in reading.others if not assumed[name]][:2]
    return ", ".join(parts)


def _listed(names: list[str]) -> str:
    shown = [*names[:4], f"{len(names) - 4} more"] if len(names) > 5 else names
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


# in words


def explained(constraints: Constraints) -> str:
    """What the logical keywords of a place say, where that is a choice of fields; empty otherwise."""
    if constraints.all_of or constraints.any_of or constraints.negated is not None:
        if not (constraints.any_of and not constraints.all_of and constraints.negated is None):
            return ""
        names = [_needs(schema) for schema in constraints.any_of]
        is_plain = all(names) and not constraints.one_of
        return f"at least one of {', '.join(map(str, names))}" if is_plain else ""
    names = [_needs(schema) for schema in constraints.one_of]
    plain = [name for name in names if name]
    others = [schema for schema, name in zip(constraints.one_of, names, strict=True) if not name]
    if plain and not others:
        return f"exactly one of {', '.join(plain)}"
    if plain and len(others) == 1 and _is_none(others[0], plain):
        return f"at most one of {', '.join(plain)}"
    return ""


def _needs(schema: Any) -> str:
    if isinstance(schema, dict) and {*schema} - _PROSE == {"required"}:
        return "+".join(schema["required"])
    return ""


def _is_none(schema: Any, plain: list[str]) -> bool:
    if not isinstance(schema, dict) or {*schema} - _PROSE != {"not"}:
        return False
    inner = schema["not"]
    schemas = inner.get("anyOf", [inner]) if isinstance(inner, dict) else []
    return {_needs(each) for each in schemas} == {*plain}


def described(old: Constraints, new: Constraints) -> str:
    """What changed, in words where both sides are choices of fields, else which schemas came and went."""
    before, after = explained(old), explained(new)
    is_empty = [not (c.all_of or c.any_of or c.one_of or c.negated is not None) for c in (old, new)]
    if (before or is_empty[0]) and (after or is_empty[1]):
        if is_empty[0]:
            return f"{after} is allowed now" if after.startswith("at most") else f"{after} is needed now"
        if is_empty[1]:
            return f"no longer {before}"
        return f"{after}; it was {before}"
    return "; ".join(_schemas(old, new))


def _schemas(old: Constraints, new: Constraints) -> Iterator[str]:
    for keyword, attribute in (
        ("allOf", "all_of"),
        ("anyOf", "any_of"),
        ("oneOf", "one_of"),
        ("not", "negated"),
    ):
        was, now = getattr(old, attribute), getattr(new, attribute)
        if was == now:
            continue
        before, after = ([*g] if isinstance(g, tuple) else [] if g is None else [g] for g in (was, now))
        gone = [item for item in before if item not in after]
        added = [item for item in after if item not in before]
        parts = [f"{word} {_shown(items)}" for word, items in (("removed", gone), ("added", added)) if items]
        yield f"{keyword} changed: {'; '.join(parts) or 'the order'}"


def _shown(items: list[Any]) -> str:
    shown = ", ".join(_short(json.dumps(item, sort_keys=True, default=str)) for item in items[:3])
    return shown + (f" and {len(items) - 3} more" if len(items) > 3 else "")


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117]}..."
