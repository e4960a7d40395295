"""Admission plugins one after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from apimachinery.server.admission.interface import Admission, Operation, Waiting

Step = Callable[[Operation], Waiting]


class InOrder:
    """All ``admit`` in order, then all ``validate``; the first refusal counts."""

    def __init__(self, plugins: Sequence[Admission]) -> None:
        self._admit: tuple[Step, ...] = tuple(plugin.admit for plugin in plugins)
        self._validate: tuple[Step, ...] = tuple(plugin.validate for plugin in plugins)

    def admit(self, operation: Operation) -> Waiting:
        """See Admission."""
        return _all(iter(self._admit), operation)

    def validate(self, operation: Operation) -> Waiting:
        """See Admission."""
        return _all(iter(self._validate), operation)


def _all(steps: Iterator[Step], operation: Operation) -> Waiting:
    """Takes the steps; where one has to wait, the others are taken after it."""
    for step in steps:
        waiting = step(operation)
        if waiting is not None:
            return _rest(waiting, steps, operation)
    return None


async def _rest(waiting: Awaitable[None], steps: Iterator[Step], operation: Operation) -> None:
    await waiting
    for step in steps:
        if (other := step(operation)) is not None:
            await other
