"""Who owns each part of an object: the field sets of all its managers, laid over its value.

Theory. ``managedFields`` has one field set a manager. Laid over each other they are one tree by path element, whose
nodes know the managers that have this path as a member, and which of them have nothing below it. A value is walked
along that tree: a field by ``f:``, an item of a list by its keys (``k:``), its value (``v:``) or its index (``i:``).

- A path that is a member of somebody's set is owned by those managers.
- Below a member that is a leaf of a manager's set (an atomic list or map, a struct written as a whole) everything is
  owned by that manager too, *as a whole*, except paths that are members themselves.
- Anything else is owned by nobody: no set has fields that only the server writes (uid, resourceVersion, …).

The tree is built once, in the size of the sets, so an object with thousands of managers costs no more than its bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from apimachinery.merge.field_set import FieldSet, is_member, size
from apimachinery.merge.fields_v1 import key_element, value_element
from apimachinery.merge.managed_fields import Managed, Owner, decode

Owners = tuple[int, ...]
"""Managers, by their index in ``Ownership.managers``."""
NOBODY: Final[Owners] = ()
_SHORT_LIST = 100
"""Lists whose items are looked for wherever they were before; those of longer ones are compared by their index."""


class Manager(NamedTuple):
    """A manager of an object, and how many paths it owns."""

    owner: Owner
    api_version: str
    time: str | None
    size: int


class Share(NamedTuple):
    """Who owns a path. ``whole``: as a part of something that is owned as a whole."""

    owners: Owners
    whole: bool = False


class OwnersNode:
    """A path of the tree: its members, and those of them that have nothing below it."""

    __slots__ = ("_forms", "children", "leaves", "members")

    def __init__(self) -> None:
        self.members: list[int] = []
        self.leaves: list[int] = []
        self.children: dict[str, OwnersNode] = {}
        self._forms: tuple[list[tuple[str, ...]], bool] | None = None

    def add(self, fields: FieldSet, number: int) -> None:
        """Adds a manager's set below this path."""
        for element, below in fields.items():
            if element == ".":
                continue
            child = self.children.get(element)
            if child is None:
                child = self.children[element] = OwnersNode()
            if is_member(below):
                child.members.append(number)
                if not below:
                    child.leaves.append(number)
            child.add(below, number)

    def item(self, item: Any, index: int) -> str:
        """The element of a list's item: that of a set if there is one, else its index."""
        # Read once for each list: its items all go by the same keys.
        if self._forms is None:
            self._forms = self._read_forms()
        keys, by_value = self._forms
        if isinstance(item, dict):
            for names in keys:
                if all(name in item for name in names):
                    element = key_element({name: item[name] for name in names})
                    if element in self.children:
                        return element
        if by_value:
            element = value_element(item)
            if element in self.children:
                return element
        return f"i:{index}"

    def _read_forms(self) -> tuple[list[tuple[str, ...]], bool]:
        """The names of keys that items go by, those with most names first, and whether items go by their values."""
        names = {tuple(sorted(json.loads(e[2:]))) for e in self.children if e.startswith("k:")}
        by_value = any(element.startswith("v:") for element in self.children)
        # More names first: an item with two keys must not match a set that has one of them.
        return sorted(names, key=lambda each: (-len(each), each)), by_value


class Ownership:
    """The managers of one object, and who of them owns what."""

    def __init__(self, managed: Managed) -> None:
        self.managers: list[Manager] = []
        self.root = OwnersNode()
        for number, (owner, entry) in enumerate(managed.items()):
            self.managers.append(Manager(owner, entry.api_version, entry.time, size(entry.fields)))
            self.root.add(entry.fields, number)

    @classmethod
    def of(cls, obj: dict[str, Any]) -> Ownership:
        """Reads the managedFields of an object. Raises ``EntryError``."""
        metadata = obj.get("metadata")
        return cls(decode(metadata.get("managedFields") if isinstance(metadata, dict) else None))


class OwnedPlace(NamedTuple):
    """A part of the value on the way down: its node, if a set has it, and who owns it as a part of something whole."""

    node: OwnersNode | None
    share: Share
    whole_owners: Owners

    @classmethod
    def top(cls, ownership: Ownership) -> OwnedPlace:
        """The object itself, which nobody owns."""
        return cls(ownership.root, Share(NOBODY), NOBODY)

    def field(self, name: str) -> tuple[str, OwnedPlace]:
        """The element and the place of a field."""
        element = f"f:{name}"
        return element, self._below(element)

    def items(self, items: Sequence[Any]) -> Iterator[tuple[str, OwnedPlace]]:
        """The elements and places of a list's items."""
        for index, item in enumerate(items):
            element = self.node.item(item, index) if self.node is not None else f"i:{index}"
            yield element, self._below(element)

    def _below(self, element: str) -> OwnedPlace:
        node = self.node.children.get(element) if self.node is not None else None
        if node is not None and node.members:
            # A leaf owns everything below, until a path below is a member itself.
            return OwnedPlace(node, Share(tuple(node.members)), tuple(node.leaves))
        return OwnedPlace(node, Share(self.whole_owners, bool(self.whole_owners)), self.whole_owners)


def owners_of_changes(before: Any, after: dict[str, Any], ownership: Ownership) -> Owners:
    """The managers that own what differs in ``after``, an object with this ownership, from what it was ``before``."""
    found: set[int] = set()
    _add_changes(before, after, OwnedPlace.top(ownership), found)
    return tuple(sorted(found))


def _add_changes(before: Any, after: Any, place: OwnedPlace, found: set[int]) -> None:
    if before == after:
        return
    if isinstance(after, dict) and isinstance(before, dict):
        for name, item in after.items():
            _add_changes(before.get(name), item, place.field(name)[1], found)
    elif isinstance(after, list) and isinstance(before, list):
        for number, (item, (_, below)) in enumerate(zip(after, place.items(after), strict=True)):
            # An item that only moved is no change of what it holds.
            if len(before) > _SHORT_LIST or item not in before:
                _add_changes(before[number] if number < len(before) else None, item, below, found)
    else:
        found.update(place.share.owners)
        if isinstance(after, dict):
            for name, item in after.items():
                _add_changes(None, item, place.field(name)[1], found)
