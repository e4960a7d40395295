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
comparisons. The walk over a leaf of a struct is one lookup (structs.py). And no walk keeps a path: a value that does
not fit raises the bare ``Misfit``, and ``faults.explain`` walks again to say where and why.
Source of the rules: KEP-555 and structured-merge-diff's observable behaviour.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from apimachinery.merge.field_set import LEAF, FieldSet, intersection, union
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
