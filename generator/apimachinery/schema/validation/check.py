"""The fast pass: is a value valid, yes or no.

Theory. Each node becomes one closure. Scalars, which are most of an object, cost no call: a child whose only rule
is its type is a row in its parent's table of types, and one with more rules has a *memo*, a small set of strings and
integers that were found good before (names, enum values, versions come again and again); only a new one is
checked. The pass may only err on the side of *no*: whatever it refuses is explained by the slow pass, which has the
last word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from apimachinery.cel.patterns import PatternError, match_test
from apimachinery.schema.formats import string_format_check
from apimachinery.schema.node import MISSING, SchemaNode
from apimachinery.schema.validation.explain import explain, in_enum
from apimachinery.schema.validation.lists import distinct_check

Check = Callable[[Any], bool]
Memo = set[Any]

_INT64 = 2**63
_UNBOUNDED = 2**62
_MEMO_SIZE = 64
_MEMO_LENGTH = 64


class SchemaChecker:
    """Compiles nodes to closures."""

    def check(self, node: SchemaNode) -> Check:
        """The closure of a node."""
        if len(node.types) > 1 or node.unique_items:
            return self._of_several_types(node)
        base = self._by_type(node)
        if node.enum:
            base = _with_enum(base, node.enum)
        if node.any_of or node.one_of or node.all_of or node.negated is not None:
            return self._with_logic(node, base)
        return _or_null(base) if node.nullable and not node.enum else base

    def _with_logic(self, node: SchemaNode, base: Check) -> Check:
        """What a node asks for itself is checked first, then its alternatives, which only restrict."""
        any_of, one_of, all_of = (
            [self.check(_as_restriction(each)) for each in several]
            for several in (node.any_of, node.one_of, node.all_of)
        )
        negated = node.negated

        def check(value: Any) -> bool:
            if value is None or not base(value):
                return value is None and not explain(node, value).faults
            return (
                all(each(value) for each in all_of)
                and (not any_of or any(each(value) for each in any_of) or not explain(node, value).faults)
                and (
                    not one_of or sum(each(value) for each in one_of) == 1 or not explain(node, value).faults
                )
                and (negated is None or bool(explain(negated, value).faults))
            )

        return check

    def _of_several_types(self, node: SchemaNode) -> Check:
        """An integer or string, or whatever else has more than one type."""
        if node.types != ("integer", "string") or node.enum or node.unique_items:
            return lambda value: not explain(node, value).faults
        logic = node.any_of or node.one_of or node.all_of or node.negated is not None
        as_text, as_number = _string(node), _number(node, whole=True)

        def check(value: Any) -> bool:
            kind = type(value)
            if (kind is int and as_number(value)) or (kind is str and as_text(value)):
                return not logic or not explain(node, value).faults
            return not explain(node, value).faults

        return check

    def _by_type(self, node: SchemaNode) -> Check:
        kind = node.types[0] if node.types else ""
        if kind == "object":
            return self._object(node)
        if kind == "array":
            return self._list(node)
        if kind == "string":
            return _string(node)
        if kind in ("integer", "number"):
            return _number(node, whole=kind == "integer")
        if kind == "boolean":
            return _is_bool
        if kind or node.format:
            return lambda value: not explain(node, value).faults
        return self._untyped(node)

    def _untyped(self, node: SchemaNode) -> Check:
        """No type: each rule meets the values of its type alone."""
        as_object, as_list = self._object(node), self._list(node)
        as_text, as_number = _string(node), _number(node, whole=False)

        def check(value: Any) -> bool:
            kind = type(value)
            if kind is dict:
                return as_object(value)
            if kind is str:
                return as_text(value)
            if kind is list:
                return as_list(value)
            return as_number(value) if kind is int or kind is float else True

        return check

    def _list(self, node: SchemaNode) -> Check:
        low = node.min_items or 0
        high = node.max_items if node.max_items is not None else _UNBOUNDED
        items = node.items
        distinct = distinct_check(node)
        if items is None:
            return lambda value: type(value) is list and low <= len(value) <= high
        plain, memo = _plain_type(items), _new_memo(items)
        check_item = _remembering(self.check(items), memo)
        only = {plain}

        def check(value: Any) -> bool:
            if type(value) is not list or not low <= len(value) <= high:
                return False
            if plain is not None and set(map(type, value)) <= only:
                return distinct is None or distinct(value)
            return all(map(check_item, value)) and (distinct is None or distinct(value))

        return check

    def _object(self, node: SchemaNode) -> Check:
        low = node.min_properties or 0
        high = node.max_properties if node.max_properties is not None else _UNBOUNDED
        required = tuple(node.required)
        plain: dict[str, type] = {}
        memos: dict[str, Memo] = {}
        checks: dict[str, Check] = {}
        for name, child in node.properties.items():
            if (kind := _plain_type(child)) is not None:
                plain[name] = kind
            if (memo := _new_memo(child)) is not None:
                memos[name] = memo
            checks[name] = _remembering(self.check(child), memos.get(name))
        additional = node.additional
        others = self.check(additional) if isinstance(additional, SchemaNode) else None
        closed = additional is False
        if others is not None and not node.properties:
            assert isinstance(additional, SchemaNode)
            return _map(additional, others, frozenset(required), low, high)
        get_plain, get_memo, get_check = plain.get, memos.get, checks.get
        has_demands = bool(required or low or high < _UNBOUNDED)

        def check(value: Any) -> bool:
            if type(value) is not dict:
                return False
            if has_demands:
                for name in required:
                    if name not in value:
                        return False
                if not low <= len(value) <= high:
                    return False
            for name, each in value.items():
                kind = type(each)
                if get_plain(name) is kind:
                    continue
                if kind is str or kind is int:
                    memo = get_memo(name)
                    if memo is not None and each in memo:
                        continue
                inner = get_check(name)
                if inner is not None:
                    if not inner(each):
                        return False
                elif closed or (others is not None and not others(each)):
                    return False
            return True

        return check


def _map(values: SchemaNode, check_value: Check, required: frozenset[str], low: int, high: int) -> Check:
    plain = _plain_type(values)
    only = {plain}

    def check(value: Any) -> bool:
        if type(value) is not dict or not low <= len(value) <= high or not required <= value.keys():
            return False
        if plain is not None and set(map(type, value.values())) <= only:
            return True
        return all(map(check_value, value.values()))

    return check


def _string(node: SchemaNode) -> Check:
    low, high = node.min_length or 0, node.max_length
    test: Callable[[str], bool] | None = None
    if node.pattern:
        try:
            test = match_test(node.pattern)
        except PatternError:
            return _nothing
    check_format = string_format_check(node.format) if node.format else None
    if low <= 0 and high is None and test is None and check_format is None:
        return _is_str
    most = high if high is not None else _UNBOUNDED

    def check(value: Any) -> bool:
        try:
            return (
                type(value) is str
                and low <= len(value) <= most
                and (test is None or test(value))
                and (check_format is None or check_format(value))
            )
        except PatternError:  # of a program too large for this text; the slow pass says so
            return False

    return check


def _number(node: SchemaNode, *, whole: bool) -> Check:
    bounds = (node.minimum, node.maximum)
    simple = (
        node.multiple_of is None
        and node.format in ("", "int32", "int64", "double", "float64")
        and all(bound is None or bound == int(bound) for bound in bounds)
    )
    if not simple:
        return lambda value: not explain(node, value).faults
    low, high = -_INT64, _INT64 - 1
    if whole and node.format == "int32":
        low, high = -(2**31), 2**31 - 1
    if node.minimum is not None:
        low = max(low, int(node.minimum) + node.exclusive_minimum)
    if node.maximum is not None:
        high = min(high, int(node.maximum) - node.exclusive_maximum)

    def check(value: Any) -> bool:
        return (type(value) is int and low <= value <= high) or not explain(node, value).faults

    return check


def _plain_type(node: SchemaNode) -> type | None:
    """The Python type that is all a node asks for, None where it asks for more (or for less: null)."""
    if len(node.types) != 1 or node.enum or node.nullable or _has_logic(node):
        return None
    kind = node.types[0]
    if kind == "boolean":
        return bool
    if kind == "string" and not (node.pattern or node.min_length or node.max_length is not None):
        return None if string_format_check(node.format) else str
    return None


def _has_logic(node: SchemaNode) -> bool:
    return bool(node.any_of or node.one_of or node.all_of) or node.negated is not None


def _new_memo(node: SchemaNode) -> Memo | None:
    """A memo for a node of strings or numbers; what it asks for must hang on the value alone."""
    return set() if node.types and set(node.types) <= {"string", "integer", "number"} else None


def _remembering(check: Check, memo: Memo | None) -> Check:
    """A check that keeps what it finds good."""
    if memo is None:
        return check

    def remember(value: Any) -> bool:
        kind = type(value)
        if kind is not str and kind is not int:
            return check(value)
        if value in memo:
            return True
        if not check(value):
            return False
        if kind is int or len(value) <= _MEMO_LENGTH:
            if len(memo) >= _MEMO_SIZE:
                memo.clear()
            memo.add(value)
        return True

    return remember


def _as_restriction(node: SchemaNode) -> SchemaNode:
    """An alternative: its defaults and unknown fields are nobody's business."""
    return replace(node, default=MISSING)


def _with_enum(base: Check, allowed: tuple[Any, ...]) -> Check:
    if all(isinstance(each, str) for each in allowed):
        texts = frozenset(allowed)
        return lambda value: type(value) is str and value in texts and base(value)
    return lambda value: in_enum(value, allowed) and base(value)


def _or_null(base: Check) -> Check:
    return lambda value: value is None or base(value)


def _is_str(value: Any) -> bool:
    return type(value) is str


def _is_bool(value: Any) -> bool:
    return type(value) is bool


def _nothing(value: Any) -> bool:
    return False
