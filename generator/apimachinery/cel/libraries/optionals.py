"""Optional values: ``optional.of``, ``optional.none``, ``or``, ``orValue``; ``first`` and ``last`` of lists."""

from __future__ import annotations

from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import ABSENT, Duration, Optional, Timestamp


def _value(held: Optional) -> Any:
    if held is ABSENT:
        raise EvalError("optional.none() dereference")
    return held.value


_FIRST_INSTANT = -62135596800 * 10**9


def _is_zero(value: Any) -> bool:
    if isinstance(value, Timestamp):
        return value.instant == _FIRST_INSTANT
    if isinstance(value, Duration):
        return value.nanos == 0
    return value is ABSENT or (
        isinstance(value, (bool, int, float, str, bytes, list, dict, type(None))) and not value
    )


def _of_non_zero(value: Any) -> Optional:
    return ABSENT if _is_zero(value) else Optional(value)


def _unwrap(items: list[Any]) -> list[Any]:
    return [item.value for item in items if item is not ABSENT]


def _special(*args: Any) -> Any:
    raise AssertionError("compiled specially")


def _index(holder: Optional, key: Any) -> Any:
    raise AssertionError("compiled specially")


def optionals() -> Library:
    """The optional library, version 2."""
    lib = Library("optional")
    lib.overload("optional.of", "optional_of", "(V) optional(V)", Optional)
    lib.overload("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(V) optional(V)", _of_non_zero)
    lib.overload("optional.none", "optional_none", "() optional(V)", lambda: ABSENT)
    lib.overload("value", "optional_value", "optional(V).() V", _value)
    lib.overload("hasValue", "optional_hasValue", "optional(V).() bool", lambda held: held is not ABSENT)
    lib.overload("or", "optional_or_optional", "optional(V).(optional(V)) optional(V)", _special)
    lib.overload("orValue", "optional_orValue_value", "optional(V).(V) V", _special)
    lib.add(
        "_?._",
        ("select_optional_field", "(dyn, string) optional(V)", _special),
    )
    lib.add(
        "_[?_]",
        ("list_optindex_optional_int", "(list(V), int) optional(V)", _special),
        ("optional_list_optindex_optional_int", "(optional(list(V)), int) optional(V)", _special),
        ("map_optindex_optional_value", "(map(K, V), K) optional(V)", _special),
        ("optional_map_optindex_optional_value", "(optional(map(K, V)), K) optional(V)", _special),
    )
    lib.add(
        "_[_]",
        ("optional_list_index_int", "(optional(list(V)), int) optional(V)", _index),
        ("optional_map_index_value", "(optional(map(K, V)), K) optional(V)", _index),
    )
    lib.overload("optional.unwrap", "optional_unwrap", "(list(optional(V))) list(V)", _unwrap)
    lib.overload("unwrapOpt", "optional_unwrapOpt", "list(optional(V)).() list(V)", _unwrap)
    lib.overload("first", "list_first", "list(V).() optional(V)", lambda x: Optional(x[0]) if x else ABSENT)
    lib.overload("last", "list_last", "list(V).() optional(V)", lambda x: Optional(x[-1]) if x else ABSENT)
    return lib
