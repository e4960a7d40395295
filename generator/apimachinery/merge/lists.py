"""Lists whose items are fields of their own: map lists, keyed by some fields of an item, and sets of scalars.

Items correspond by path element. Duplicates are refused in what is applied, and tolerated in what is stored,
as kube-apiserver does: all items of one element are then one field, which a merge with that element replaces.

Order after a merge: items that only one side has stay where they are, relative to their neighbours of that
side; items of both come in the applied order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from apimachinery.merge import value as values
from apimachinery.merge.field_set import LEAF, FieldSet, as_member, is_member
from apimachinery.merge.schema import ABSENT
from apimachinery.merge.typed import MODIFIED, Delta, MergeType, Misfit, Node, as_form, remaining
from apimachinery.merge.value import encode_text, same


class KeyedType(MergeType):
    """A map list or a set; the two differ in ``element`` alone."""

    __slots__ = ("_prefix", "_single", "_sorted", "items", "keys")

    def __init__(self, keys: Sequence[tuple[str, Any]]) -> None:
        super().__init__()
        self.items: MergeType
        self.keys = tuple(keys)
        """Names and defaults of the key fields, in the schema's order; empty for a set."""
        self._sorted = tuple(sorted(self.keys, key=lambda key: key[0]))
        self._single = self.keys[0][0] if len(self.keys) == 1 else None
        self._prefix = f"k:{{{encode_text(self._single)}:" if self._single is not None else ""

    def parts(self) -> list[MergeType]:
        return [self.items]

    def element(self, item: Any) -> str:
        """The path element of an item. A key that an item omits, and that has no default, is no part of it.
        Raises ``Misfit`` for an item without any key."""
        if not self.keys:
            # The usual case of a set, ahead of the general encoding.
            if type(item) is str:
                return f"v:{encode_text(item)}"
            if item is None or type(item) in (dict, list):
                raise Misfit
            return f"v:{values.encode(item)}"
        if type(item) is not dict:
            raise Misfit
        if self._single is not None:
            key = item.get(self._single)
            # The usual case of a map list with one textual key.
            if type(key) is str:
                return f"{self._prefix}{encode_text(key)}}}"
        parts = []
        # Keys in the order of their names: equal items must spell equal elements.
        for name, default in self._sorted:
            key = item.get(name, default)
            if key is not ABSENT:
                parts.append(f"{encode_text(name)}:{values.encode(key)}")
        if not parts:
            raise Misfit
        return f"k:{{{','.join(parts)}}}"

    def _grouped(self, items: list[Any]) -> dict[str, list[Any]]:
        out: dict[str, list[Any]] = {}
        for item in items:
            out.setdefault(self.element(item), []).append(item)
        return out

    def _indexed(self, items: list[Any]) -> dict[str, Any] | None:
        """The items by element; None where an element comes twice."""
        element = self.element
        out = {element(item): item for item in items}
        return out if len(out) == len(items) else None

    def owned(self, value: Any, strict: bool = True) -> Node:
        if type(value) is not list:
            if value is None:
                return None
            raise Misfit
        out: FieldSet = {}
        doubled: set[str] = set()
        items = self.items
        leaf = items.leaf
        for item in value:
            element = self.element(item)
            if element in out:
                # Strict for what is applied; what is stored may be doubled since before there was a check.
                if strict:
                    raise Misfit
                doubled.add(element)
            elif type(item) in leaf:
                out[element] = LEAF
            else:
                node = items.owned(item, strict)
                if node:
                    node["."] = LEAF
                    out[element] = node
                else:
                    out[element] = LEAF
        for element in doubled:
            out[element] = LEAF
        return out or None

    def added(self, value: Any) -> FieldSet:
        if not value:
            return LEAF
        out: FieldSet = {".": LEAF}
        grouped = self._grouped(as_form(value, list))
        for element, group in grouped.items():
            out[element] = as_member(self.items.added(group[0])) if len(group) == 1 else LEAF
        return out

    def compare(self, old: Any, new: Any) -> Delta | None:
        if not old and not new:
            return None if same(old, new) else MODIFIED
        before = self._grouped(as_form(old, list))
        after = self._grouped(as_form(new, list))
        modified: FieldSet = {}
        added: FieldSet = {}
        removed: FieldSet = {}
        items = self.items
        for element, group in after.items():
            past = before.get(element)
            if past is None:
                added[element] = items.added(group[0]) if len(group) == 1 else LEAF
            elif len(past) == 1 and len(group) == 1:
                # Unchanged items are mostly the same object, after a copy that shares its parts.
                if past[0] is group[0]:
                    continue
                delta = items.compare(past[0], group[0])
                if delta is not None:
                    if delta[0] is not None:
                        modified[element] = delta[0]
                    if delta[1] is not None:
                        added[element] = delta[1]
                    if delta[2] is not None:
                        removed[element] = delta[2]
            elif len(past) > 1 and len(group) > 1:
                if not same(past, group):
                    modified[element] = LEAF
            elif len(past) > 1:
                # No longer doubled: the mark goes, the item's own fields come.
                added[element] = items.added(group[0])
                removed[element] = LEAF
            else:
                removed[element] = items.added(past[0])
                added[element] = LEAF
        for element, past in before.items():
            if element not in after:
                removed[element] = items.added(past[0]) if len(past) == 1 else LEAF
        if modified or added or removed:
            return Delta(modified or None, added or None, removed or None)
        return None

    def merge(self, live: Any, applied: Any) -> Any:
        if not applied:
            as_form(applied, list)
            return live if live else applied
        as_form(applied, list)
        if not live:
            return applied
        mine = self._indexed(applied)
        # Applied lists must name each item once, or it is unclear which one counts.
        if mine is None:
            raise Misfit
        elements = list(map(self.element, as_form(live, list)))
        theirs = dict(zip(elements, live, strict=True))
        doubled = (
            {element for element, count in Counter(elements).items() if count > 1}
            if len(theirs) != len(live)
            else frozenset[str]()
        )
        shared = [element for element in elements if element in mine]
        if not shared:
            return [*live, *applied]
        merged = {
            element: self.items.merge(theirs[element] if element not in doubled else None, item)
            if element in theirs
            else item
            for element, item in mine.items()
        }
        if shared == [element for element in mine if element in theirs] and len(shared) == len(mine):
            # The applied items are all there, in this order: each is replaced where it is.
            # Nothing differs: the caller sees by identity that nothing changed.
            if all(
                merged[element] is item
                for element, item in zip(elements, live, strict=True)
                if element in mine
            ):
                return live
            return [merged.get(e, item) for e, item in zip(elements, live, strict=True)]
        return _interleave(elements, live, list(mine), theirs, merged)

    def remove(self, value: Any, fields: FieldSet, *, keeps_empty: bool) -> Any:
        if not value or type(value) is not list:
            return None
        out = []
        changed = False
        for item in value:
            node = fields.get(self.element(item))
            if node is None:
                out.append(item)
            elif is_member(node):
                changed = True
            else:
                rest = remaining(self.items, item, node, keeps_empty)
                changed = changed or rest is not item
                out.append(rest)
        return (out or None) if changed else value

    def extract(self, value: Any, fields: FieldSet) -> Any:
        if not value or type(value) is not list:
            return value if type(value) is list else None
        out = []
        for item in value:
            node = fields.get(self.element(item))
            if node is not None:
                # A node with members below narrows the item to these; a bare member takes all of it.
                below = any(element != "." for element in node)
                out.append(self.items.extract(item, node) if below else item)
        return out or None

    def reconcile(self, fields: FieldSet) -> FieldSet:
        out: FieldSet | None = None
        for element, node in fields.items():
            if not node:
                continue
            now = self.items.reconcile(node)
            if now is not node:
                if out is None:
                    out = dict(fields)
                out[element] = now
        return fields if out is None else out

    def name_parents(self, fields: FieldSet) -> FieldSet:
        return {
            element: self.items.name_parents(node) if node and element[:2] == "k:" else node
            for element, node in fields.items()
        }


def _interleave(
    elements: list[str], live: list[Any], applied: list[str], theirs: dict[str, Any], merged: dict[str, Any]
) -> list[Any]:
    """The merged list: ``elements`` are the live items', ``applied`` the applied ones', ``merged`` the values
    of the latter. Both orders are walked at once; a shared item is placed when both walks have reached it,
    and one that the live order reaches too early is left for the applied order to place."""
    out: list[Any] = []
    order = iter([element for element in applied if element in theirs])
    awaited = next(order, None)
    placed: set[str] = set()
    at = mine = 0
    while at < len(elements) or mine < len(applied):
        if at < len(elements) and mine < len(applied):
            element = elements[at]
            if element == applied[mine]:
                placed.add(element)
                out.append(merged[element])
                at += 1
                mine += 1
                awaited = next(order, None)
                continue
            if element in merged and awaited is not None and awaited != element:
                at += 1
                continue
        if at < len(elements):
            element = elements[at]
            if element not in merged:
                out.append(live[at])
                at += 1
                continue
            if element in placed:
                at += 1
        if mine < len(applied):
            element = applied[mine]
            placed.add(element)
            out.append(merged[element])
            mine += 1
            if awaited == element:
                awaited = next(order, None)
    return out
