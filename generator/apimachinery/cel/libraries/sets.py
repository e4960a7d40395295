"""sets.contains, sets.equivalent, sets.intersects."""

from __future__ import annotations

from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import values as v


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(v.contains(items, wanted) for wanted in part)


def _equivalent(a: list[Any], b: list[Any]) -> bool:
    return _contains(a, b) and _contains(b, a)


def _intersects(a: list[Any], b: list[Any]) -> bool:
    return any(v.contains(b, item) for item in a)


def sets() -> Library:
    """The library."""
    lib = Library("sets")
    lib.overload("sets.contains", "list_sets_contains_list", "(list(T), list(T)) bool", _contains)
    lib.overload("sets.equivalent", "list_sets_equivalent_list", "(list(T), list(T)) bool", _equivalent)
    lib.overload("sets.intersects", "list_sets_intersects_list", "(list(T), list(T)) bool", _intersects)
    return lib
