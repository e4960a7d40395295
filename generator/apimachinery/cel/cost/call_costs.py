"""What one call costs at run time, as cel-go and Kubernetes' libraries count it.

``runtime_cost(function, overload)`` gives either a number or a function of the arguments. Sizes are those of
``size_of``: characters, bytes, items, entries, else 1. A tenth of a unit is counted for each character or byte
traversed, a quarter for each character of a regular expression, always rounded up as a float, as Go does.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any

from apimachinery.cel.values.errors import CostLimitError
from apimachinery.cel.values.values import MAX_STEPS, Opaque, size_of

CostOfCall = int | Callable[..., int]

TRAVERSAL = 0.1
REGEX = 0.25
LIST_CREATE = 10
MAP_CREATE = 30
STRUCT_CREATE = 40
AUTHORIZATION_CHECK = 350_000
SELECTOR_REQUIREMENT = LIST_CREATE + STRUCT_CREATE


def traverse(size: int, factor: float = TRAVERSAL) -> int:
    """The cost of walking ``size`` characters."""
    return ceil(size * factor)


def _first(*args: Any) -> int:
    return ceil(size_of(args[0]) * TRAVERSAL)


def _first_twice(*args: Any) -> int:
    return ceil(size_of(args[0]) * 2 * TRAVERSAL)


def _shorter(a: Any, b: Any) -> int:
    return ceil(min(size_of(a), size_of(b)) * TRAVERSAL)


def _both(a: Any, b: Any) -> int:
    return ceil((size_of(a) + size_of(b)) * TRAVERSAL)


LONG = 1000


def _concatenation(a: Any, b: Any) -> int:
    """1, as Kubernetes counts; but copying what is long is not free here, so that it cannot go on forever."""
    size = size_of(a) + size_of(b)
    return 1 + size // LONG


def _in_list(item: Any, items: Any) -> int:
    return size_of(items)


def _pattern(text: Any, pattern: Any, *rest: Any) -> int:
    return ceil((1.0 + size_of(text)) * TRAVERSAL) * ceil(size_of(pattern) * REGEX)


def _contains(text: Any, part: Any) -> int:
    return ceil(size_of(text) * TRAVERSAL) * ceil(size_of(part) * TRAVERSAL)


def _equality(a: Any, b: Any) -> int:
    return 1 if isinstance(a, Opaque) else _shorter(a, b)


def traversal(value: Any) -> int:
    """The cost of walking ``value`` as a tree."""
    total, stack, steps = 0, [value], 0
    while stack:
        value = stack.pop()
        steps += 1
        if steps > MAX_STEPS:
            raise CostLimitError
        if isinstance(value, str):
            total += int(len(value.encode("utf-8", "surrogatepass")) * TRAVERSAL)
        elif isinstance(value, bytes):
            total += int(len(value) * TRAVERSAL)
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, dict):
            stack.extend(value)
            stack.extend(value.values())
        else:
            total += 1
    return total


def _traversal(*args: Any) -> int:
    return traversal(args[0])


def _selector(receiver: Any, selector: Any) -> int:
    length = size_of(selector)
    return LIST_CREATE + traverse(length) + ceil(ceil(length * 0.5) * SELECTOR_REQUIREMENT)


def _contains_ip(network: Any, other: Any) -> int:
    cost = traverse(2 * size_of(network))
    return cost + traverse(size_of(other)) if isinstance(other, str) else cost


def _contains_cidr(network: Any, other: Any) -> int:
    return _contains_ip(network, other) + traverse(size_of(network)) + 1


def _validate(named: Any, text: Any) -> int:
    return traverse(1 + size_of(text)) * traverse(named.max_regex_size, REGEX)


def _ip(value: Any) -> int:
    return _first(value) if isinstance(value, str) else 1


def _product(a: Any, b: Any) -> int:
    return 1 + size_of(a) * size_of(b)


def _product_twice(a: Any, b: Any) -> int:
    return 1 + 2 * size_of(a) * size_of(b)


def _allocate(size: int) -> int:
    """A call that makes a list of ``size`` items."""
    return size + 1 + LIST_CREATE


def _sliced(items: Any, start: int, end: int) -> int:
    fits = 0 <= start <= end <= size_of(items)
    return _allocate(end - start if fits else 1)  # an error has the size of any one value


def _ranged(count: int) -> int:
    return _allocate(max(count, 0))


def _copied(items: Any) -> int:
    return _allocate(size_of(items))


def _flattened(items: Any, depth: int = 1) -> int:
    return _allocate(size_of(items) * max(depth, 0))


def _compare_all(items: Any) -> int:
    count = size_of(items)
    texts = count and isinstance(items[0], (str, bytes))
    return _allocate(int(count * count * (2.0 + TRAVERSAL if texts else 2.0)))


def _compare_keys(items: Any, keys: Any) -> int:
    return _compare_all(keys)


_BY_OVERLOAD: dict[str, CostOfCall] = {
    **dict.fromkeys(("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"), _first),
    **dict.fromkeys(("strings_quote", "string_format"), _first),
    "in_list": _in_list,
    **{
        f"{word}_{kind}": _shorter
        for word in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
    "add_string": _both,
    "add_bytes": _both,
    "matches_string": _pattern,
    "contains_string": _contains,
    "list_sets_contains_list": _product,
    "list_sets_intersects_list": _product,
    "list_sets_equivalent_list": _product_twice,
    "list_slice": _sliced,
    "list_flatten": _copied,
    "list_flatten_int": _flattened,
    "lists_range": _ranged,
    "list_reverse": _copied,
    "list_distinct": _compare_all,
}

_KUBERNETES: dict[str, CostOfCall] = {
    "check": AUTHORIZATION_CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _traversal),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _first),
    **dict.fromkeys(("replace", "split"), _first_twice),
    **dict.fromkeys(("find", "findAll"), _pattern),
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _first),
    "ip": _ip,
    "ip.isCanonical": _first_twice,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _first),
    "validate": _validate,
}
_BY_RESULT = {"join"}


def cost_needs_result(function: str) -> bool:
    """Whether the cost of ``function`` follows from its result: a tenth of it, twice."""
    return function in _BY_RESULT


def runtime_cost(function: str, overload: str) -> CostOfCall:
    """The cost of calling ``function``; ``overload`` is empty where it is not known before the values are."""
    found = _KUBERNETES.get(function)
    if found is not None:
        return found
    if function in ("_==_", "_!=_"):
        return _equality if function == "_==_" else _shorter
    if function == "_+_" and overload in ("", "add_list"):
        return _concatenation
    if overload.endswith("_sort"):
        return _compare_all
    if overload.endswith("_sortByAssociatedKeys"):
        return _compare_keys
    return _BY_OVERLOAD.get(overload, 1)
