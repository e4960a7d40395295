"""The fast pass: is a value valid, yes or no.

Theory. Each node becomes one closure; a child whose only rule is its type becomes no closure at all but a row
in its parent's table of types, so that the usual field costs one lookup and one comparison. The pass may only
err on the side of *no*: whatever it refuses is explained by the slow pass, which has the last word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apimachinery.schema_node import Node
from apimachinery.validation.explain import explain
from apimachinery.validation.formats import string_format_check
from apimachinery.validation.patterns import PatternError, compile_pattern

Check = Callable[[Any], bool]

_PLAIN_TYPES = {"string": str, "boolean": bool, "object": dict, "array": list}
_INT64 = 2**63


class Checker:
    """Compiles nodes to closures; each node once."""

    def __init__(self) -> None:
        self._checks: dict[int, tuple[Node, Check]] = {}

    def check(self, node: Node) -> Check:
        """The closure of a node."""
        known = self._checks.get(id(node))
        if known is not None:
            return known[1]
        made = self._compile(node)
        self._checks[id(node)] = (node, made)
        return made

    def _compile(self, node: Node) -> Check:
        if node.any_of or node.one_of or node.negated is not None or len(node.types) > 1 or node.unique_items:
            return self._with_logic(node)
        base = self._compile_type(node)
        if node.all_of:
            parts = (base, *map(self.check, node.all_of))
            base = _every(parts)
        if node.enum:
            base = _with_enum(base, node.enum)
        if node.nullable and not node.enum:
            return _or_null(base)
        return base

    def _with_logic(self, node: Node) -> Check:
        """Nodes with alternatives: what they share is checked first, then the alternatives one by one."""
        if node.types == ("integer", "string") and not (
            node.any_of or node.one_of or node.negated or node.unique_items
        ):
            return self._int_or_string(node)
        any_of, one_of = (
            [self.check(each) for each in node.any_of],
            [self.check(each) for each in node.one_of],
        )
        if len(node.types) > 1 or node.unique_items:
            return lambda value: not explain(node, value).faults
        bare = _without_logic(node)
        base = self._compile(bare)
        self._checks[id(bare)] = (bare, base)
        negated = node.negated

        def check(value: Any) -> bool:
            if value is None or not base(value):
                return not explain(node, value).faults
            if any_of and not any(each(value) for each in any_of):
                return not explain(node, value).faults
            if one_of and sum(each(value) for each in one_of) != 1:
                return not explain(node, value).faults
            return negated is None or bool(explain(negated, value).faults)

        return check

    def _int_or_string(self, node: Node) -> Check:
        as_text, as_number = self._string(node), self._number(node, whole=True)

        def check(value: Any) -> bool:
            kind = type(value)
            if kind is int:
                return as_number(value)
            if kind is str:
                return as_text(value)
            return not explain(node, value).faults

        return check if not node.all_of and not node.enum else lambda value: not explain(node, value).faults

    def _compile_type(self, node: Node) -> Check:
        kind = node.types[0] if node.types else ""
        if kind == "object":
            return self._object(node)
        if kind == "array":
            return self._list(node)
        if kind == "string":
            return self._string(node)
        if kind in ("integer", "number"):
            return self._number(node, whole=kind == "integer")
        if kind == "boolean":
            return _is_bool
        if kind:
            return lambda value: not explain(node, value).faults
        return self._untyped(node)

    def _untyped(self, node: Node) -> Check:
        """No type: each rule meets the values of its type alone."""
        if node.format:
            return lambda value: not explain(node, value).faults
        as_object, as_list = self._object(node), self._list(node)
        as_text, as_number = self._string(node), self._number(node, whole=False)

        def check(value: Any) -> bool:
            kind = type(value)
            if kind is dict:
                return as_object(value)
            if kind is str:
                return as_text(value)
            if kind is list:
                return as_list(value)
            if kind is int or kind is float:
                return as_number(value)
            return True

        return check

    def _string(self, node: Node) -> Check:
        low, high = node.min_length or 0, node.max_length
        search = None
        if node.pattern:
            try:
                search = compile_pattern(node.pattern).search
            except PatternError:
                return lambda value: False
        check_format = string_format_check(node.format) if node.format else None
        if low <= 0 and high is None and search is None and check_format is None:
            return _is_str
        most = high if high is not None else 2**62

        def check(value: Any) -> bool:
            return (
                type(value) is str
                and low <= len(value) <= most
                and (search is None or search(value) is not None)
                and (check_format is None or check_format(value))
            )

        return check

    def _number(self, node: Node, *, whole: bool) -> Check:
        simple = (
            node.multiple_of is None
            and node.format in ("", "int32", "int64", "double", "float64")
            and all(bound is None or bound == int(bound) for bound in (node.minimum, node.maximum))
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

    def _list(self, node: Node) -> Check:
        low, high = node.min_items or 0, node.max_items if node.max_items is not None else 2**62
        items = node.items
        plain = _plain_type(items) if items is not None else None
        if items is None:
            return lambda value: type(value) is list and low <= len(value) <= high
        if plain is not None:
            only = {plain}

            def check_plain(value: Any) -> bool:
                return (
                    type(value) is list
                    and low <= len(value) <= high
                    and (not value or set(map(type, value)) == only)
                )

            return check_plain
        check_item = self.check(items)

        def check(value: Any) -> bool:
            return type(value) is list and low <= len(value) <= high and all(map(check_item, value))

        return check

    def _object(self, node: Node) -> Check:
        low, high = (
            node.min_properties or 0,
            node.max_properties if node.max_properties is not None else 2**62,
        )
        required = frozenset(node.required)
        plain: dict[str, type] = {}
        checks: dict[str, Check] = {}
        for name, child in node.properties.items():
            kind = _plain_type(child)
            if kind is not None:
                plain[name] = kind
            else:
                checks[name] = self.check(child)
        additional = node.additional
        others = self.check(additional) if isinstance(additional, Node) else None
        closed = additional is False
        get_plain, get_check = plain.get, checks.get

        if others is not None and not node.properties:
            assert isinstance(additional, Node)
            return self._map(additional, others, required, low, high)

        def check(value: Any) -> bool:
            if type(value) is not dict or not low <= len(value) <= high or not required <= value.keys():
                return False
            for name, each in value.items():
                if get_plain(name) is type(each):
                    continue
                inner = get_check(name)
                if inner is not None:
                    if not inner(each):
                        return False
                elif name in plain or closed or (others is not None and not others(each)):
                    return False
            return True

        return check

    @staticmethod
    def _map(values: Node, check_value: Check, required: frozenset[str], low: int, high: int) -> Check:
        plain = _plain_type(values)
        only = {plain}

        def check(value: Any) -> bool:
            if type(value) is not dict or not low <= len(value) <= high or not required <= value.keys():
                return False
            if plain is not None:
                return not value or set(map(type, value.values())) == only
            return all(map(check_value, value.values()))

        return check


def _plain_type(node: Node | None) -> type | None:
    """The Python type that is all a node asks for, None where it asks for more (or for less: null)."""
    if node is None or len(node.types) != 1 or node.enum or node.nullable:
        return None
    if node.any_of or node.one_of or node.all_of or node.negated is not None:
        return None
    kind = node.types[0]
    if kind == "boolean":
        return bool
    if kind == "string" and not (node.pattern or node.min_length or node.max_length is not None):
        return None if string_format_check(node.format) else str
    return None


def _without_logic(node: Node) -> Node:
    from dataclasses import replace

    return replace(node, any_of=(), one_of=(), negated=None)


def _every(checks: tuple[Check, ...]) -> Check:
    return lambda value: all(each(value) for each in checks)


def _with_enum(base: Check, allowed: tuple[Any, ...]) -> Check:
    if all(isinstance(each, str) for each in allowed):
        texts = frozenset(allowed)
        return lambda value: type(value) is str and value in texts and base(value)
    from apimachinery.validation.explain import in_enum

    return lambda value: in_enum(value, allowed) and base(value)


def _or_null(base: Check) -> Check:
    return lambda value: value is None or base(value)


def _is_str(value: Any) -> bool:
    return type(value) is str


def _is_bool(value: Any) -> bool:
    return type(value) is bool
