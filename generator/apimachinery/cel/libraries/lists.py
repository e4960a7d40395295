"""Lists: Kubernetes' own functions (isSorted, sum, min, max, indexOf, lastIndexOf) and cel-go's extension
(slice, flatten, sort, sortBy, distinct, reverse, lists.range).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.syntax.ast import CallNode, Ident, Node
from apimachinery.cel.syntax.macros import STANDARD, Expander, MacroKey, bind
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import Duration

from .integers import check_int, check_uint
from .standard import MAX_ITEMS

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


_ZEROS = {"int": 0, "uint": v.Uint(0), "double": 0.0, "duration": Duration(0)}


def _sum_from(zero: Any) -> Callable[[list[Any]], Any]:
    return lambda items: _sum(items) if items else zero


def _sum(items: list[Any]) -> Any:
    """The sum by the kind of the items: the checker may not know it."""
    kind = type(items[0])
    if kind not in _ADD or any(type(item) is not kind for item in items):
        raise EvalError(v.NO_OVERLOAD)
    add = _ADD[kind]
    total = items[0]
    for item in items[1:]:
        total = add(total, item)
    return total


def _add_durations(a: Duration, b: Duration) -> Duration:
    return Duration(a.nanos + b.nanos)


_ADD: dict[type, Callable[[Any, Any], Any]] = {
    int: lambda a, b: check_int(a + b),
    v.Uint: lambda a, b: check_uint(int(a) + int(b)),
    float: lambda a, b: a + b,
    Duration: _add_durations,
}


def _is_sorted(items: list[Any]) -> bool:
    return all(v.less_equal(a, b) for a, b in pairwise(items))


def _least(items: list[Any]) -> Any:
    if not items:
        raise EvalError("min called on empty list")
    best = items[0]
    for item in items[1:]:
        if v.less(item, best):
            best = item
    return best


def _greatest(items: list[Any]) -> Any:
    if not items:
        raise EvalError("max called on empty list")
    best = items[0]
    for item in items[1:]:
        if v.less(best, item):
            best = item
    return best


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((i for i, item in enumerate(items) if v.equal(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((i for i in range(len(items) - 1, -1, -1) if v.equal(items[i], wanted)), -1)


def kubernetes_lists() -> Library:
    """What Kubernetes adds to lists."""
    lib = Library("kubernetes lists")
    for kind in _ORDERED:
        lib.overload("isSorted", f"list_{kind}_is_sorted_bool", f"list({kind}).() bool", _is_sorted)
        lib.overload("min", f"list_{kind}_min_{kind}", f"list({kind}).() {kind}", _least)
        lib.overload("max", f"list_{kind}_max_{kind}", f"list({kind}).() {kind}", _greatest)
    for kind, zero in _ZEROS.items():
        lib.overload("sum", f"list_{kind}_sum_{kind}", f"list({kind}).() {kind}", _sum_from(zero))
    lib.overload("indexOf", "list_a_index_of_int", "list(A).(A) int", _index_of)
    lib.overload("lastIndexOf", "list_a_last_index_of_int", "list(A).(A) int", _last_index_of)
    return lib


# cel-go's extension


def _slice(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise EvalError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvalError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items[start:end])


def _flatten(items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise EvalError("level must be non-negative")
    found: list[Any] = []
    stack = [(iter(items), depth)]
    while stack:
        iterator, left = stack[-1]
        for item in iterator:
            if isinstance(item, list) and left > 0:
                stack.append((iter(item), left - 1))
                break
            found.append(item)
            if len(found) > MAX_ITEMS:
                raise CostLimitError
        else:
            stack.pop()
    return found


def _range(count: int) -> list[int]:
    if count > MAX_ITEMS:
        raise CostLimitError
    return list(range(count))


def _compare(a: Any, b: Any) -> int:
    return -1 if v.less(a, b) else 1 if v.less(b, a) else 0


def _sort(items: list[Any]) -> list[Any]:
    return sorted(items, key=cmp_to_key(_sort_order(items)))


def _sort_order(keys: list[Any]) -> Any:
    if keys and any(type(k) is not type(keys[0]) for k in keys):
        raise EvalError("list elements must have the same type")
    if keys and type(keys[0]) not in v._ORDERED:
        raise EvalError("list elements must be comparable")
    return _compare


def _sort_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len(items) != len(keys):
        raise EvalError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list"
        )
    order = cmp_to_key(_sort_order(keys))
    places = sorted(range(len(items)), key=lambda place: order(keys[place]))
    return [items[place] for place in places]


def _distinct(items: list[Any]) -> list[Any]:
    found: list[Any] = []
    strings: set[str] = set()
    for item in items:
        if type(item) is str:
            if item not in strings:
                strings.add(item)
                found.append(item)
        elif not v.contains(found, item):
            found.append(item)
    return found


def list_extension() -> Library:
    """cel-go's lists extension, version 3."""
    lib = Library("lists")
    lib.overload("slice", "list_slice", "list(T).(int, int) list(T)", _slice)
    lib.overload("flatten", "list_flatten", "list(list(T)).() list(T)", _flatten)
    lib.overload("flatten", "list_flatten_int", "list(dyn).(int) list(dyn)", _flatten)
    lib.overload("lists.range", "lists_range", "(int) list(int)", _range)
    for kind in ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"):
        lib.overload("sort", f"list_{kind}_sort", f"list({kind}).() list({kind})", _sort)
        lib.overload(
            "@sortByAssociatedKeys",
            f"list_{kind}_sortByAssociatedKeys",
            f"list(T).(list({kind})) list(T)",
            _sort_by,
        )
    lib.overload("distinct", "list_distinct", "list(T).() list(T)", _distinct)
    lib.overload("reverse", "list_reverse", "list(T).() list(T)", lambda items: list(reversed(items)))
    return lib


def _sort_by_macro(at: int, target: Node | None, args: list[Node]) -> Node | None:
    assert target is not None
    name = "@__sortBy_input__"
    keys = STANDARD[("map", 2, True)](at, Ident(at, name), args)
    assert keys is not None
    return bind(at, name, target, CallNode(at, "@sortByAssociatedKeys", [keys], Ident(at, name)))


LIST_MACROS: dict[MacroKey, Expander] = {("sortBy", 2, True): _sort_by_macro}
