"""A checked tree to one Python closure, with the cost that Kubernetes would count.

Theory. A node becomes a ``Step`` (steps.py says what that is). Operators are planned by operators.py, comprehensions by
folds.py.

Folded as cel-go's planner folds, unless told not to: lists and maps of constants, ``x in [constants]`` (free but
for x) and type conversions of constants; patterns that are constants are compiled. What cannot be computed of these
refuses the expression: ``plan`` raises EvalError. A call whose overload is certain runs its impl; else the values
choose.
Errors are exceptions; ``&&``, ``||``, ``all`` and ``exists`` hold them back and drop them if the other side decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.cel.cost.call_costs import LIST_CREATE, MAP_CREATE, STRUCT_CREATE
from apimachinery.cel.libraries.declarations import Function, Overload
from apimachinery.cel.libraries.standard import compile_regex
from apimachinery.cel.running.folds import plan_fold
from apimachinery.cel.running.operators import OPERATORS
from apimachinery.cel.running.steps import (
    FIRST_SLOT,
    Frame,
    Run,
    Step,
    base_cost,
    build_call,
    constant,
    dynamic_field,
    expect_optional,
    holds,
    is_present,
    read_lazily,
    read_slot,
    read_variable,
    record_field,
    refunding,
)
from apimachinery.cel.syntax.ast import (
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
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import ABSENT, insert

_SEARCHES = frozenset(("find", "findAll"))
_CONVERSIONS = frozenset(
    ("bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint")
)


class Planner:
    """Compiles one tree. ``variables`` lists, by slot, the names that the frame must be filled with."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        constants: Mapping[str, Any],
        wire_name: Callable[[str, str], str],
        resolve: Callable[[str], str | None] | None = None,
        construct: Callable[[str, dict[str, Any]], Any] | None = None,
        folds: bool = True,
    ):
        self.functions = functions
        self.constants = constants
        self.wire_name = wire_name
        self.resolve = resolve
        self.construct = construct
        self.folds = folds
        self.variables: list[str] = []
        self.locals: list[tuple[str, int]] = []
        self.slots = FIRST_SLOT
        self.slot_of: dict[str, int] = {}
        self.lazy: dict[int, Run] = {}
        self.done: dict[int, Step] = {}

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def plan(self, node: Node) -> Step:
        """Compile ``node``; a node that macros put in two places is compiled once."""
        found = self.done.get(id(node))
        if found is None:
            found = self.done[id(node)] = self.plan_new(node)
        return found

    def plan_new(self, node: Node) -> Step:
        """Compile ``node`` by its kind."""
        if isinstance(node, CallNode):
            return self.call(node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Ident):
            return self.ident(node)
        if isinstance(node, Literal):
            return constant(node.value)
        if isinstance(node, Comprehension):
            return plan_fold(self, node)
        if isinstance(node, ListExpr):
            return self.list_literal(node)
        if isinstance(node, MapExpr):
            return self.map_literal(node)
        assert isinstance(node, StructExpr)
        return self.message(node)

    # Names and fields

    def ident(self, node: Ident) -> Step:
        # The innermost comprehension shadows those around it, and these the variables.
        for name, slot in reversed(self.locals):
            if name == node.ident:
                if slot in self.lazy:
                    return Step(read_lazily(slot, self.lazy[slot]), 1, attribute=True)
                return Step(read_slot(slot), 1, attribute=True, path=(slot, ()))
        resolved = node.name or (self.resolve(node.ident) if self.resolve else None)
        return self.variable(resolved or node.ident.removeprefix("."))

    def variable(self, name: str) -> Step:
        if name in self.constants:
            return constant(self.constants[name])
        slot = self.slot_of.get(name)
        if slot is None:
            slot = self.slot_of[name] = self.new_slot()
            self.variables.append(name)
        return Step(read_variable(slot, name), 1, attribute=True, path=(slot, ()))

    def select(self, node: Select) -> Step:
        if node.name is not None:
            return self.variable(node.name)
        # A dotted name may be one variable (a namespaced one), not a selection.
        if self.resolve is not None and not node.test_only:
            found = self.resolve_unchecked(node)
            if found is not None:
                return self.variable(found)
        operand = self.plan(node.operand)
        of = node.operand.type or t.DYN
        if node.test_only:
            return Step(self.presence(operand.run, of, node.field), base_cost(operand))
        cost = base_cost(operand) + 1
        run, field = operand.run, node.field
        if of.kind == "object":
            name = self.wire_name(of.name, field)
            path = operand.path and (operand.path[0], (*operand.path[1], name))
            return Step(record_field(run, name, field), cost, attribute=True, path=path)

        return Step(dynamic_field(refunding(run), field), cost, attribute=True)

    def resolve_unchecked(self, node: Select) -> str | None:
        from apimachinery.cel.checking.checker import qualified_name

        name = qualified_name(node)
        if name is None or self.resolve is None or any(name.split(".")[0] == n for n, _ in self.locals):
            return None
        return self.resolve(name)

    def presence(self, run: Run, of: t.Type, field: str) -> Run:
        if of.kind == "object":
            name = self.wire_name(of.name, field)
            return lambda frame: holds(run(frame), name)

        def has(frame: Frame) -> bool:
            return is_present(run(frame), field)

        return has

    # Literals

    def list_literal(self, node: ListExpr) -> Step:
        steps = [self.plan(e) for e in node.elements]
        # Optional elements may vanish, so such a list is no constant.
        if self.folds and not node.optional and all(s.constant for s in steps):
            return constant([s.run([]) for s in steps])
        runs = [s.run for s in steps]
        cost = sum(s.cost for s in steps) + LIST_CREATE
        if not node.optional:
            # Common in rules, such as x in [y].
            if len(runs) == 1:
                only = runs[0]
                return Step(lambda frame: [only(frame)], cost)
            return Step(lambda frame: [run(frame) for run in runs], cost)
        optional = node.optional

        def build(frame: Frame) -> list[Any]:
            found = []
            for place, run in enumerate(runs):
                value = run(frame)
                if place in optional:
                    value = expect_optional(value)
                    if value is ABSENT:
                        continue
                    value = value.value
                found.append(value)
            return found

        return Step(build, cost)

    def map_literal(self, node: MapExpr) -> Step:
        steps = [(self.plan(k), self.plan(e), optional) for k, e, optional in node.entries]
        runs = [(k.run, e.run, optional) for k, e, optional in steps]

        def build(frame: Frame) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            for key_run, value_run, optional in runs:
                key = key_run(frame)
                value = value_run(frame)
                if optional:
                    value = expect_optional(value)
                    if value is ABSENT:
                        continue
                    value = value.value
                insert(found, key, value)
            return found

        if self.folds and all(k.constant and e.constant and not optional for k, e, optional in steps):
            return constant(build([]))
        return Step(build, sum(k.cost + e.cost for k, e, _ in steps) + MAP_CREATE)

    def message(self, node: StructExpr) -> Step:
        if self.construct is None or node.name is None:
            raise EvalError(f"unknown type: {node.message}")
        construct, name = self.construct, node.name
        steps = [(field, self.plan(value), optional) for field, value, optional, _ in node.entries]

        def build(frame: Frame) -> Any:
            fields: dict[str, Any] = {}
            for field, step, optional in steps:
                value = step.run(frame)
                if optional:
                    value = expect_optional(value)
                    if value is ABSENT:
                        continue
                    value = value.value
                fields[field] = value
            return construct(name, fields)

        return Step(build, sum(s.cost for _, s, _ in steps) + STRUCT_CREATE)

    # Calls

    def call(self, node: CallNode) -> Step:
        if (operator := OPERATORS.get(node.function)) is not None:
            return operator(self, node)
        return self.plain_call(node)

    def plain_call(self, node: CallNode) -> Step:
        """A call of which every argument is run."""
        function = self.function(node)
        args = ([node.target] if node.target is not None else []) + node.args
        steps = [self.plan(arg) for arg in args]
        overload = self.certain(node, function, args)
        impl = overload.impl if overload else function.dispatch(node.target is not None)
        id = node.overloads[0] if len(node.overloads) == 1 else ""
        # A conversion that fails refuses the expression, instead of failing at each run.
        if self.folds and node.function in _CONVERSIONS and len(steps) == 1 and steps[0].constant:
            return constant(impl(steps[0].run([])))
        if self.folds and node.function in _SEARCHES and len(steps) > 1 and steps[1].constant:
            # Compiled for its errors and for the cache.
            pattern = steps[1].run([])
            if type(pattern) is str:
                compile_regex(pattern)
        return build_call(impl, [s.run for s in steps], sum(s.cost for s in steps), node.function, id)

    def function(self, node: CallNode) -> Function:
        function = self.functions.get(node.function)
        if function is None and self.resolve is not None:
            # Unchecked expressions have no types: a target may be a namespace.
            from apimachinery.cel.checking.checker import qualified_name

            prefix = qualified_name(node.target) if node.target is not None else None
            function = self.functions.get(f"{prefix}.{node.function}") if prefix else None
            if function is not None:
                node.target = None
                node.function = function.name
        return function if function is not None else Unbound(node.function)

    def certain(self, node: CallNode, function: Function, args: list[Node]) -> Overload | None:
        """The one overload that can only be meant, given the types of the arguments."""
        # With several overloads the values decide at run time.
        if len(node.overloads) != 1:
            return None
        found = next(o for o in function.overloads if o.id == node.overloads[0])
        for arg, wanted in zip(args, found.params, strict=True):
            if not _is_certain(arg.type or t.DYN, wanted):
                return None
        return found


class Unbound(Function):
    """A function that nobody declared: calls of it fail when they are made."""

    def __init__(self, name: str):
        super().__init__(name)

    def dispatch(self, member: bool) -> Callable[..., Any]:
        """An impl that fails."""

        def unknown(*args: Any) -> Any:
            raise EvalError(f"unbound function: {self.name}")

        return unknown


def _is_certain(given: t.Type, wanted: t.Type) -> bool:
    if wanted.kind in ("dyn", "param"):
        return True
    if given.kind in ("dyn", "error", "null", "param", "wrapper"):
        return False
    return given.kind == wanted.kind
