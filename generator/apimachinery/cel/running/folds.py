"""Comprehensions to loops.

The macros' shapes are known and get a loop of their own; any other comprehension runs as it is written. What each
turn of a loop costs follows from the expansion: ``all`` tests ``@not_strictly_false(@result)`` (2) and computes
``@result && p`` (1 and p); ``exists`` the same with a negation (3); ``map`` appends to ``@result`` a list of one.
The limit is checked at every turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apimachinery.cel.running.steps import Frame, Plans, Run, Step
from apimachinery.cel.syntax.ast import CallNode, Comprehension, Ident, ListExpr, Literal, MapExpr, Node
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import MISSING, NO_OVERLOAD, insert


def plan_fold(planner: Plans, node: Comprehension) -> Step:
    """Compile a comprehension."""
    if isinstance(node.range, ListExpr) and not node.range.elements and _is(node.condition, False):
        return _bind(planner, node)
    over = planner.plan(node.range)
    plan = _Loop(planner, node, over)
    step = node.step
    if isinstance(step, CallNode):
        accu = node.accu
        if _is(node.init, True) and step.function == "_&&_" and _names(step.args[0], accu):
            return plan.quantifier(step.args[1], stop=False, turn=3)
        if _is(node.init, False) and step.function == "_||_" and _names(step.args[0], accu):
            return plan.quantifier(step.args[1], stop=True, turn=4)
        if isinstance(node.init, Literal) and step.function == "_?_:_" and _names(step.args[2], accu):
            return plan.exactly_one(step.args[0])
        if isinstance(node.init, ListExpr) and not node.init.elements and _is(node.condition, True):
            condition = None
            if step.function == "_?_:_" and _names(step.args[2], accu) and isinstance(step.args[1], CallNode):
                condition, step = step.args[0], step.args[1]
            if step.function == "_+_" and _names(step.args[0], accu) and isinstance(step.args[1], ListExpr):
                return plan.collect(condition, step.args[1].elements[0])
        if isinstance(node.init, MapExpr) and not node.init.entries and _is(node.condition, True):
            condition = None
            if step.function == "_?_:_" and isinstance(step.args[1], CallNode):
                condition, step = step.args[0], step.args[1]
            if step.function == "cel.@mapInsert":
                return plan.collect_map(condition, step.args[1:])
    return plan.generic()


def _is(node: Node, value: bool) -> bool:
    return isinstance(node, Literal) and node.value is value


def _names(node: Node, name: str) -> bool:
    return isinstance(node, Ident) and node.ident == name


def _bind(planner: Plans, node: Comprehension) -> Step:
    value = planner.plan(node.init)
    slot = planner.new_slot()
    planner.lazy[slot] = value.charged()
    planner.locals.append((node.accu, slot))
    body = planner.plan(node.result)
    planner.locals.pop()
    run = body.run

    def bound(frame: Frame) -> Any:
        frame[slot] = MISSING  # computed where it is first used, perhaps never
        return run(frame)

    return Step(bound, body.cost)


class _Loop:
    def __init__(self, planner: Plans, node: Comprehension, over: Step):
        self.planner = planner
        self.node = node
        self.over = over
        self.slot = planner.new_slot()
        self.slot2 = planner.new_slot() if node.var2 else 0

    def inside(self, node: Node) -> Step:
        """Compile a node that sees the iteration variables (and not the accumulator)."""
        self.planner.locals.append((self.node.var, self.slot))
        if self.node.var2:
            self.planner.locals.append((self.node.var2, self.slot2))
        step = self.planner.plan(node)
        if self.node.var2:
            self.planner.locals.pop()
        self.planner.locals.pop()
        return step

    def turns(self) -> Callable[[Frame], Iterable[Any]]:
        """What yields once a turn, the variables being set."""
        run, slot2 = self.over.run, self.slot2
        if not slot2:

            def single(frame: Frame) -> Iterable[Any]:
                return _items(run(frame))

            return single

        def double(frame: Frame) -> Iterable[Any]:
            held = run(frame)
            pairs = held.items() if type(held) is dict else enumerate(_items(held))
            for first, second in pairs:
                frame[slot2] = second
                yield first

        return double

    def quantifier(self, predicate: Node, stop: bool, turn: int) -> Step:
        step = self.inside(predicate)
        test, slot, turns = step.run, self.slot, self.turns()
        cost = turn + step.cost

        def decide(frame: Frame) -> Any:
            failed: EvalError | None = None
            limit = frame[1]
            left = iter(turns(frame))
            for item in left:
                frame[slot] = item
                frame[0] += cost
                if frame[0] > limit:
                    raise CostLimitError
                try:
                    found = test(frame)
                except CostLimitError:
                    raise
                except EvalError as error:
                    failed = failed or error
                    continue
                if found is stop:
                    if next(left, left) is not left:
                        frame[0] += turn - 1  # the condition is looked at once more
                    return stop
                if type(found) is not bool:
                    failed = failed or EvalError(NO_OVERLOAD)
            if failed is not None:
                raise failed
            return not stop

        return Step(decide, self.over.cost + 1)

    def exactly_one(self, predicate: Node) -> Step:
        step = self.inside(predicate)
        test, slot, turns, cost = step.run, self.slot, self.turns(), step.cost

        def count(frame: Frame) -> bool:
            found = 0
            failed: EvalError | None = None
            limit = frame[1]
            for item in turns(frame):
                frame[slot] = item
                frame[0] += cost
                if frame[0] > limit:
                    raise CostLimitError
                try:
                    holds = test(frame)
                except CostLimitError:
                    raise
                except EvalError as error:
                    failed = error  # the turns that are left are made, and the last error counts
                    continue
                if holds is True:
                    frame[0] += 2
                    found += 1
                elif holds is not False:
                    raise EvalError(NO_OVERLOAD)
            if failed is not None:
                raise failed
            return found == 1

        return Step(count, self.over.cost + 2)

    def collect(self, condition: Node | None, element: Node) -> Step:
        value = self.inside(element)
        start = self.planner.plan(self.node.init).cost
        # ``@result + [e]``: the name, the sum and the list, which is free where e is a constant.
        one = 2 if value.constant and self.planner.folds else 12
        make, make_cost = value.run, value.cost + one
        slot, turns = self.slot, self.turns()
        test_step = self.inside(condition) if condition is not None else None
        test: Run | None = test_step.run if test_step else None
        cost = test_step.cost if test_step else make_cost

        def build(frame: Frame) -> list[Any]:
            found: list[Any] = []
            failed: EvalError | None = None
            limit = frame[1]
            for item in turns(frame):
                frame[slot] = item
                frame[0] += cost
                if frame[0] > limit:
                    raise CostLimitError
                if test is not None:
                    try:
                        holds = test(frame)
                    except CostLimitError:
                        raise
                    except EvalError as error:
                        failed = error  # the turns that are left are made
                        continue
                    if holds is False:
                        continue
                    if holds is not True:
                        raise EvalError(NO_OVERLOAD)
                    frame[0] += make_cost
                try:
                    found.append(make(frame))
                except CostLimitError:
                    raise
                except EvalError as error:
                    failed = failed or error
            if failed is not None:
                raise failed
            return found

        return Step(build, self.over.cost + start + 1)

    def collect_map(self, condition: Node | None, entry: list[Node]) -> Step:
        steps = [self.inside(part) for part in entry]
        start = self.planner.plan(self.node.init).cost
        runs = [s.run for s in steps]
        make_cost = sum(s.cost for s in steps) + 2
        slot, turns = self.slot, self.turns()
        test_step = self.inside(condition) if condition is not None else None
        test: Run | None = test_step.run if test_step else None
        cost = test_step.cost if test_step else make_cost

        def build(frame: Frame) -> dict[Any, Any]:
            found: dict[Any, Any] = {}
            limit = frame[1]
            for item in turns(frame):
                frame[slot] = item
                frame[0] += cost
                if frame[0] > limit:
                    raise CostLimitError
                if test is not None:
                    holds = test(frame)
                    if holds is False:
                        continue
                    if holds is not True:
                        raise EvalError(NO_OVERLOAD)
                    frame[0] += make_cost
                if len(runs) == 2:
                    insert(found, runs[0](frame), runs[1](frame))
                    continue
                made = runs[0](frame)
                if type(made) is not dict:
                    raise EvalError(NO_OVERLOAD)
                for key, value in made.items():
                    insert(found, key, value)
            return found

        return Step(build, self.over.cost + start + 1)

    def generic(self) -> Step:
        planner, node = self.planner, self.node
        accu = planner.new_slot()
        init = planner.plan(node.init)
        planner.locals.append((node.accu, accu))
        condition, step = self.inside(node.condition), self.inside(node.step)
        result = planner.plan(node.result)
        planner.locals.pop()
        start, go_on, compute, finish = init.run, condition.charged(), step.charged(), result.run
        slot, turns = self.slot, self.turns()

        def fold(frame: Frame) -> Any:
            value = start(frame)
            limit = frame[1]
            for item in turns(frame):
                frame[slot] = item
                frame[accu] = value
                if go_on(frame) is False:
                    break
                value = compute(frame)
                if frame[0] > limit:
                    raise CostLimitError
            frame[accu] = value
            return finish(frame)

        return Step(fold, self.over.cost + init.cost + result.cost)


def _items(held: Any) -> Iterable[Any]:
    if isinstance(held, list):
        return held
    if type(held) is dict:
        return list(held)
    raise EvalError(NO_OVERLOAD if held is not MISSING else "no such attribute")
