"""The values whose classes extend classes of Python: unsigned integers, lists that are sets or maps.

They are apart because classes that extend built-ins are not compiled (build/compiled.toml).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"

    __str__ = int.__repr__  # compiled code leaves out int() of what is an int already


class SetList(list[Any]):
    """A list whose order and repeats do not count in equality (x-kubernetes-list-type: set)."""

    __slots__ = ()


class KeyedList(list[Any]):
    """A list of records known by ``keys`` (x-kubernetes-list-type: map)."""

    __slots__ = ("keys",)

    def __init__(self, items: Iterable[Any], keys: tuple[str, ...]):
        super().__init__(items)
        self.keys = keys

    def key(self, item: Any) -> tuple[Any, ...]:
        """What ``item`` is known by."""
        return tuple(item.get(k) if isinstance(item, dict) else None for k in self.keys)
