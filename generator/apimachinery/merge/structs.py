"""Structs and maps: every field, or key, is a field of its own.

A struct's table holds, by field name, the path element, the Python types that make a scalar leaf there, and whether
``==`` is exact: the walk over a leaf is one lookup.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apimachinery.merge.field_set import LEAF, FieldSet, as_member, is_member
from apimachinery.merge.typed import MODIFIED, Delta, MergeType, Misfit, Node, as_form, remaining
from apimachinery.merge.value import same

_ABSENT: Any = object()


class StructField(NamedTuple):
    """A field of a struct, ready for walking. ``leaf`` holds the Python types of a scalar value here."""

    element: str
    leaf: frozenset[type]
    exact: bool
    type: MergeType


class StructType(MergeType):
    """An object: declared fields, and ``rest`` for other keys (a plain map has only that)."""

    __slots__ = ("entries", "free", "rest")

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, StructField] = {}
        self.rest: MergeType | None = None
        self.free = False
        """Whether this is a map of which the schema says nothing: reconciling passes it by."""

    def parts(self) -> list[MergeType]:
        own = [entry.type for entry in self.entries.values()]
        return own if self.rest is None else [*own, self.rest]

    def entry(self, key: str) -> StructField:
        """How to walk the value at ``key``. Raises ``Misfit`` where no such field is declared."""
        found = self.entries.get(key)
        if found is None:
            rest = self.rest
            if rest is None:
                raise Misfit
            return StructField(f"f:{key}", rest.leaf, rest.exact, rest)
        return found

    def owned(self, value: Any, strict: bool = True) -> Node:
        if type(value) is not dict:
            if value is None:
                return None
            raise Misfit
        out: FieldSet = {}
        entries = self.entries
        rest = self.rest
        for key, item in value.items():
            entry = entries.get(key)
            if entry is not None:
                element, leaf, _, type_ = entry
                if type(item) in leaf:
                    out[element] = LEAF
                    continue
                node = type_.owned(item, strict)
                if node is not None:
                    out[element] = node
                elif not item and type(item) is dict:
                    out[element] = LEAF
            elif rest is None:
                raise Misfit
            elif type(item) in rest.leaf:
                out[f"f:{key}"] = LEAF
            else:
                node = rest.owned(item, strict)
                if node:
                    node["."] = LEAF
                    out[f"f:{key}"] = node
                else:
                    out[f"f:{key}"] = LEAF
        return out or None

    def added(self, value: Any) -> FieldSet:
        if not value:
            return LEAF
        if type(value) is not dict:
            raise Misfit
        out: FieldSet = {".": LEAF}
        entries = self.entries
        rest = self.rest
        for key, item in value.items():
            entry = entries.get(key)
            if entry is not None:
                out[entry[0]] = LEAF if type(item) in entry[1] else entry[3].added(item)
            elif rest is None:
                raise Misfit
            else:
                out[f"f:{key}"] = LEAF if type(item) in rest.leaf else rest.added(item)
        return out

    def compare(self, old: Any, new: Any) -> Delta | None:
        if not old and not new:
            return None if same(old, new) else MODIFIED
        past: dict[str, Any] = old if type(old) is dict else as_form(old, dict)
        now: dict[str, Any] = new if type(new) is dict else as_form(new, dict)
        modified: FieldSet = {}
        added: FieldSet = {}
        removed: FieldSet = {}
        shared = 0
        for key, item in now.items():
            before = past.get(key, _ABSENT)
            if before is _ABSENT:
                element, leaf, _, type_ = self.entry(key)
                added[element] = LEAF if type(item) in leaf else type_.added(item)
                continue
            shared += 1
            if before is item:
                continue
            element, leaf, exact, type_ = self.entry(key)
            if (before == item) if exact else same(before, item):
                continue
            delta = type_.compare(before, item)
            if delta is not None:
                if delta[0] is not None:
                    modified[element] = delta[0]
                if delta[1] is not None:
                    added[element] = delta[1]
                if delta[2] is not None:
                    removed[element] = delta[2]
        if shared != len(past):
            for key, item in past.items():
                if key not in now:
                    element, leaf, _, type_ = self.entry(key)
                    removed[element] = LEAF if type(item) in leaf else type_.added(item)
        if modified or added or removed:
            return Delta(modified or None, added or None, removed or None)
        return None

    def merge(self, live: Any, applied: Any) -> Any:
        if not applied:
            # Nothing laid over something leaves it; over nothing, null and {} stay apart.
            as_form(applied, dict)
            return live if live else applied
        mine: dict[str, Any] = applied if type(applied) is dict else as_form(applied, dict)
        if not live:
            return applied
        theirs: dict[str, Any] = live if type(live) is dict else as_form(live, dict)
        out: dict[str, Any] | None = None
        for key, item in mine.items():
            before = theirs.get(key, _ABSENT)
            if before is item:
                continue
            if before is _ABSENT:
                merged = item
            else:
                _, _, exact, type_ = self.entry(key)
                if (before == item) if exact else same(before, item):
                    continue
                merged = type_.merge(before, item)
                if merged is before:
                    continue
            if out is None:
                out = dict(theirs)
            out[key] = merged
        return live if out is None else out

    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        if not value or type(value) is not dict:
            return None
        out: dict[str, Any] | None = None
        for element, node in fields.items():
            key = element[2:]
            if element[:2] != "f:" or key not in value:
                continue
            if is_member(node):
                out = dict(value) if out is None else out
                del out[key]
            else:
                before = value[key]
                rest = remaining(self.entry(key).type, before, node, keeps_empty)
                if rest is not before:
                    out = dict(value) if out is None else out
                    out[key] = rest
        if out is None:
            return value
        return out or None

    def extract(self, value: Any, fields: FieldSet) -> Any:
        if not value or type(value) is not dict:
            return value if type(value) is dict else None
        out: dict[str, Any] = {}
        for key, item in value.items():
            node = fields.get(f"f:{key}")
            if node is not None:
                # Below a member the same set is looked up, not what it holds below: so does kube-apiserver.
                out[key] = self.entry(key).type.extract(item, fields if is_member(node) else node)
        return out or None

    def reconcile(self, fields: FieldSet) -> FieldSet:
        if self.free:
            return fields
        out: FieldSet | None = None
        entries = self.entries
        rest = self.rest
        for element, node in fields.items():
            if not node:
                continue
            entry = entries.get(element[2:])
            type_ = rest if entry is None else entry[3]
            if type_ is None:
                continue
            now = type_.reconcile(node)
            if now is not node:
                if out is None:
                    out = dict(fields)
                out[element] = now
        return fields if out is None else out

    def name_parents(self, fields: FieldSet) -> FieldSet:
        out: FieldSet = {}
        for element, node in fields.items():
            if node:
                entry = self.entries.get(element[2:]) if element[:2] == "f:" else None
                if entry is not None:
                    node = as_member(entry.type.name_parents(node))
                elif self.rest is not None and element[:2] == "f:":
                    node = self.rest.name_parents(node)
            out[element] = node
        return out
