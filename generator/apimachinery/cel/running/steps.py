"""Compiled nodes and what they are made of: closures that read variables and fields, and calls that charge.

Theory. A node becomes a ``Step``: a function of the frame and a *fixed cost* that the function does not charge
itself. Whoever runs a step without condition adds its fixed cost to its own; whoever runs it on a condition
(the right side of ``&&``, a branch, the body of a loop) charges it when it happens. So an expression without
branches charges once, at its root. The frame is a list: [0] cost so far, [1] the limit, then the variables.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol

from apimachinery.cel.cost.call_costs import cost_needs_result, runtime_cost
from apimachinery.cel.libraries.standard import compile_search
from apimachinery.cel.syntax.ast import Node
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CostLimitError, EvalError
from apimachinery.cel.values.values import ABSENT, MISSING, NO_OVERLOAD, Optional, Uint, type_name

Frame = list[Any]
Run = Callable[[Frame], Any]
FIRST_SLOT = 2


class Step:
    """A compiled node. ``path`` is (slot, property names) of a plain chain of selects on known records.

    ``attribute``: a name, or what is selected of one; ``reading``: the part of its cost that counts the reading
    itself, which is free where another attribute reads it: as an index, as a branch of ``?:``.
    """

    __slots__ = ("attribute", "constant", "cost", "path", "reading", "run")

    def __init__(
        self,
        run: Run,
        cost: int,
        constant: bool = False,
        attribute: bool = False,
        path: tuple[int, tuple[str, ...]] | None = None,
        reading: int | None = None,
    ):
        self.run = run
        self.cost = cost
        self.constant = constant
        self.attribute = attribute
        self.path = path
        self.reading = int(attribute) if reading is None else reading

    def charged(self) -> Run:
        """The run of a step that pays for itself."""
        run, cost = self.run, self.cost
        if not cost:
            return run

        def pay(frame: Frame) -> Any:
            frame[0] += cost
            return run(frame)

        return pay


def constant(value: Any) -> Step:
    """The step of a value known now; free."""
    return Step(lambda frame: value, 0, constant=True)


class Plans(Protocol):
    """What compiles the parts of a node.

    ``folds``: constants are computed while it does. ``locals`` holds the names in scope with their slots, inner
    ones last; ``lazy`` the runs of slots that are filled when they are first read.
    """

    folds: bool
    locals: list[tuple[str, int]]
    lazy: dict[int, Run]

    def plan(self, node: Node) -> Step:
        """Compile a node."""

    def new_slot(self) -> int:
        """A place in the frame for one more variable."""


def base_cost(operand: Step) -> int:
    """The cost of an operand as the base of an attribute: one more where it is a call's result."""
    return operand.cost if operand.attribute else operand.cost + 1


