"""Comparing two values place by place.

References are followed on both sides, so that moving an inline struct into a definition of its own is not a change. A
pair of definitions is entered once, so recursive types end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kubewright.ir.types import (
    NO_CONSTRAINTS,
    Absent,
    Definition,
    EmbeddedObject,
    Field,
    IntOrString,
    ListOf,
    MapOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.location import Location
from kubewright.tools.diff.limits import keeps, limits, shown
from kubewright.tools.diff.logic import described, judge
from kubewright.tools.diff.rules import rules

Finding = tuple[str, str, str, Location]
"""Code, path, message, where it is now."""

_TOLD_ELSEWHERE: Final = frozenset(
    {"x-kubernetes-preserve-unknown-fields", "title", "example", "examples", "externalDocs"}
)
"""D222 and D257 tell of the first; the others are prose."""


@dataclass(slots=True)
class Comparison:
    """One comparison of two states; ``old`` and ``new`` hold the definitions of each by name."""

    old: Mapping[str, Definition]
    new: Mapping[str, Definition]
    documentation: bool = False
    _entered: set[tuple[str, str]] = field(default_factory=set)
    _around: list[str] = field(default_factory=list)
    """What the rules say that are at the places around."""

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
        self._around.append(" ".join(_ruled(each) for each in {id(v): v for v in (new, now)}.values()))
        yield from self._types(path, was.type, now.type, where)
        self._around.pop()

    def _here(
        self, path: str, old: Value, new: Value, where: Location, *, of_definition: bool = False
    ) -> Iterator[Finding]:
        if old.nullable and not new.nullable:
            yield "D206", path, "null is no longer accepted", where
        elif new.nullable and not old.nullable:
            yield "D207", path, "may now be null", where
        yield from self._defaults(path, old, new, where)
        kinds = self._follow_old(old).type, _follow(new, self.new).type
        if is_comparable(*kinds):
            for code, message in limits(old.constraints, new.constraints, *kinds):
                yield code, path, message, where
            yield from self._logic(path, old, new, where)
            for code, below, message in rules(old, new, self._follow_old):
                yield code, f"{path}{below}", message, where
        if not of_definition:
            yield from _merge(path, old, new, where)
        yield from _extensions(path, old, new, where)
        if self.documentation and _is_retold(old, new):
            yield "D259", path, "is described otherwise", where

    def _follow_old(self, value: Value) -> Value:
        return _follow(value, self.old)

    def _logic(self, path: str, old: Value, new: Value, where: Location) -> Iterator[Finding]:
        was, now = old.constraints, new.constraints
        if (was.all_of, was.any_of, was.one_of, was.negated) == (
            now.all_of,
            now.any_of,
            now.one_of,
            now.negated,
        ):
            return
        verdict, said = judge(old, new, self._follow_old), described(was, now)
        if verdict.refuses is False:
            yield "D266", path, said, where
        elif verdict.refuses is None:
            yield "D227", path, f"{said}; too much is said for it to be decided what is refused now", where
        else:
            yield "D227", path, f"{said}: refuses one {verdict.example or 'that it says nothing of'}", where

    def _defaults(self, path: str, old: Value, new: Value, where: Location) -> Iterator[Finding]:
        if isinstance(old.default, Absent):
            if not isinstance(new.default, Absent):
                yield self._default_added(path, f"has the default {new.default!r} now", new)
        elif isinstance(new.default, Absent):
            yield "D209", path, f"has no default any more (it was {old.default!r})", where
        elif old.default != new.default or type(old.default) is not type(new.default):
            yield "D208", path, f"default changed from {old.default!r} to {new.default!r}", where

    def _default_added(self, path: str, said: str, new: Value) -> Finding:
        name = re.escape(path.rpartition(".")[2])
        is_counted = bool(self._around) and "maxProperties" in self._around[-1].split()
        if is_counted or any(re.search(rf"\b{name}\b", text) for text in self._around):
            return "D234", path, f"{said}, and a rule around it speaks of it", new.location
        # Below the values of a map no server holds a default against its schema.
        if "{}" in path and not keeps(new.default, new):
            return "D234", path, f"{said}, which its own limits may refuse", new.location
        return "D210", path, said, new.location

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
        elif _is_same_scalar(was, now) or (_is_any_object(was) and isinstance(now, RawJson)):
            return
        elif type(was) is not type(now) or was != now:
            code = "D233" if widens(was, now) else "D202"
            yield code, path, f"type changed from {describe(was)} to {describe(now)}", where

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
            if now.required and not was.required and below != "metadata":  # every object has a name
                if isinstance(now.value.default, Absent):
                    yield "D204", below, "is now required", now.value.location
            elif was.required and not now.required:
                yield "D252", below, "is no longer required", now.value.location
            yield from self.values(below, was.value, now.value)
        for name, added in after.items():
            if name not in before:
                is_kept = old.preserve_unknown or old.extra is not None
                yield from self._added(f"{path}.{name}" if path else name, added, is_kept=is_kept)
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

    def _added(self, path: str, added: Field, *, is_kept: bool) -> Iterator[Finding]:
        value = added.value
        if added.required and isinstance(value.default, Absent):
            yield "D205", path, "required field added", value.location
        elif is_kept and not (isinstance(value.type, RawJson) and value.constraints == NO_CONSTRAINTS):
            yield "D235", path, "field described; before, anything was kept there", value.location
        else:
            yield "D251", path, "field added", value.location
        if not isinstance(value.default, Absent):
            yield self._default_added(path, f"added with the default {value.default!r}", value)


def _name(value: Value) -> str:
    return value.type.name if isinstance(value.type, Ref) else ""


def _follow(value: Value, definitions: Mapping[str, Definition]) -> Value:
    seen: set[str] = set()
    while isinstance(value.type, Ref) and value.type.name in definitions and value.type.name not in seen:
        seen.add(value.type.name)
        value = definitions[value.type.name].value
    return value


def _ruled(value: Value) -> str:
    """Every word that the rules at a place say."""
    c = value.constraints
    logical = [part for part in (c.all_of, c.any_of, c.one_of, c.negated) if part]
    sizes = ["maxProperties"] if c.max_properties is not None else []
    return " ".join(
        [*(rule.rule for rule in c.rules), *(json.dumps(p, default=str) for p in logical), *sizes]
    )


def _is_same_scalar(old: Type, new: Type) -> bool:
    return isinstance(old, Scalar) and isinstance(new, Scalar) and old.primitive is new.primitive


def _is_any_object(kind: Type) -> bool:
    return isinstance(kind, Struct) and not kind.fields and kind.preserve_unknown


def is_comparable(old: Type, new: Type) -> bool:
    """Whether what is said of values of one type can be held against what is said of the other's."""
    was, now = (kind.body if isinstance(kind, EmbeddedObject) else kind for kind in (old, new))
    return (
        _is_same_scalar(was, now)
        or (type(was) is type(now) and not isinstance(was, Scalar))
        or widens(was, now)
    )


def widens(old: Type, new: Type) -> bool:
    """Whether every value of one type is one of another."""
    if isinstance(new, RawJson):
        return not new.object_only or isinstance(old, Struct | MapOf)
    if isinstance(old, Scalar) and isinstance(new, Scalar):
        return (old.primitive, new.primitive) == (Primitive.INTEGER, Primitive.NUMBER)
    if isinstance(old, Scalar) and isinstance(new, IntOrString):
        return old.primitive in (Primitive.INTEGER, Primitive.STRING)
    is_empty = isinstance(old, Struct) and not (old.fields or old.extra or old.preserve_unknown)
    return is_empty and isinstance(new, MapOf)


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
            yield "D228", path, f"{name} changed from {shown(was)} to {shown(now)}", where


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
