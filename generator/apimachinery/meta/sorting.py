"""Sorting of what clients send: much of it a part at a time, because no other thread runs while Python sorts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from heapq import merge
from typing import Any

SLICE = 5_000
"""So many values are sorted at once."""


def in_slices(values: Iterable[str], key: Callable[[str], Any] | None = None) -> list[str]:
    """The values in order, as ``sorted`` gives them."""
    found = list(values)
    if len(found) <= SLICE:
        found.sort(key=key)
        return found
    slices = [sorted(found[low : low + SLICE], key=key) for low in range(0, len(found), SLICE)]
    return list(merge(*slices, key=key))
