"""Admission plugins one after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence

from apimachinery.server.admission.interface import Admission, Operation, Waiting

Step = Callable[[Operation], Waiting]
Steps = tuple[tuple[Step, ...], tuple[Step, ...]]


class InOrder:
    """All ``admit`` in order, then all ``validate``; the first refusal counts.

    A plugin that names its ``resources``, (group, plural) pairs, is asked about those alone, so it costs writes of
    other kinds nothing.
    """

    def __init__(self, plugins: Sequence[Admission]) -> None:
        named = {pair for plugin in plugins for pair in getattr(plugin, "resources", ())}
        self._others = _steps([plugin for plugin in plugins if not hasattr(plugin, "resources")])
        self._of = {
            pair: _steps([plugin for plugin in plugins if pair in getattr(plugin, "resources", (pair,))])
            for pair in named
        }

    def _for(self, operation: Operation) -> Steps:
        served = operation.target.served
        return self._of.get((served.group, served.plural), self._others)

    def admit(self, operation: Operation) -> Waiting:
        """See Admission."""
        steps = self._for(operation)[0]
        waiting = _all(iter(steps), operation)
        if waiting is not None:
            return _rounds(waiting, steps, operation)
        return _second_round(steps, operation) if operation.wants_second_round else None

    def validate(self, operation: Operation) -> Waiting:
        """See Admission."""
        return _all(iter(self._for(operation)[1]), operation)


def _steps(plugins: Sequence[Admission]) -> Steps:
    return tuple(plugin.admit for plugin in plugins), tuple(plugin.validate for plugin in plugins)


def _all(steps: Iterator[Step], operation: Operation) -> Waiting:
    """Takes the steps; where one has to wait, the others are taken after it."""
    for step in steps:
        waiting = step(operation)
        if waiting is not None:
            return _rest(waiting, steps, operation)
    return None


def _second_round(steps: tuple[Step, ...], operation: Operation) -> Waiting:
    operation.second_round = True
    return _all(iter(steps), operation)


async def _rounds(waiting: Awaitable[None], steps: tuple[Step, ...], operation: Operation) -> None:
    await waiting
    if operation.wants_second_round and (second := _second_round(steps, operation)) is not None:
        await second


async def _rest(waiting: Awaitable[None], steps: Iterator[Step], operation: Operation) -> None:
    await waiting
    for step in steps:
        if (other := step(operation)) is not None:
            await other
