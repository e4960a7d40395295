"""Which old value belongs to which new one, so that an update does not pay for faults it did not make.

Theory (KEP-4008). A value whose old counterpart is equal keeps its faults unreported. Fields belong
together by name, items of a keyed list by their keys; items of sets and plain lists to none: such a list
counts as a whole. A value with a field that its schema does not name never counts as equal, and below
anyOf, oneOf, allOf and not every value counts as new.
"""

from __future__ import annotations

from typing import Any

from apimachinery.schema.node import SchemaNode


def same(one: Any, other: Any) -> bool:
    """Are two JSON values equal, where 1, 1.0 and true are three values."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def frozen(value: Any) -> Any:
    """A hashable stand-in for a JSON value, equal where ``same`` says so."""
    if isinstance(value, dict):
        return ("{}", *sorted((key, frozen(each)) for key, each in value.items())) if value else ("{}",)
    if isinstance(value, list):
        return ("[]", *map(frozen, value))
    return (type(value).__name__, value)


class OldAndNew:
    """A new value with the old one it stems from, as one schema node sees them."""

    __slots__ = ("_items", "_same", "new", "node", "old")

    def __init__(self, node: SchemaNode, new: Any, old: Any):
        self.node = node
        self.new = new
        self.old = old
        self._same: bool | None = None
        self._items: dict[Any, Any] | None = None

    def unchanged(self) -> bool:
        """Is the new value equal to the old one."""
        if self._same is None:
            self._same = self._equal()
        return self._same

    def _equal(self) -> bool:
        """Are the values equal; the items of a keyed list in any order, and no field that the schema does not name."""
        new, old = self.new, self.old
        if isinstance(new, dict) and isinstance(old, dict):
            return len(new) == len(old) and all(
                (inner := self.field(name)) is not None and inner.unchanged() for name in new
            )
        if self._is_keyed() and isinstance(new, list) and isinstance(old, list):
            return len(new) == len(old) and all(
                (inner := self.item(index)) is not None and inner.unchanged() for index in range(len(new))
            )
        return same(new, old)

    def _is_keyed(self) -> bool:
        return self.node.list_type == "map" and self.node.items is not None

    def field(self, name: str) -> OldAndNew | None:
        """The correlation of a field, None where there is no object on both sides."""
        if not isinstance(self.old, dict) or not isinstance(self.new, dict):
            return None
        node = self.node.properties.get(name)
        if node is None:
            if not isinstance(self.node.additional, SchemaNode):
                return None
            node = self.node.additional
        if name not in self.old:
            return None
        return OldAndNew(node, self.new.get(name), self.old[name])

    def item(self, index: int) -> OldAndNew | None:
        """The correlation of an item of a keyed list, None where no old item has its keys."""
        if not self._is_keyed() or not isinstance(self.old, list):
            return None
        assert self.node.items is not None
        if self._items is None:
            self._items = {}
            for each in self.old:
                self._items.setdefault(self._key(each), each)
        old = self._items.get(self._key(self.new[index]))
        return None if old is None else OldAndNew(self.node.items, self.new[index], old)

    def _key(self, item: Any) -> Any:
        if not isinstance(item, dict):
            return None
        return tuple(frozen(item.get(key)) for key in self.node.list_map_keys)
