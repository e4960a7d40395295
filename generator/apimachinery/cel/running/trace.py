"""The value of each part of an expression, for people who ask why it is true or false.

The planner is the ordinary one, whose steps write down what they gave. Steps lose the ``path`` by which an outer step
would read a field without running the inner one, so nothing is passed over but what CEL itself does not evaluate: the
other side of ``&&``, a branch that is not taken. A part in a loop is written down each time, up to a limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apimachinery.cel.libraries.declarations import Function
from apimachinery.cel.running.planner import Planner
from apimachinery.cel.running.steps import Frame, Step
from apimachinery.cel.syntax.ast import Literal, Node
from apimachinery.cel.values.errors import EvalError

MOST_VALUES = 3
"""What is kept of a part that is evaluated again and again."""


@dataclass(slots=True)
class TracedPart:
    """A part of an expression: its values in order, and how often it was evaluated."""

    node: Node
    values: list[Any] = field(default_factory=list)
    count: int = 0

    def note(self, value: Any) -> None:
        """Keeps a value, or the error in its place."""
        self.count += 1
        if len(self.values) < MOST_VALUES:
            self.values.append(value)


class TracingPlanner(Planner):
    """Plans, and fills ``parts`` while the program runs; outer parts come before those that they hold."""

    def __init__(
        self,
        functions: Mapping[str, Function],
        constants: Mapping[str, Any],
        wire_name: Callable[[str, str], str],
        construct: Callable[[str, dict[str, Any]], Any] | None,
    ) -> None:
        super().__init__(functions, constants, wire_name, construct=construct, folds=False)
        self.parts: list[TracedPart] = []

    def plan_new(self, node: Node) -> Step:
        """Compile ``node`` to a step that writes down its value."""
        if isinstance(node, Literal):
            return super().plan_new(node)
        part = TracedPart(node)
        self.parts.append(part)
        step = super().plan_new(node)
        run = step.run

        def noting(frame: Frame) -> Any:
            try:
                value = run(frame)
            except EvalError as fault:
                part.note(fault)
                raise
            part.note(value)
            return value

        return Step(noting, step.cost, step.constant, step.attribute, None, step.reading)
