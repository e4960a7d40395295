"""Merge types: a merge schema compiled into objects that walk JSON values.

Theory. Six walks make all of server-side apply, each a method that a type answers for its own form:

- ``owned(value)``: the fields that applying ``value`` owns. Leaves, items of keyed lists and sets, keys of
maps, and fields that are null or an empty object; not the declared fields above them.
- ``added(value)``: the fields that come into being when ``value`` appears: those of ``owned``, and all above.
- ``compare(old, new)``: what changed, as three sets ``Delta(modified, added, removed)``; None where nothing
did.
- ``merge(live, applied)``: the live value with the applied one laid over it.
- ``remove(value, fields)`` and ``extract(value, fields)``: the value without, or with only, the given fields.
- ``reconcile(fields)``: a set written under an older schema, under this one: what has become atomic is one
field.

A type's node in a set is a ``FieldSet`` of its children; ``LEAF`` says "this place itself", None "nothing".
``added`` and ``compare`` answer for a place and everything below it. Null is a legal value everywhere.

Speed comes from three habits. Results share unchanged parts with the arguments, so that ``is`` settles most
comparisons. A struct's table holds, by field name, the path element, the Python types that make a scalar leaf
there, and whether ``==`` is exact: the walk over a leaf is one lookup. And no walk keeps a path: a value that
does not fit raises the bare ``Misfit``, and ``faults.explain`` walks again to say where and why.
Source of the rules: KEP-555 and structured-merge-diff's observable behaviour.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from apimachinery.merge.field_set import LEAF, FieldSet, as_member, intersection, is_member, union
from apimachinery.merge.value import same

Node = FieldSet | None


class Misfit(Exception):
    """A value does not fit its merge type; ``faults.explain`` says where."""


class Delta(NamedTuple):
    """What changed at a place: each None, or a node."""

    modified: Node
    added: Node
    removed: Node


MODIFIED = Delta(LEAF, None, None)
_NULL = frozenset((type(None),))
_MISSING: Any = object()


class MergeType(ABC):
    """A compiled type. ``leaf`` are the Python types whose values are leaves here without further look;
    ``exact`` says that ``==`` tells values of this type apart (nothing below may be a boolean or a number at
    choice)."""

    __slots__ = ("exact", "leaf")

    leaf: frozenset[type]
    exact: bool

    def __init__(self) -> None:
        self.leaf = _NULL
        self.exact = True

    @abstractmethod
    def owned(self, value: Any, strict: bool = True) -> Node:
        """The fields that applying ``value`` owns below here, ``LEAF`` for here. A fresh tree.

        ``strict`` refuses duplicates in keyed lists and sets; else a duplicated item is one field.
        Raises ``Misfit``.
        """

    @abstractmethod
    def added(self, value: Any) -> FieldSet:
        """The fields that appear, or go, with ``value``: never None. Raises ``Misfit``."""

    @abstractmethod
    def compare(self, old: Any, new: Any) -> Delta | None:
        """What changed from ``old`` to ``new``, both present. Raises ``Misfit``."""

    @abstractmethod
    def merge(self, live: Any, applied: Any) -> Any:
        """``applied`` over ``live``, both present; ``live`` itself where that changes nothing. Raises
        ``Misfit``."""

    @abstractmethod
    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        """``value`` without ``fields``; None where nothing is left. What held it holds null then, or an empty
        object or list where the release ``keeps_empty`` ones."""

    @abstractmethod
    def extract(self, value: Any, fields: FieldSet) -> Any:
        """``value`` with only ``fields``; None where there are none of them."""

    def reconcile(self, fields: FieldSet) -> FieldSet:
        """``fields`` (not empty) below here as this schema has them; ``LEAF`` where here is atomic."""
        return fields

    def name_parents(self, fields: FieldSet) -> FieldSet:
        """``fields`` and every declared field above one of them (not keys of maps, nor items)."""
        return fields

    def parts(self) -> list[MergeType]:
        """The types that are below this one."""
        return []


class ListEntry(NamedTuple):
    """A field of a struct, ready for walking. ``leaf`` holds the Python types of a scalar value here."""

    element: str
    leaf: frozenset[type]
    exact: bool
    type: MergeType


class ScalarType(MergeType):
    """A scalar of one kind, or of any."""

    __slots__ = ("kind",)

    def __init__(self, kind: str, leaf: frozenset[type], *, exact: bool = True) -> None:
        super().__init__()
        self.kind = kind
        self.leaf = leaf | _NULL
        self.exact = exact

    def owned(self, value: Any, strict: bool = True) -> Node:
        if type(value) not in self.leaf:
            raise Misfit
        return LEAF

    def added(self, value: Any) -> FieldSet:
        if type(value) not in self.leaf:
            raise Misfit
        return LEAF

    def compare(self, old: Any, new: Any) -> Delta | None:
        # One valid side is enough: a value whose type the schema changed can still be replaced.
        if type(old) not in self.leaf and type(new) not in self.leaf:
            raise Misfit
        return None if same(old, new) else MODIFIED

    def merge(self, live: Any, applied: Any) -> Any:
        return live if same(live, applied) else applied

    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        return value

    def extract(self, value: Any, fields: FieldSet) -> Any:
        return value


class AtomicType(MergeType):
    """A list or object that is one field. ``content`` is its granular form, which still says what may stand
    in it; None where anything may."""

    __slots__ = ("content", "form")

    def __init__(self, form: type | None, content: MergeType | None) -> None:
        super().__init__()
        self.form = form
        self.content = content

    def parts(self) -> list[MergeType]:
        return [self.content] if self.content else []

    def owned(self, value: Any, strict: bool = True) -> Node:
        if value is not None:
            if self.form is not None and type(value) is not self.form:
                raise Misfit
            if self.content is not None:
                self.content.owned(value, strict)
        return LEAF

    def added(self, value: Any) -> FieldSet:
        return LEAF

    def compare(self, old: Any, new: Any) -> Delta | None:
        return None if same(old, new) else MODIFIED

    def merge(self, live: Any, applied: Any) -> Any:
        return live if same(live, applied) else applied

    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        return None if self.form is not None or type(value) in (dict, list) else value

    def extract(self, value: Any, fields: FieldSet) -> Any:
        return value

    def reconcile(self, fields: FieldSet) -> FieldSet:
        return LEAF


class StructType(MergeType):
    """An object: declared fields, and ``rest`` for other keys (a plain map has only that)."""

    __slots__ = ("entries", "free", "rest")

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[str, ListEntry] = {}
        self.rest: MergeType | None = None
        self.free = False
        """Whether this is a map of which the schema says nothing: reconciling passes it by."""

    def parts(self) -> list[MergeType]:
        own = [entry.type for entry in self.entries.values()]
        return own if self.rest is None else [*own, self.rest]

    def entry(self, key: str) -> ListEntry:
        """How to walk the value at ``key``. Raises ``Misfit`` where no such field is declared."""
        found = self.entries.get(key)
        if found is None:
            rest = self.rest
            if rest is None:
                raise Misfit
            return ListEntry(f"f:{key}", rest.leaf, rest.exact, rest)
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
        past: dict[str, Any] = as_form(old, dict)
        now: dict[str, Any] = as_form(new, dict)
        modified: FieldSet = {}
        added: FieldSet = {}
        removed: FieldSet = {}
        shared = 0
        for key, item in now.items():
            before = past.get(key, _MISSING)
            if before is _MISSING:
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
        mine: dict[str, Any] = as_form(applied, dict)
        if not live:
            return applied
        theirs: dict[str, Any] = as_form(live, dict)
        out: dict[str, Any] | None = None
        for key, item in mine.items():
            before = theirs.get(key, _MISSING)
            if before is item:
                continue
            if before is _MISSING:
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


class EitherType(MergeType):
    """A place whose value says which of several forms it has."""

    __slots__ = ("list", "map")

    def __init__(self, leaf: frozenset[type]) -> None:
        super().__init__()
        self.leaf = leaf | _NULL
        self.exact = False
        self.list: MergeType | None = None
        self.map: MergeType | None = None

    def parts(self) -> list[MergeType]:
        return [type for type in (self.list, self.map) if type is not None]

    def pick(self, value: Any) -> MergeType | None:
        """The type of ``value``'s form, None for scalars. Raises ``Misfit`` where that form is not
        allowed."""
        if type(value) in self.leaf:
            return None
        found = self.map if type(value) is dict else self.list if type(value) is list else None
        if found is None:
            raise Misfit
        return found

    def owned(self, value: Any, strict: bool = True) -> Node:
        type_ = self.pick(value)
        return LEAF if type_ is None else type_.owned(value, strict)

    def added(self, value: Any) -> FieldSet:
        type_ = self.pick(value)
        return LEAF if type_ is None else type_.added(value)

    def compare(self, old: Any, new: Any) -> Delta | None:
        before, after = self.pick(old), self.pick(new)
        if before is after:
            if before is not None:
                return before.compare(old, new)
            return None if same(old, new) else MODIFIED
        # The form changed. Null takes the other's form, and is a change of the place too where it might have had
        # another; else the old one's fields go and the new one's come, and a leaf on either side is modified.
        if (old is None or new is None) and (here := after if old is None else before) is not None:
            delta = here.compare(old, new)
            if delta is None or here is self.map or (self.map is None and len(self.leaf) == 1):
                return delta
            return delta._replace(modified=LEAF)
        removed = self._below(before, old)
        added = self._below(after, new)
        modified = LEAF if removed is None or added is None else None
        return Delta(modified, added, removed)

    @staticmethod
    def _below(type_: MergeType | None, value: Any) -> Node:
        """The fields below a value that is replaced by one of another form; None for a leaf."""
        node = LEAF if type_ is None or not value else type_.added(value)
        rest = {element: child for element, child in node.items() if element != "."}
        return rest or None

    def merge(self, live: Any, applied: Any) -> Any:
        before, after = self.pick(live), self.pick(applied)
        if after is None:
            if applied is None and before is not None:
                return before.merge(live, applied)
            return live if same(live, applied) else applied
        return after.merge(live if before is after or live is None else None, applied)

    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        type_ = self.pick(value)
        return value if type_ is None else type_.remove(value, fields, keeps_empty=keeps_empty)

    def extract(self, value: Any, fields: FieldSet) -> Any:
        type_ = self.pick(value)
        return value if type_ is None else type_.extract(value, fields)

    def reconcile(self, fields: FieldSet) -> FieldSet:
        type_ = self.map or self.list
        return fields if type_ is None else type_.reconcile(fields)

    def name_parents(self, fields: FieldSet) -> FieldSet:
        type_ = self.map or self.list
        return fields if type_ is None else type_.name_parents(fields)


def remaining(type_: MergeType, value: Any, fields: FieldSet, keeps_empty: bool) -> Any:
    """What ``type_`` leaves of a value that something holds; the value itself where that is all."""
    rest = type_.remove(value, fields, keeps_empty=keeps_empty)
    if rest is None and keeps_empty and type(value) in (dict, list):
        return value if not value else type(value)()
    return rest


def extract_with_keys(type_: MergeType, value: Any, fields: FieldSet) -> Any:
    """``extract``, with the keys of the list items on the way to the ``fields`` that ``value`` has."""
    return type_.extract(
        value, union(fields, _keys_of(intersection(type_.owned(value, False) or {}, fields)))
    )


def _keys_of(fields: FieldSet) -> FieldSet:
    out: FieldSet = {}
    for element, node in fields.items():
        if element == ".":
            continue
        below = _keys_of(node)
        if element[:2] == "k:":
            below = union(below, {f"f:{name}": LEAF for name in json.loads(element[2:])})
        if below:
            out[element] = below
    return out


def as_form(value: Any, form: type) -> Any:
    """``value``, or an empty one for null. Raises ``Misfit`` where it has another form."""
    if type(value) is form:
        return value
    if value is None:
        return form()
    raise Misfit


def compare_objects(type_: MergeType, old: Mapping[str, Any], new: Mapping[str, Any]) -> Delta:
    """``compare`` of whole objects: three sets, each perhaps empty. Raises ``Misfit``."""
    delta = type_.compare(old, new)
    if delta is None:
        return Delta({}, {}, {})
    return Delta(delta.modified or {}, delta.added or {}, delta.removed or {})