def build_call(impl: Callable[..., Any], runs: list[Run], cost: int, function: str, overload: str) -> Step:
    """The step of a call, charging what the call costs before it is made."""
    if cost_needs_result(function):

        def by_result(frame: Frame) -> Any:
            result = impl(*[run(frame) for run in runs])
            frame[0] += -(-len(result) * 2 // 10) if isinstance(result, str) else 1
            if frame[0] > frame[1]:
                raise CostLimitError
            return result

        return Step(by_result, cost)
    price = runtime_cost(function, overload)
    if isinstance(price, int):
        return Step(_fixed_call(impl, runs), cost + price)
    price_of = price
    if len(runs) == 2:
        return Step(_priced_pair(impl, runs[0], runs[1], price_of), cost)

    def priced(frame: Frame) -> Any:
        args = [run(frame) for run in runs]
        frame[0] += price_of(*args)
        if frame[0] > frame[1]:
            raise CostLimitError
        return impl(*args)

    return Step(priced, cost)


class _Failed:
    """Stands for a value that could not be computed, where a call with it is priced: its size is 1."""


FAILED = _Failed()


def settle(
    frame: Frame, error: EvalError, price_of: Callable[..., int], x: Any, right: Run | None
) -> EvalError:
    """Charge a call of two whose first or second (``right`` is None) argument failed: the other one is computed
    all the same, and the call counts. The error to raise."""
    if isinstance(error, CostLimitError):
        return error
    other: Any = FAILED
    if right is not None:
        try:
            other = right(frame)
        except CostLimitError as spent:
            return spent
        except EvalError:
            pass
    frame[0] += price_of(x, other)
    return error


def _priced_pair(impl: Callable[..., Any], left: Run, right: Run, price_of: Callable[..., int]) -> Run:
    def priced(frame: Frame) -> Any:
        x: Any = FAILED
        try:
            x = left(frame)
            y = right(frame)
        except EvalError as error:
            raise settle(frame, error, price_of, x, right if x is FAILED else None) from None
        frame[0] += price_of(x, y)
        if frame[0] > frame[1]:
            raise CostLimitError
        return impl(x, y)

    return priced


def _fixed_call(impl: Callable[..., Any], runs: list[Run]) -> Run:
    if len(runs) == 1:
        (one,) = runs
        return lambda frame: impl(one(frame))
    if len(runs) == 2:
        first, second = runs

        def pair(frame: Frame) -> Any:
            try:
                x = first(frame)
            except CostLimitError:
                raise
            except EvalError as error:
                try:
                    second(frame)  # for what it costs
                except CostLimitError:
                    raise
                except EvalError:
                    pass
                raise error from None
            return impl(x, second(frame))

        return pair
    return lambda frame: impl(*[run(frame) for run in runs])


def match_constant(text: Step, pattern: str, overloads: tuple[str, ...]) -> Step:
    """A search for a pattern known now; EvalError if it is none."""
    run = text.run
    search = compile_search(pattern)
    regex_cost = ceil(len(pattern) * 0.25)
    if overloads == ("matches",):

        def plain(frame: Frame) -> bool:
            return search(run(frame))

        return Step(plain, text.cost + 1)

    def test(frame: Frame) -> bool:
        value = run(frame)
        frame[0] += ceil((1.0 + len(value)) * 0.1) * regex_cost
        return search(value)

    return Step(test, text.cost)


def read_slot(slot: int) -> Run:
    """Read a variable."""
    return lambda frame: frame[slot]


def read_lazily(slot: int, compute: Run) -> Run:
    """Read a variable that is computed when it is first asked for."""

    def read(frame: Frame) -> Any:
        value = frame[slot]
        if value is MISSING:
            value = frame[slot] = compute(frame)
        return value

    return read


def raiser(error: EvalError) -> Run:
    """A run that fails."""

    def fail(frame: Frame) -> Any:
        raise error

    return fail


def record_field(run: Run, name: str, shown: str) -> Run:
    """Read a field of a record; null counts as absent, but for values that were computed (a policy's variables)."""

    def read(frame: Frame) -> Any:
        try:
            held = run(frame)
            value = None if held is None else held[name]
        except KeyError:
            raise EvalError(f"no such key: {shown}") from None
        except EvalError:
            frame[0] -= 1  # what fails before is not selected from
            raise
        if value is None and (held is None or type(held) is dict):
            raise EvalError(f"no such key: {shown}")
        return value

    return read


def read_variable(slot: int, name: str) -> Run:
    """Read a variable, which may not be there."""

    def read(frame: Frame) -> Any:
        value = frame[slot]
        if value is MISSING:
            raise EvalError(f"no such attribute(s): {name}")
        return value

    return read


def holds(held: Any, name: str) -> bool:
    """Whether a record has a field, by the same rule."""
    return held.get(name) is not None if type(held) is dict else held is not None and name in held


def refunding(run: Run) -> Run:
    """``run``, whose static cost holds 1 for a selection that is not made where it fails."""

    def read(frame: Frame) -> Any:
        try:
            return run(frame)
        except EvalError:
            frame[0] -= 1
            raise

    return read


def select_dynamic(held: Any, field: str) -> Any:
    """``held.field`` for a value of unknown type."""
    if type(held) is dict:
        value = held.get(field, MISSING)
        if value is MISSING:
            raise EvalError(f"no such key: {field}")
        return value
    if type(held) is Optional:
        return ABSENT if held is ABSENT else optional_index(held.value, field)
    read = getattr(held, "cel_field", None)
    if read is not None:
        return read(field)
    raise EvalError(f"no such key: {field}" if held is None else NO_OVERLOAD)


def dynamic_field(run: Run, field: str) -> Run:
    """Read a field of a value of unknown type."""

    def read(frame: Frame) -> Any:
        found = select_dynamic(run(frame), field)
        if found is ABSENT:
            # Gives back what selecting a value costs that is not there.
            frame[0] -= 1
        return found

    return read


def is_present(held: Any, field: str) -> bool:
    """``has(held.field)`` for a value of unknown type."""
    if type(held) is dict:
        return field in held
    if type(held) is Optional:
        return held is not ABSENT and is_present(held.value, field)
    has = getattr(held, "cel_has", None)
    if has is not None:
        return bool(has(field))
    if held is None:
        return False
    raise EvalError(NO_OVERLOAD)


def optional_index(held: Any, key: Any) -> Optional:
    """``held[?key]``: absent where the key or the index is not there."""
    if type(held) is dict:
        value = v.lookup(held, key, MISSING)
        return ABSENT if value is MISSING else Optional(value)
    if isinstance(held, list):
        if type(key) in (int, Uint) or (type(key) is float and key.is_integer()):
            return Optional(held[int(key)]) if 0 <= key < len(held) else ABSENT
        raise EvalError(f"unsupported index type '{type_name(key)}' in list")
    if held is None:
        return ABSENT
    raise EvalError(NO_OVERLOAD)


def expect_optional(value: Any) -> Optional:
    """``value``, which an optional entry of a literal must have as an optional."""
    if type(value) is not Optional:
        raise EvalError(f"cannot initialize optional entry from non-optional value {value}")
    return value
