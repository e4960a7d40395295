"""Comparing two values place by place.

References are followed on both sides, so that moving an inline struct into a definition of its own is not a change. A
pair of definitions is entered once, so recursive types end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kubewright.ir.types import (
    Absent,
    Constraints,
    Definition,
    EmbeddedObject,
    Field,
    ListOf,
    MapOf,
    RawJson,
    Ref,
    Rule,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.location import Location
from kubewright.tools.diff.meaning import meaning

Finding = tuple[str, str, str, Location]
"""Code, path, message, where it is now."""

_OLD: Final = re.compile(r"oldSelf(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_TOLD_ELSEWHERE: Final = frozenset(
    {"x-kubernetes-preserve-unknown-fields", "title", "example", "examples", "externalDocs"}
)
"""D222 and D257 tell of the first; the others are prose."""

_UPPER: Final = (
    ("maximum", "maximum"),
    ("maxLength", "max_length"),
    ("maxItems", "max_items"),
    ("maxProperties", "max_properties"),
)
_LOWER: Final = (
    ("minimum", "minimum"),
    ("minLength", "min_length"),
    ("minItems", "min_items"),
    ("minProperties", "min_properties"),
)


@dataclass(slots=True)
class Comparison:
    """One comparison of two states; ``old`` and ``new`` hold the definitions of each by name."""

    old: Mapping[str, Definition]
    new: Mapping[str, Definition]
    documentation: bool = False
    _entered: set[tuple[str, str]] = field(default_factory=set)

    def values(self, path: str, old: Value, new: Value) -> Iterator[Finding]:
        """What changed from ``old`` to ``new``, here and below."""
        pair = (_name(old), _name(new))
        if all(pair):
            if pair in self._entered or (pair[0] == pair[1] and self.old is self.new):
                return
            self._entered.add((pair[0], pair[1]))
        was, now = _follow(old, self.old), _follow(new, self.new)
        where = new.location
        yield from self._here(path, old, new, where)
        if was is not old or now is not new:
            yield from self._here(path, was, now, where, of_definition=True)
        yield from self._types(path, was.type, now.type, where)

    def _here(
        self, path: str, old: Value, new: Value, where: Location, *, of_definition: bool = False
    ) -> Iterator[Finding]:
        if old.nullable and not new.nullable:
            yield "D206", path, "null is no longer accepted", where
        elif new.nullable and not old.nullable:
            yield "D207", path, "may now be null", where
        yield from _defaults(path, old, new, where)
        yield from _constraints(path, old.constraints, new.constraints, where)
        if not of_definition:
            yield from _merge(path, old, new, where)
        yield from _extensions(path, old, new, where)
        if self.documentation and _is_retold(old, new):
            yield "D259", path, "is described otherwise", where

    def _types(self, path: str, old: Type, new: Type, where: Location) -> Iterator[Finding]:
        if isinstance(old, EmbeddedObject) != isinstance(new, EmbeddedObject):
            now_whole = isinstance(new, EmbeddedObject)
            said = "a full object (apiVersion, kind, metadata) is " + (
                "now required" if now_whole else "no longer required"
            )
            yield ("D226" if now_whole else "D252"), path, said, where
        was = old.body if isinstance(old, EmbeddedObject) else old
        now = new.body if isinstance(new, EmbeddedObject) else new
        if isinstance(was, Struct) and isinstance(now, Struct):
            yield from self._structs(path, was, now, where)
        elif isinstance(was, ListOf) and isinstance(now, ListOf):
            yield from self.values(f"{path}[]", was.items, now.items)
        elif isinstance(was, MapOf) and isinstance(now, MapOf):
            yield from self.values(f"{path}{{}}", was.values, now.values)
        elif isinstance(was, Scalar) and isinstance(now, Scalar) and was.primitive is now.primitive:
            if was.format != now.format:
                widened = (was.format, now.format) in (("int32", "int64"), ("float", "double"))
                said = f'format changed from "{was.format}" to "{now.format}"'
                yield (
                    "D203",
                    path,
                    said + (" (readers of the narrow form overflow)" if widened else ""),
                    where,
                )
        elif isinstance(was, Struct) and not was.fields and was.preserve_unknown and isinstance(now, RawJson):
            return
        elif type(was) is not type(now) or was != now:
            yield "D202", path, f"type changed from {describe(was)} to {describe(now)}", where

    def _structs(self, path: str, old: Struct, new: Struct, where: Location) -> Iterator[Finding]:
        before = {f.wire_name: f for f in old.fields}
        after = {f.wire_name: f for f in new.fields}
        for name, was in before.items():
            below = f"{path}.{name}" if path else name
            if name not in after:
                if new.preserve_unknown or new.extra is not None:
                    yield "D232", below, "field no longer described; its value is kept", where
                else:
                    yield "D201", below, "field removed", where
                continue
            now = after[name]
            if now.required and not was.required:
                if isinstance(now.value.default, Absent):
                    yield "D204", below, "is now required", now.value.location
            elif was.required and not now.required:
                yield "D252", below, "is no longer required", now.value.location
            yield from self.values(below, was.value, now.value)
        for name, added in after.items():
            if name not in before:
                yield from self._added(f"{path}.{name}" if path else name, added)
        if old.preserve_unknown and not new.preserve_unknown:
            yield "D222", path, "unknown fields were kept and are pruned now", where
        elif new.preserve_unknown and not old.preserve_unknown:
            yield "D257", path, "unknown fields are kept now", where
        if old.extra is not None and new.extra is not None:
            yield from self.values(f"{path}{{}}", old.extra, new.extra)
        elif old.extra is not None:
            yield "D229", path, "additional fields are no longer accepted", where
        elif new.extra is not None:
            yield "D260", path, "additional fields are accepted now", where

    def _added(self, path: str, added: Field) -> Iterator[Finding]:
        if added.required and isinstance(added.value.default, Absent):
            yield "D205", path, "required field added", added.value.location
        else:
            yield "D251", path, "field added", added.value.location
            if not isinstance(added.value.default, Absent):
                yield "D210", path, f"added with the default {added.value.default!r}", added.value.location


def _name(value: Value) -> str:
    return value.type.name if isinstance(value.type, Ref) else ""


def _follow(value: Value, definitions: Mapping[str, Definition]) -> Value:
    seen: set[str] = set()
    while isinstance(value.type, Ref) and value.type.name in definitions and value.type.name not in seen:
        seen.add(value.type.name)
        value = definitions[value.type.name].value
    return value


def _defaults(path: str, old: Value, new: Value, where: Location) -> Iterator[Finding]:
    if isinstance(old.default, Absent):
        if not isinstance(new.default, Absent):
            yield "D210", path, f"has the default {new.default!r} now", where
    elif isinstance(new.default, Absent):
        yield "D209", path, f"has no default any more (it was {old.default!r})", where
    elif old.default != new.default or type(old.default) is not type(new.default):
        yield "D208", path, f"default changed from {old.default!r} to {new.default!r}", where


def _constraints(path: str, old: Constraints, new: Constraints, where: Location) -> Iterator[Finding]:
    yield from _enums(path, old.enum, new.enum, where)
    for names, tighter in ((_UPPER, _is_less), (_LOWER, _is_more)):
        for shown, attribute in names:
            was, now = getattr(old, attribute), getattr(new, attribute)
            if was != now:
                code = "D214" if tighter(now, was) else "D253"
                yield code, path, f"{shown} changed from {_said(was)} to {_said(now)}", where
    for shown, attribute in (
        ("exclusiveMinimum", "exclusive_minimum"),
        ("exclusiveMaximum", "exclusive_maximum"),
    ):
        if getattr(old, attribute) != getattr(new, attribute):
            yield ("D214" if getattr(new, attribute) else "D253"), path, f"{shown} changed", where
    if old.multiple_of != new.multiple_of:
        code = "D253" if new.multiple_of is None else "D214"
        yield (
            code,
            path,
            f"multipleOf changed from {_said(old.multiple_of)} to {_said(new.multiple_of)}",
            where,
        )
    if new.unique_items and not old.unique_items:
        yield "D230", path, "items must be unique now", where
    elif old.unique_items and not new.unique_items:
        yield "D253", path, "items need not be unique any more", where
    if old.pattern != new.pattern:
        code = "D216" if not old.pattern else "D254" if not new.pattern else "D215"
        yield code, path, f"pattern changed from {_said(old.pattern)} to {_said(new.pattern)}", where
    for shown, attribute in (
        ("allOf", "all_of"),
        ("anyOf", "any_of"),
        ("oneOf", "one_of"),
        ("not", "negated"),
    ):
        was, now = getattr(old, attribute), getattr(new, attribute)
        if was != now:
            yield "D227", path, f"{shown} changed: {_alternatives(was, now)}", where
    yield from _rules(path, old.rules, new.rules, where)


def _alternatives(was: Any, now: Any) -> str:
    """Which schemas of a list are new and which are gone."""
    before, after = (
        [*given] if isinstance(given, tuple) else [given] if given else [] for given in (was, now)
    )
    added = [item for item in after if item not in before]
    gone = [item for item in before if item not in after]
    if not added and not gone:
        return "the order"
    parts = []
    for word, items in (("removed", gone), ("added", added)):
        if items:
            shown = ", ".join(json.dumps(item, sort_keys=True, default=str) for item in items[:3])
            more = f" and {len(items) - 3} more" if len(items) > 3 else ""
            parts.append(f"{word} {shown}{more}")
    return "; ".join(parts)


def _enums(path: str, old: tuple[Any, ...], new: tuple[Any, ...], where: Location) -> Iterator[Finding]:
    if old and not new:
        yield "D255", path, "any value is accepted now", where
    elif new and not old:
        yield "D213", path, f"only {', '.join(map(repr, new))} are accepted now", where
    else:
        for value in old:
            if value not in new:
                yield "D211", path, f"enum value {value!r} removed", where
        for value in new:
            if value not in old:
                yield "D212", path, f"enum value {value!r} added", where


def _rules(path: str, old: tuple[Rule, ...], new: tuple[Rule, ...], where: Location) -> Iterator[Finding]:
    before, after = {meaning(r.rule): r for r in old}, {meaning(r.rule): r for r in new}
    for key, rule in after.items():
        text = rule.rule
        if key not in before:
            frozen = _frozen(text)
            if frozen is not None:
                yield "D225", f"{path}{frozen}", "cannot be changed any more once set", where
            else:
                yield "D223", path, f"rule added: {text}", where
        elif replace(rule, rule=before[key].rule) != before[key]:
            code = "D224" if rule.optional_old_self != before[key].optional_old_self else "D258"
            yield code, path, f"rule answers otherwise: {text}", where
    for key, gone in before.items():
        text = gone.rule
        if key not in after:
            thawed = _frozen(text)
            if thawed is not None:
                yield "D231", f"{path}{thawed}", "may be changed now", where
            else:
                yield "D256", path, f"rule removed: {text}", where


def _frozen(rule: str) -> str | None:
    """Of a rule that forbids every change of a value: the path below ``self``; ``None`` of any other."""
    sides = rule.split("==")
    if len(sides) != 2:
        return None
    left, right = sorted(side.strip() for side in sides)
    is_frozen = _OLD.match(left) is not None and left.removeprefix("oldSelf") == right.removeprefix("self")
    return left.removeprefix("oldSelf") if is_frozen else None


def _merge(path: str, old: Value, new: Value, where: Location) -> Iterator[Finding]:
    was, now = old.merge, new.merge
    if was.list_type is not now.list_type:
        yield "D217", path, f"list type changed from {was.list_type.value} to {now.list_type.value}", where
    elif was.list_map_keys != now.list_map_keys:
        keys = (", ".join(was.list_map_keys), ", ".join(now.list_map_keys))
        yield "D218", path, f"list map keys changed from {keys[0]} to {keys[1]}", where
    if was.map_type is not now.map_type:
        yield "D219", path, f"map type changed from {was.map_type.value} to {now.map_type.value}", where
    if isinstance(old.type, Scalar) and isinstance(new.type, Scalar):
        return  # strategic merge replaces a scalar, whatever a marker next to it says
    if was.patch_strategy != now.patch_strategy:
        said = [",".join(s.value for s in m.patch_strategy) or "none" for m in (was, now)]
        yield "D220", path, f"patch strategy changed from {said[0]} to {said[1]}", where
    if was.patch_merge_key != now.patch_merge_key:
        yield (
            "D221",
            path,
            f'patch merge key changed from "{was.patch_merge_key}" to "{now.patch_merge_key}"',
            where,
        )


def _is_retold(old: Value, new: Value) -> bool:
    prose = [{k: v for k, v in value.extensions if k in _TOLD_ELSEWHERE} for value in (old, new)]
    return old.doc != new.doc or prose[0] != prose[1]


def _extensions(path: str, old: Value, new: Value, where: Location) -> Iterator[Finding]:
    before, after = dict(old.extensions), dict(new.extensions)
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now or name in _TOLD_ELSEWHERE:
            continue
        if name == "readOnly":
            yield (
                ("D262", path, "is read-only now", where)
                if now
                else ("D261", path, "may be written now", where)
            )
        elif name == "deprecated":
            yield (
                ("D263", path, "is deprecated", where)
                if now
                else ("D264", path, "is no longer deprecated", where)
            )
        else:
            yield "D228", path, f"{name} changed from {_said(was)} to {_said(now)}", where


def _is_less(now: Any, was: Any) -> bool:
    return now is not None and (was is None or now < was)


def _is_more(now: Any, was: Any) -> bool:
    return now is not None and (was is None or now > was)


def _said(value: Any) -> str:
    return "none" if value is None or value == "" else f'"{value}"' if isinstance(value, str) else str(value)


def describe(kind: Type) -> str:
    """A type in a few words."""
    if isinstance(kind, Scalar):
        return f"{kind.primitive.value} ({kind.format})" if kind.format else kind.primitive.value
    names = {
        Struct: "object",
        ListOf: "list",
        MapOf: "map",
        RawJson: "any",
        EmbeddedObject: "embedded object",
    }
    return names.get(type(kind)) or (kind.name if isinstance(kind, Ref) else type(kind).__name__)
