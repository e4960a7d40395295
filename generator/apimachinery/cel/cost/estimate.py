"""The static estimate of what an expression may cost: the bound that CRDs are accepted or refused by.

Theory. Every node has a cost range and, if it is a string, bytes, list or map, a size range. Sizes come, in this
order, from the expression itself (literals, concatenations), from the schema (``SizeOf``, by the path of the
value: variable, field, ``@items``, ``@keys``, ``@values``) and from the type (scalars have 1); else they
are unknown, 0 to 2**64-1, where all arithmetic stops. Loops multiply by the size of their range.
Rules and numbers are those of cel-go's estimator with Kubernetes' functions on top; any change would change
which CRDs are valid, so none is an improvement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from apimachinery.cel.cost.call_costs import LIST_CREATE, MAP_CREATE, STRUCT_CREATE
from apimachinery.cel.cost.call_estimates import Argument, CallEstimate, estimate_call
from apimachinery.cel.syntax.ast import (
    ACCUMULATOR,
    CallNode,
    Comprehension,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Node,
    Select,
    StructExpr,
)
from apimachinery.cel.values import types as t
from apimachinery.cel.values.ranges import FREE, ONE, UNKNOWN, Range, fixed
from apimachinery.cel.values.types import Type

SizeOf = Callable[[tuple[str, ...], Type], Range | None]
"""The size of a value by its path, which is empty where it has none, and its type."""


@dataclass(slots=True)
class _Entry:
    """Sizes of the keys (or indices) and values of a container."""

    container: str
    key: Range
    value: Range


@dataclass(slots=True)
class _Local:
    path: tuple[str, ...] | None
    size: Range | None
    entry: _Entry | None


def estimate_cost(node: Node, size_of: SizeOf) -> Range:
    """The range of costs of a checked tree."""
    return _Estimator(size_of).cost(node)


_SCALARS = frozenset(("bool", "double", "duration", "int", "timestamp", "uint"))


def _is_scalar(of: Type) -> bool:
    return of.kind in _SCALARS or (t.is_optional(of) and _is_scalar(of.params[0]))


def _union_entries(a: _Entry | None, b: _Entry | None) -> _Entry | None:
    if a is None or b is None:
        return None
    return _Entry(a.container, a.key.union(b.key), a.value.union(b.value))


class _Estimator:
    def __init__(self, size_of: SizeOf):
        self.size_of = size_of
        self.paths: dict[int, tuple[str, ...]] = {}
        self.sizes: dict[int, Range] = {}
        self.costs: dict[int, Range] = {}
        self.entries: dict[int, _Entry] = {}
        self.locals: dict[str, list[_Local]] = {}

    # What is known of a node

    def local(self, node: Node) -> _Local | None:
        if isinstance(node, Ident):
            stack = self.locals.get(node.ident)
            if stack:
                return stack[-1]
        return None

    def path(self, node: Node) -> tuple[str, ...] | None:
        local = self.local(node)
        if local is not None:
            return local.path
        return self.paths.get(id(node))

    def entry(self, node: Node) -> _Entry | None:
        found = self.entries.get(id(node))
        if found is not None:
            return found
        local = self.local(node)
        return local.entry if local else None

    def size(self, node: Node) -> Range | None:
        found = self.sizes.get(id(node))
        if found is not None:
            return found
        own = _literal_size(node)
        if own is not None:
            return own
        found = self.size_of(self.path(node) or (), node.type or t.DYN)
        if found is not None:
            self.sizes[id(node)] = found
            return found
        if _is_scalar(node.type or t.DYN):
            return ONE
        local = self.local(node)
        return local.size if local else None

    def size_or_unknown(self, node: Node) -> Range:
        return self.size(node) or UNKNOWN

    def argument(self, node: Node) -> Argument:
        path = self.path(node)
        if path and path[0] in (ACCUMULATOR, "__result__"):
            path = None
        return Argument(node, node.type or t.DYN, path, self.size(node))

    # Nodes

    def cost(self, node: Node) -> Range:
        found = self.costs.get(id(node))
        if found is None:
            found = self.costs[id(node)] = self.new_cost(node)
        return found

    def new_cost(self, node: Node) -> Range:
        if isinstance(node, Literal):
            return FREE
        if isinstance(node, Ident):
            local = self.local(node)
            path = local.path if local else (node.ident,)
            if path:
                self.paths[id(node)] = path
            return ONE
        if isinstance(node, Select):
            if node.name is not None and not node.test_only:
                # A qualified name is a variable or a type, not a field of anything.
                self.paths[id(node)] = (node.name,)
                return ONE
            return self.select(node)
        if isinstance(node, CallNode):
            return self.call(node)
        if isinstance(node, ListExpr):
            return self.list_literal(node)
        if isinstance(node, MapExpr):
            return self.map_literal(node)
        if isinstance(node, StructExpr):
            total = fixed(STRUCT_CREATE)
            for _, value, _, _ in node.entries:
                total = total + self.cost(value)
            return total
        assert isinstance(node, Comprehension)
        return self.bind(node) if _is_bind(node) else self.fold(node)

    def select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.test_only:
            return total  # has() itself is free in Kubernetes
        of = node.operand.type or t.DYN
        if of.kind in ("map", "object", "param"):
            total = total + ONE
        self.paths[id(node)] = (*(self.path(node.operand) or ()), node.field)
        return total

    def call(self, node: CallNode) -> Range:
        if node.function == "dyn" and len(node.args) == 1:
            cost = self.cost(node.args[0])
            self.copy_sizes(node, node.args[0])
            return ONE + cost
        costs = [self.cost(arg) for arg in node.args]
        args = [self.argument(arg) for arg in node.args]
        if not node.overloads:
            return FREE
        total = FREE
        target: Argument | None = None
        if node.target is not None:
            total = self.cost(node.target)
            target = self.argument(node.target)
        best: Range | None = None
        result: Range | None = None
        for overload in node.overloads:
            one = self.overload(node, overload, target, args, costs)
            best = one.cost if best is None else best.union(one.cost)
            if one.size is not None:
                result = one.size if result is None else result.union(one.size)
            if overload in ("index_list", "index_map"):
                entry = self.entry(node.args[0])
                result = entry.value if entry else None
                last = "@items" if overload == "index_list" else "@values"
                self.paths[id(node)] = (*(self.path(node.args[0]) or ()), last)
            if result is None:
                result = self.size(node)
        if result is not None:
            self.sizes[id(node)] = result
        return total + (best or FREE)

    def overload(
        self, node: CallNode, overload: str, target: Argument | None, args: list[Argument], costs: list[Range]
    ) -> CallEstimate:
        spent = FREE
        for cost in costs:
            spent = spent + cost
        found = estimate_call(node.function, overload, target, args, self.size_of)
        if found is not None:
            return CallEstimate(found.cost + spent, found.size)
        # The right side may never run: the low end counts the left alone.
        if overload in ("logical_or", "logical_and"):
            return CallEstimate(Range(costs[0].low, (costs[0] + costs[1]).high))
        if overload == "conditional":
            size = self.size_or_unknown(node.args[1]).union(self.size_or_unknown(node.args[2]))
            entry = _union_entries(self.entry(node.args[1]), self.entry(node.args[2]))
            self.set_entry(node, entry)
            return CallEstimate(costs[0] + costs[1].union(costs[2]), size)
        if overload in ("add_string", "add_bytes", "add_list"):
            size = self.size_or_unknown(node.args[0]) + self.size_or_unknown(node.args[1])
            self.set_entry(node, _union_entries(self.entry(node.args[0]), self.entry(node.args[1])))
            # cel-go takes joining two lists for one step, whatever their sizes; texts are copied.
            cost = ONE if overload == "add_list" else size.scaled(0.1)
            return CallEstimate(cost + spent, size)
        return CallEstimate(ONE + spent)

    def set_entry(self, node: Node, entry: _Entry | None) -> None:
        if entry is not None:
            self.entries[id(node)] = entry

    def copy_sizes(self, to: Node, node: Node) -> None:
        size = self.size(node)
        if size is not None:
            self.sizes[id(to)] = size
        self.set_entry(to, self.entry(node))

    def list_literal(self, node: ListExpr) -> Range:
        total = fixed(LIST_CREATE)
        items: Range | None = None
        for element in node.elements:
            total = total + self.cost(element)
            size = self.size_or_unknown(element)
            items = size if items is None else items.union(size)
        self.set_entry(node, _Entry("list", ONE, items or FREE))
        return total

    def map_literal(self, node: MapExpr) -> Range:
        total = fixed(MAP_CREATE)
        keys: Range | None = None
        values: Range | None = None
        for key, value, _ in node.entries:
            total = total + self.cost(key) + self.cost(value)
            key_size, value_size = self.size_or_unknown(key), self.size_or_unknown(value)
            keys = key_size if keys is None else keys.union(key_size)
            values = value_size if values is None else values.union(value_size)
        self.set_entry(node, _Entry("map", keys or FREE, values or FREE))
        return total

    def push(self, name: str, local: _Local) -> None:
        self.locals.setdefault(name, []).append(local)

    def push_iteration(self, node: Comprehension) -> None:
        entry = self.entry(node.range)
        path = self.path(node.range) or ()
        kind = entry.container if entry else (node.range.type or t.DYN).kind
        key, value = (entry.key, entry.value) if entry else (None, None)
        listed = kind == "list"
        if node.var2:
            self.push(node.var, _Local((*path, "@indices" if listed else "@keys"), key, None))
            self.push(node.var2, _Local((*path, "@items" if listed else "@values"), value, None))
        else:
            self.push(
                node.var, _Local((*path, "@items" if listed else "@keys"), value if listed else key, None)
            )

    def fold(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.init)
        self.push(node.accu, _Local(self.path(node.init), self.size(node.init), self.entry(node.init)))
        self.push_iteration(node)
        turn = self.cost(node.condition)
        step = self.cost(node.step)
        self.locals[node.var].pop()
        if node.var2:
            self.locals[node.var2].pop()
        total = total + self.cost(node.result)
        self.locals[node.accu].pop()
        count = self.size_or_unknown(node.range)
        total = total + count * (step + turn)
        if isinstance(node.init, Literal):
            size = self.size(node.init)
            if size is not None:
                self.sizes[id(node)] = size
        elif isinstance(node.init, (ListExpr, MapExpr)):
            self.sizes[id(node)] = count
            self.set_entry(node, self.entry(node.step))
        return total

    def bind(self, node: Comprehension) -> Range:
        total = self.cost(node.range) + self.cost(node.init)
        self.push(node.accu, _Local(self.path(node.init), self.size(node.init), self.entry(node.init)))
        total = total + self.cost(node.result)
        self.copy_sizes(node, node.result)
        self.locals[node.accu].pop()
        return total


def _is_bind(node: Comprehension) -> bool:
    # cel.bind is a loop over nothing that never begins: cel-go, too, knows it by this shape alone.
    no_range = isinstance(node.range, ListExpr) and not node.range.elements
    never = isinstance(node.condition, Literal) and node.condition.value is False
    return no_range and never and node.accu != ACCUMULATOR


def _literal_size(node: Node) -> Range | None:
    if isinstance(node, Literal):
        if isinstance(node.value, (str, bytes)):
            return fixed(len(node.value))
        return ONE
    if isinstance(node, ListExpr):
        return fixed(len(node.elements))
    if isinstance(node, MapExpr):
        return fixed(len(node.entries))
    return None
