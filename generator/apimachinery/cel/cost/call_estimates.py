"""Static estimates of single calls: cel-go's standard functions, its extensions, and Kubernetes' functions.

``estimate_call`` gives the cost of the call without its arguments, and the size of the result where it is known,
or None where the call costs what any call costs: 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.cel.cost.call_costs import (
    AUTHORIZATION_CHECK,
    LIST_CREATE,
    REGEX,
    SELECTOR_REQUIREMENT,
    TRAVERSAL,
)
from apimachinery.cel.syntax.ast import Literal, Node
from apimachinery.cel.values.ranges import FREE, MAX, ONE, UNKNOWN, Range, fixed
from apimachinery.cel.values.types import Type

SizeOfValue = Callable[[tuple[str, ...], Type], Range | None]
MAX_NAME_FORMAT_REGEX = 128
MAX_FORMAT_SIZE = 64
ADDRESS = Range(4, 16)


@dataclass(slots=True)
class Argument:
    """What is known of an argument: its node, type, path and computed size."""

    node: Node
    type: Type
    path: tuple[str, ...] | None
    size: Range | None


@dataclass(slots=True)
class CallEstimate:
    """The cost of a call and the size of its result."""

    cost: Range
    size: Range | None = None


class _Call:
    def __init__(self, overload: str, target: Argument | None, args: list[Argument], size_of: SizeOfValue):
        self.overload = overload
        self.target = target
        self.args = args
        self.size_of = size_of

    def size(self, argument: Argument) -> Range:
        return argument.size or self.size_of(argument.path or (), argument.type) or UNKNOWN

    def element_size(self, holder: Argument) -> tuple[Type, Range] | None:
        """The type and size of the items of a list (of the first parameter of any type)."""
        if not holder.type.params:
            return None
        path = (*holder.path, "@items") if holder.path is not None else ()
        element = holder.type.params[0]
        return element, self.size_of(path, element) or UNKNOWN


_Rule = Callable[[_Call], CallEstimate | None]


def estimate_call(
    function: str, overload: str, target: Argument | None, args: list[Argument], size_of: SizeOfValue
) -> CallEstimate | None:
    """The estimate of one overload of a call; None: 1."""
    call = _Call(overload, target, args, size_of)
    rule = _EXTENSIONS.get(overload)
    if rule is None and overload.endswith("_sort"):
        rule = _sort
    if rule is None and overload.endswith("_sortByAssociatedKeys"):
        rule = _sort_by
    found = rule(call) if rule is not None else None
    if found is None:
        by_function = _KUBERNETES.get(function)
        found = by_function(call) if by_function is not None else None
    if found is None:
        by_overload = _STANDARD.get(overload)
        found = by_overload(call) if by_overload is not None else None
    return found


def _constant(cost: int) -> _Rule:
    return lambda call: CallEstimate(fixed(cost))


# Standard functions


def _format(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    return CallEstimate((call.target.size or UNKNOWN).scaled(TRAVERSAL))


def _string_to_bytes(call: _Call) -> CallEstimate | None:
    size = call.args[0].size or UNKNOWN
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low, size.high * 4 & MAX))


def _bytes_to_string(call: _Call) -> CallEstimate | None:
    size = call.args[0].size or UNKNOWN
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low // 4, size.high))


def _quote(call: _Call) -> CallEstimate | None:
    size = call.args[0].size or UNKNOWN
    return CallEstimate(size.scaled(TRAVERSAL), Range(size.low + 2 & MAX, size.high * 2 + 2 & MAX))


def _affix(call: _Call) -> CallEstimate | None:
    return CallEstimate((call.args[0].size or UNKNOWN).scaled(TRAVERSAL))


def _in_list(call: _Call) -> CallEstimate | None:
    return CallEstimate((call.args[1].size or UNKNOWN).scaled(1))


def _matches(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    text = ((call.target.size or UNKNOWN) + ONE).scaled(TRAVERSAL)
    return CallEstimate(text * (call.args[0].size or UNKNOWN).scaled(REGEX))


def _contains(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    text = (call.target.size or UNKNOWN).scaled(TRAVERSAL)
    return CallEstimate(text * (call.args[0].size or UNKNOWN).scaled(TRAVERSAL))


def _compare(call: _Call) -> CallEstimate | None:
    smallest = min((call.args[0].size or UNKNOWN).high, (call.args[1].size or UNKNOWN).high)
    return CallEstimate(Range(1 if smallest > 0 else 0, smallest).scaled(TRAVERSAL))


_STANDARD: dict[str, _Rule] = {
    "string_format": _format,
    "string_to_bytes": _string_to_bytes,
    "bytes_to_string": _bytes_to_string,
    "strings_quote": _quote,
    "starts_with_string": _affix,
    "ends_with_string": _affix,
    "in_list": _in_list,
    "matches_string": _matches,
    "contains_string": _contains,
    "equals": _compare,
    "not_equals": _compare,
    **{
        f"{word}_{kind}": _compare
        for word in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}

# Extensions


def _allocating(size: Range, factor: float) -> CallEstimate:
    return CallEstimate(size.scaled(factor) + ONE + fixed(LIST_CREATE), size)


def _sets(factor: int) -> _Rule:
    def estimate(call: _Call) -> CallEstimate | None:
        product = call.size(call.args[0]) * call.size(call.args[1])
        return CallEstimate(product.scaled(factor) + ONE)

    return estimate


def _int_or(argument: Argument, default: int) -> int:
    if isinstance(argument.node, Literal) and type(argument.node.value) is int:
        return max(0, argument.node.value)
    return default


def _slice(call: _Call) -> CallEstimate | None:
    assert call.target
    start = _int_or(call.args[0], 0)
    end = _int_or(call.args[1], call.size(call.target).high)
    return _allocating(fixed(end - start & MAX), 1)


def _range(call: _Call) -> CallEstimate | None:
    return _allocating(fixed(_int_or(call.args[0], MAX)), 1)


def _reverse(call: _Call) -> CallEstimate | None:
    assert call.target
    return _allocating(call.size(call.target), 1)


def _flatten(call: _Call) -> CallEstimate | None:
    assert call.target
    depth = _int_or(call.args[0], MAX) if call.args else 1
    return _allocating(call.size(call.target), float(depth))


def _distinct(call: _Call) -> CallEstimate | None:
    assert call.target
    size = call.size(call.target)
    return _allocating(size * size, 2.0)


def _sorted(call: _Call, keys: Argument) -> CallEstimate | None:
    size = call.size(keys)
    texts = call.overload.startswith(("list_string", "list_bytes"))
    return _allocating(size * size, 2.0 + TRAVERSAL if texts else 2.0)


def _sort(call: _Call) -> CallEstimate | None:
    assert call.target
    return _sorted(call, call.target)


def _sort_by(call: _Call) -> CallEstimate | None:
    return _sorted(call, call.args[0])


_EXTENSIONS: dict[str, _Rule] = {
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
    "list_slice": _slice,
    "lists_range": _range,
    "list_reverse": _reverse,
    "list_flatten": _flatten,
    "list_flatten_int": _flatten,
    "list_distinct": _distinct,
}

# Kubernetes' functions


def _selector(call: _Call) -> CallEstimate | None:
    size = call.size(call.args[0])
    parse = size.scaled(TRAVERSAL)
    requirements = size.scaled(0.5).scaled(SELECTOR_REQUIREMENT)
    return CallEstimate(fixed(LIST_CREATE) + parse + requirements)


def _walk_list(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    element = call.element_size(call.target)
    if element is None:
        return CallEstimate(size.scaled(TRAVERSAL))
    cost = ONE
    if element[0].kind in ("string", "bytes"):
        cost = cost + element[1].scaled(TRAVERSAL)
    return CallEstimate(size * cost)


def _walk_argument(call: _Call) -> CallEstimate | None:
    if len(call.args) != 1:
        return None
    size = call.size(call.args[0])
    return CallEstimate(size.scaled(TRAVERSAL), size)


def _walk_target(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    return CallEstimate(size.scaled(TRAVERSAL), size)


def _replace(call: _Call) -> CallEstimate | None:
    if call.target is None or len(call.args) < 2:
        return None
    size, old, new = call.size(call.target), call.size(call.args[0]), call.size(call.args[1])
    most, kept_most = 0, 0
    if old.low == 0:
        most, kept_most = min(size.high + 1, MAX), size.high
    elif new.high <= old.low:
        kept_most = size.high
    else:
        most = min(-(-size.high // old.low), MAX)
    least, kept_least = 0, 0
    if old.high == 0:
        least, kept_least = min(size.low + 1, MAX), size.low
    elif old.high <= new.low:
        kept_least = size.low
    else:
        least = -(-size.low // old.high)
    result = Range(least, most) * new + Range(kept_least, kept_most)
    return CallEstimate(size.scaled(2 * TRAVERSAL), result)


def _split(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    size = call.size(call.target)
    most = size.high
    if len(call.args) > 1:
        node = call.args[1].node
        if isinstance(node, Literal) and type(node.value) is int:
            most = node.value & MAX
    return CallEstimate(size.scaled(2 * TRAVERSAL), Range(0, most))


def _join(call: _Call) -> CallEstimate | None:
    if call.target is None:
        return None
    count = call.size(call.target)
    element = call.element_size(call.target)
    size = count * element[1] if element else FREE
    if call.args:
        between = Range(max(count.low - 1, 0), max(count.high - 1, 0))
        size = size + call.size(call.args[0]) * between
    return CallEstimate(size.scaled(TRAVERSAL), size)


def _find(call: _Call) -> CallEstimate | None:
    if call.target is None or not call.args:
        return None
    size = call.size(call.target)
    text = (size + ONE).scaled(TRAVERSAL)
    pattern = call.size(call.args[0]).scaled(REGEX)
    return CallEstimate(text * pattern, Range(0, size.high))


def _walk_first(factor: float) -> _Rule:
    """Functions that walk their argument once or more: their result has no size of its own."""

    def estimate(call: _Call) -> CallEstimate | None:
        if not call.args:
            return None
        return CallEstimate(call.size(call.args[0]).scaled(factor))

    return estimate


def _ip(call: _Call) -> CallEstimate | None:
    if call.overload == "cidr_ip":
        return CallEstimate(ONE)
    return _walk_first(TRAVERSAL)(call)


def _contains_ip(call: _Call) -> CallEstimate | None:
    cost = (ADDRESS + ADDRESS).scaled(TRAVERSAL)
    if call.overload == "cidr_contains_ip_string":
        cost = cost + call.size(call.args[0]).scaled(TRAVERSAL)
    return CallEstimate(cost)


def _contains_cidr(call: _Call) -> CallEstimate | None:
    cost = (ADDRESS + ADDRESS).scaled(TRAVERSAL) + ADDRESS.scaled(TRAVERSAL) + ONE
    if call.overload == "cidr_contains_cidr_string":
        cost = cost + call.size(call.args[0]).scaled(TRAVERSAL)
    return CallEstimate(cost)


def _validate(call: _Call) -> CallEstimate | None:
    size = call.size(call.args[0])
    return CallEstimate(size.scaled(TRAVERSAL).scaled(MAX_NAME_FORMAT_REGEX * REGEX))


_UNIT_TYPES = frozenset(("kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"))


def _equals(call: _Call) -> CallEstimate | None:
    if len(call.args) != 2:
        return None
    left, right = call.args
    if left.type != right.type or left.type.kind not in ("object", "opaque"):
        return None
    name = left.type.name
    if name in _UNIT_TYPES or name.startswith("kubernetes.authorization."):
        return CallEstimate(ONE)
    if name == "kubernetes.NamedFormat":
        return CallEstimate(Range(1, MAX_FORMAT_SIZE).scaled(TRAVERSAL))
    if name == "kubernetes.URL":
        size = right.size or ONE
        return CallEstimate(Range(1, size.high).scaled(TRAVERSAL))
    return None


def _all(names: str, rule: _Rule) -> dict[str, _Rule]:
    return dict.fromkeys(names.split(), rule)


_KUBERNETES: dict[str, _Rule] = {
    "check": _constant(AUTHORIZATION_CHECK),
    **_all(
        "serviceAccount path group resource subresource namespace name allowed reason error errored",
        _constant(1),
    ),
    **_all("fieldSelector labelSelector", _selector),
    **_all("isSorted sum max min indexOf lastIndexOf", _walk_list),
    **_all("url jsonpatch.escapeKey", _walk_argument),
    **_all("lowerAscii upperAscii substring trim", _walk_target),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **_all("find findAll", _find),
    **_all("cidr isIP isCIDR quantity isQuantity semver isSemver", _walk_first(TRAVERSAL)),
    "ip.isCanonical": _walk_first(2 * TRAVERSAL),
    "ip": _ip,
    **_all(
        "masked prefixLength family isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast",
        _constant(1),
    ),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "format.named": _constant(1),
    **_all(
        "sign asInteger isInteger asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch",
        _constant(1),
    ),
    **_all("getScheme getHostname getHost getPort getEscapedPath getQuery", _constant(1)),
    "_==_": _equals,
}
