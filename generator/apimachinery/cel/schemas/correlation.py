"""Which old value an updated value is compared with, and whether it changed.

Map values and fields correlate by name, items of lists of type map by their keys, other items not at all. A value
that does not correlate is unchanged if the nearest value around it that does is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apimachinery.cel.values.values import equal


class Absent:
    """No old value."""


ABSENT = Absent()


class Pair:
    """A new and an old value of the same place."""

    __slots__ = ("_same", "new", "old")

    def __init__(self, new: Any, old: Any):
        self.new = new
        self.old = old
        self._same: bool | None = None

    def same(self) -> bool:
        """Whether nothing changed."""
        if self._same is None:
            self._same = equal(self.new, self.old)
        return self._same


class Correlation:
    """Where a walk is: the pair of this value, if it correlates, and of the nearest around it that does."""

    __slots__ = ("current", "parent")

    def __init__(self, current: Pair | None = None, parent: Pair | None = None):
        self.current = current
        self.parent = parent

    def unchanged(self) -> bool:
        """Whether faults of this value are old ones."""
        pair = self.current or self.parent
        return pair is not None and pair.same()

    def field(self, schema: Mapping[str, Any], name: str, value: Any) -> Correlation:
        """The correlation of a field or map value."""
        if self.current is None:
            return self
        if self.parent is None and name in ("apiVersion", "kind"):
            return NOTHING
        old = self.current.old
        found: Pair | None = None
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        if not atomic and isinstance(old, dict) and name in old:
            found = Pair(value, old[name])
        return Correlation(found, self.current)

    def item(self, schema: Mapping[str, Any], value: Any) -> Correlation:
        """The correlation of a list item."""
        if self.current is None:
            return self
        old = old_item(schema, self.current.old, value)
        return Correlation(None if old is ABSENT else Pair(value, old), self.current)


NOTHING = Correlation()


def old_item(schema: Mapping[str, Any], old: Any, item: Any) -> Any:
    """The old item that ``item`` takes the place of, or ABSENT."""
    if (
        schema.get("x-kubernetes-list-type") != "map"
        or not isinstance(old, list)
        or not isinstance(item, dict)
    ):
        return ABSENT
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    wanted = [item.get(key) for key in keys]
    for candidate in old:
        if isinstance(candidate, dict) and equal([candidate.get(key) for key in keys], wanted):
            return candidate
    return ABSENT
