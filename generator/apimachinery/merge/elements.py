"""The order of path elements: fields by name, items by their keys, items of sets by value, items by index.

Values are ordered as ``value.compare`` says: numbers as numbers, before texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from apimachinery.merge.value import sort_key
from apimachinery.meta.sorting import SLICE, in_slices

LONGEST_KEPT = 500


def in_order(elements: Iterable[str]) -> list[str]:
    """The elements in kube-apiserver's order; ``.`` comes first."""
    out = list(elements)
    if len(out) < 2:
        return out
    if len(out) > SLICE:
        return in_slices(in_slices(out), _ranked(out))
    out.sort()
    if out[-1] > "g":  # else there are fields alone, and they are in order
        out.sort(key=_ranked(out))
    return out


def _ranked(elements: list[str]) -> Callable[[str], tuple[Any, ...]]:
    """The rank; not kept where an element is long, for clients write them."""
    # A kept rank keeps its element alive; a client could fill the cache with megabytes.
    return _rank if max(map(len, elements)) < LONGEST_KEPT else _rank.__wrapped__


@lru_cache(maxsize=50_000)
def _rank(element: str) -> tuple[Any, ...]:
    kind, rest = element[:1], element[2:]
    if kind == "k":
        return (2, [(name, sort_key(item)) for name, item in sorted(json.loads(rest).items())])
    if kind == "v":
        return (3, sort_key(json.loads(rest)))
    return (4, int(rest)) if kind == "i" else (0 if kind == "." else 1, rest)
