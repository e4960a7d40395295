"""Admission plugins one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from apimachinery.http.steps import Asking, Waiting
from apimachinery.server.admission.interface import Operation, Plugin

Step = Callable[[Operation], Waiting]
Observe = Callable[[str, bool, bool, float], None]
"""Takes operation, whether it was the step of validation, whether it refused, and its seconds."""
Steps = tuple[tuple[Step, ...], tuple[Step, ...]]


class PluginsInOrder:
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

    def admit(self, operation: Operation) -> Asking[bool]:
        return self._taken(self._for(operation)[0], operation, validates=False)

    def validate(self, operation: Operation) -> Asking[bool]:
        return self._taken(self._for(operation)[1], operation, validates=True)

    def _taken(self, steps: tuple[Step, ...], operation: Operation, *, validates: bool) -> Asking[bool]:
        """Takes the steps in order, each when the one before it has its answers."""
        began, refused, waited = perf_counter(), True, False
        try:
            while True:
                for step in steps:
                    if (waiting := step(operation)) is not None:
                        waited = True
                        yield from waiting
                if validates or operation.second_round or not operation.wants_second_round:
                    break
                operation.second_round = True
            refused = False
        finally:
            self._observe(operation.verb, validates, refused, perf_counter() - began)
        return waited


def _steps(plugins: Sequence[Plugin]) -> Steps:
    return (
        tuple(plugin.admit for plugin in plugins if type(plugin).admit is not Plugin.admit),
        tuple(plugin.validate for plugin in plugins if type(plugin).validate is not Plugin.validate),
    )
