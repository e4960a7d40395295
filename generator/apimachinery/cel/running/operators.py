"""Operators, and functions of which not every argument is run or whose cost is not fixed.

Each is planned by a function of its own; ``OPERATORS`` has them by the names of their calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from apimachinery.cel.cost.call_costs import runtime_cost
from apimachinery.cel.libraries.declarations import Function, Overload
from apimachinery.cel.libraries.standard import index
from apimachinery.cel.running.fast_paths import compare_attributes
from apimachinery.cel.running.steps import (
    FAILED,
    Frame,
    Plans,
    Step,
    base_cost,
    build_call,
    constant,
    holds,
    match_constant,
    optional_index,
    raiser,
    refunding,
    settle,
)
from apimachinery.cel.syntax.ast import CallNode, Literal, Node
from apimachinery.cel.values import types as t
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import ABSENT, NO_OVERLOAD, Optional

_FIXED_SIZE = frozenset(("bool", "int", "uint", "timestamp", "duration", "double"))


class CallPlans(Plans, Protocol):
    """What compiles the parts of a call."""

    functions: Mapping[str, Function]
    wire_name: Callable[[str, str], str]

    def function(self, node: CallNode) -> Function:
        """The function that a node calls."""

    def certain(self, node: CallNode, function: Function, args: list[Node]) -> Overload | None:
        """The one overload that can only be meant, given the types of the arguments."""

    def plain_call(self, node: CallNode) -> Step:
        """A call of which every argument is run."""


def _logic(planner: CallPlans, node: CallNode, stop: bool) -> Step:
    left, right = (planner.plan(arg) for arg in node.args)
    left_run, right_run, right_cost = left.run, right.run, right.cost

    def both(frame: Frame) -> Any:
        try:
            first = left_run(frame)
        except CostLimitError:
            raise
        except EvalError as error:
            frame[0] += right_cost
            return decided(frame, error)
        if first is stop:
            return stop
        frame[0] += right_cost
        if type(first) is not bool:
            return decided(frame, EvalError(NO_OVERLOAD))
        second = right_run(frame)
        if second is stop:
            return stop
        if type(second) is not bool:
            raise EvalError(NO_OVERLOAD)
        return not stop

    def decided(frame: Frame, failure: EvalError) -> Any:
        """The right side can still decide; where it does not, the failure of the left one is told."""
        try:
            if right_run(frame) is stop:
                return stop
        except CostLimitError:
            raise
        except EvalError:
            pass
        raise failure from None

    return Step(both, left.cost)


def _conditional(planner: CallPlans, node: CallNode) -> Step:
    condition, yes, no = (planner.plan(arg) for arg in node.args)
    run = condition.run
    yes_run, yes_cost = yes.run, yes.cost - yes.reading
    no_run, no_cost = no.run, no.cost - no.reading

    def choose(frame: Frame) -> Any:
        chosen = run(frame)
        if frame[0] > frame[1]:
            raise CostLimitError
        if chosen is True:
            frame[0] += yes_cost
            return yes_run(frame)
        if chosen is False:
            frame[0] += no_cost
            return no_run(frame)
        raise EvalError(NO_OVERLOAD)

    return Step(choose, condition.cost, attribute=True, reading=0)


def _not_strictly_false(planner: CallPlans, node: CallNode) -> Step:
    arg = planner.plan(node.args[0])
    run = arg.run

    def test(frame: Frame) -> bool:
        try:
            return run(frame) is not False
        except CostLimitError:
            raise
        except EvalError:
            return True

    return Step(test, arg.cost + 1)


def _equality(planner: CallPlans, node: CallNode, same: bool) -> Step:
    a, b = (planner.plan(arg) for arg in node.args)
    of = node.args[0].type or t.DYN
    other = node.args[1].type or t.DYN
    left, right = a.run, b.run
    if of.kind == other.kind and of.kind in _FIXED_SIZE:
        if same:
            return Step(lambda frame: left(frame) == right(frame), a.cost + b.cost + 1)
        return Step(lambda frame: left(frame) != right(frame), a.cost + b.cost + 1)
    cost = runtime_cost(node.function, "")
    assert callable(cost)
    equal = v.equal

    def compare(frame: Frame) -> bool:
        x: Any = FAILED
        try:
            x = left(frame)
            y = right(frame)
        except EvalError as error:
            raise settle(frame, error, cost, x, right if x is FAILED else None) from None
        frame[0] += cost(x, y)
        return equal(x, y) is same

    return Step(compare, a.cost + b.cost)


def _compare(planner: CallPlans, node: CallNode) -> Step:
    function = planner.function(node)
    overload = planner.certain(node, function, node.args)
    a, b = (planner.plan(arg) for arg in node.args)
    if overload is not None and all(p.kind in ("int", "double", "uint") for p in overload.params):
        fast = compare_attributes(node.function, a, b)
        if fast is not None:
            return Step(fast, a.cost + b.cost + 1)
    return planner.plain_call(node)


def _membership(planner: CallPlans, node: CallNode) -> Step:
    item, holder = (planner.plan(arg) for arg in node.args)
    run = item.run
    holds_list = planner.folds and holder.constant and isinstance(holder.run([]), list)
    if holds_list and node.overloads in (("in_list",), ()):
        items = holder.run([])
        if not items:
            return constant(False)
        if all(isinstance(x, (bool, int, float, str, bytes)) for x in items):
            if all(type(x) is str for x in items):
                strings = frozenset(items)
                if (node.args[0].type or t.DYN).kind == "string":
                    return Step(lambda frame: run(frame) in strings, item.cost)
                return Step(lambda frame: type(x := run(frame)) is str and x in strings, item.cost)
            return Step(lambda frame: v.contains(items, run(frame)), item.cost)
    impl = planner.functions["@in"].dispatch(False)
    id = node.overloads[0] if len(node.overloads) == 1 else ""
    return build_call(impl, [run, holder.run], item.cost + holder.cost, "@in", id)


def _index(planner: CallPlans, node: CallNode) -> Step:
    holder, key = (planner.plan(arg) for arg in node.args)
    run, key_run, key_cost = refunding(holder.run), key.run, key.cost - key.reading
    of = node.args[0].type or t.DYN
    if of.kind in ("list", "map"):

        def read(frame: Frame) -> Any:
            return index(run(frame), key_run(frame))

        return Step(read, base_cost(holder) + key_cost + 1, attribute=True)

    def dynamic(frame: Frame) -> Any:
        held = run(frame)
        if held is ABSENT:
            frame[0] -= 1 + key_cost
            return ABSENT
        wanted = key_run(frame)
        if type(held) is Optional:
            found = optional_index(held.value, wanted)
            if found is ABSENT:
                frame[0] -= 1
            return found
        return index(held, wanted)

    return Step(dynamic, base_cost(holder) + key_cost + 1, attribute=True)


def _optional_select(planner: CallPlans, node: CallNode) -> Step:
    operand = planner.plan(node.args[0])
    field_node = node.args[1]
    assert isinstance(field_node, Literal)
    run, field = refunding(operand.run), field_node.value
    of = node.args[0].type or t.DYN
    if t.is_optional(of):
        of = of.params[0]
    if of.kind == "object":
        field = planner.wire_name(of.name, field)
    record = of.kind == "object"

    def read(frame: Frame) -> Optional:
        held = run(frame)
        if type(held) is Optional:
            if held is ABSENT:
                frame[0] -= 1
                return ABSENT
            held = held.value
        if not record:
            found = optional_index(held, field)
        elif holds(held, field):
            found = Optional(held[field])
        else:
            found = ABSENT
        if found is ABSENT:
            frame[0] -= 1  # what is not there was not selected
        return found

    return Step(read, base_cost(operand) + 1, attribute=True)


def _optional_index(planner: CallPlans, node: CallNode) -> Step:
    holder, key = (planner.plan(arg) for arg in node.args)
    run, key_run, key_cost = refunding(holder.run), key.run, key.cost - key.reading

    def read(frame: Frame) -> Optional:
        held = run(frame)
        if type(held) is Optional:
            if held is ABSENT:
                frame[0] -= 1 + key_cost
                return ABSENT
            held = held.value
        found = optional_index(held, key_run(frame))
        if found is ABSENT:
            frame[0] -= 1
        return found

    return Step(read, base_cost(holder) + key_cost + 1, attribute=True)


def _or_else(planner: CallPlans, node: CallNode) -> Step:
    """``or`` and ``orValue``: the argument is run only where it is needed."""
    if node.target is None:
        return Step(raiser(EvalError(NO_OVERLOAD)), 0)
    target, other = planner.plan(node.target), planner.plan(node.args[0])
    run, other_run, other_cost = target.run, other.run, other.cost
    unwrap = node.function == "orValue"

    def choose(frame: Frame) -> Any:
        held = run(frame)
        if type(held) is not Optional:
            raise EvalError(NO_OVERLOAD)
        if held is not ABSENT:
            return held.value if unwrap else held
        frame[0] += other_cost
        return other_run(frame)

    return Step(choose, target.cost)


def _match(planner: CallPlans, node: CallNode) -> Step:
    """``matches`` with a constant pattern has its program at hand."""
    args = ([node.target] if node.target is not None else []) + node.args
    if len(args) == 2:
        text, pattern = (planner.plan(arg) for arg in args)
        if (
            planner.folds
            and pattern.constant
            and type(pattern.run([])) is str
            and (args[0].type or t.DYN).kind == "string"
        ):
            return match_constant(text, pattern.run([]), node.overloads)
    return planner.plain_call(node)


OPERATORS: dict[str, Callable[[CallPlans, CallNode], Step]] = {
    "_&&_": lambda planner, node: _logic(planner, node, stop=False),
    "_||_": lambda planner, node: _logic(planner, node, stop=True),
    "_?_:_": _conditional,
    "@not_strictly_false": _not_strictly_false,
    "_==_": lambda planner, node: _equality(planner, node, same=True),
    "_!=_": lambda planner, node: _equality(planner, node, same=False),
    "_<_": _compare,
    "_<=_": _compare,
    "_>_": _compare,
    "_>=_": _compare,
    "@in": _membership,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_select,
    "or": _or_else,
    "orValue": _or_else,
    "matches": _match,
}
