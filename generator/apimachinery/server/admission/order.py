"""Admission plugins one after another."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from time import perf_counter

from apimachinery.http.workers import apart_if
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.interface import Operation, Plugin, Waiting

Step = Callable[[Operation], Waiting]
Observe = Callable[[str, bool, bool, float], None]
"""Takes operation, whether it was the step of validation, whether it refused, and its seconds."""
Steps = tuple[tuple[Step, ...], tuple[Step, ...]]


class InOrder:
    """All ``admit`` in order, then all ``validate``; the first refusal counts.

    A plugin costs writes nothing that are not of its resources, nor a step that it does not have.
    """

    def __init__(self, plugins: Sequence[Plugin], observe: Observe = lambda *seen: None) -> None:
        self._observe = observe
        named = {pair for plugin in plugins for pair in plugin.resources or ()}
        self._others = _steps([plugin for plugin in plugins if plugin.resources is None])
        self._of = {
            pair: _steps([p for p in plugins if p.resources is None or pair in p.resources]) for pair in named
        }

    def _for(self, operation: Operation) -> Steps:
        served = operation.target.served
        return self._of.get((served.group, served.plural), self._others)

    def admit(self, operation: Operation) -> Waiting:
        """See Admission."""
        return self._taken(self._for(operation)[0], operation, False)

    def validate(self, operation: Operation) -> Waiting:
        """See Admission."""
        return self._taken(self._for(operation)[1], operation, True)

    def _taken(self, steps: tuple[Step, ...], operation: Operation, validates: bool) -> Waiting:
        began = perf_counter()
        try:
            waiting = _all(iter(steps), operation)
            if not validates:
                if waiting is not None:
                    waiting = _rounds(waiting, steps, operation)
                elif operation.wants_second_round:
                    waiting = _second_round(steps, operation)
        except ApiError:
            self._observe(operation.verb, validates, True, perf_counter() - began)
            raise
        if waiting is not None:
            return self._awaited(waiting, operation, validates, began)
        self._observe(operation.verb, validates, False, perf_counter() - began)
        return None

    async def _awaited(
        self, waiting: Awaitable[None], operation: Operation, validates: bool, began: float
    ) -> None:
        refused = True
        try:
            await waiting
            refused = False
        finally:
            self._observe(operation.verb, validates, refused, perf_counter() - began)


def _steps(plugins: Sequence[Plugin]) -> Steps:
    return (
        tuple(plugin.admit for plugin in plugins if type(plugin).admit is not Plugin.admit),
        tuple(plugin.validate for plugin in plugins if type(plugin).validate is not Plugin.validate),
    )


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
    if operation.wants_second_round:
        second = await apart_if(operation.target.asking, _second_round, steps, operation)
        if second is not None:
            await second


async def _rest(waiting: Awaitable[None], steps: Iterator[Step], operation: Operation) -> None:
    await waiting
    for step in steps:
        if (other := await apart_if(operation.target.asking, step, operation)) is not None:
            await other
