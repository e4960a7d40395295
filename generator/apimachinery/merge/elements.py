"""The order of path elements: fields by name, items by their keys, items of sets by value, items by index.

Values are ordered as ``value.compare`` says: numbers as numbers, before texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from heapq import merge
from typing import Any

from apimachinery.merge.value import sort_key

SLICE = 5_000
"""So many elements are sorted at once: meanwhile no other thread runs."""
LONGEST_KEPT = 500
"""Ranks of longer elements are not kept: clients write them."""


def in_order(elements: Iterable[str]) -> list[str]:
    """The elements in kube-apiserver's order; ``.`` comes first."""
    out = _sorted(list(elements))
    if out and out[-1] > "g":  # else there are fields alone, and they are in order
        out = _sorted(out, _rank if max(map(len, out)) < LONGEST_KEPT else _rank.__wrapped__)
    return out


def _sorted(elements: list[str], key: Callable[[str], Any] | None = None) -> list[str]:
    if len(elements) <= SLICE:
        elements.sort(key=key)
        return elements
    slices = [sorted(elements[low : low + SLICE], key=key) for low in range(0, len(elements), SLICE)]
    return list(merge(*slices, key=key))


@lru_cache(maxsize=50_000)
def _rank(element: str) -> tuple[Any, ...]:
    kind, rest = element[:1], element[2:]
    if kind == "k":
        return (2, [(name, sort_key(item)) for name, item in sorted(json.loads(rest).items())])
    if kind == "v":
        return (3, sort_key(json.loads(rest)))
    return (4, int(rest)) if kind == "i" else (0 if kind == "." else 1, rest)
