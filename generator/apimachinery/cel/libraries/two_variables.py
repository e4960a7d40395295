"""The function behind transformMap and transformMapEntry."""

from __future__ import annotations

from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values.values import insert


def _insert(found: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    copy = dict(found)
    insert(copy, key, value)
    return copy


def _insert_all(found: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    copy = dict(found)
    for key, value in more.items():
        insert(copy, key, value)
    return copy


def two_variable_comprehensions() -> Library:
    """``cel.@mapInsert``; the macros are in ``macros.TWO_VARIABLES``."""
    lib = Library("two-variable comprehensions")
    lib.overload("cel.@mapInsert", "@mapInsert_map_key_value", "(map(K, V), K, V) map(K, V)", _insert)
    lib.overload("cel.@mapInsert", "@mapInsert_map_map", "(map(K, V), map(K, V)) map(K, V)", _insert_all)
    return lib
