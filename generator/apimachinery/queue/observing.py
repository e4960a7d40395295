"""What a running operator can be asked about: hooks for metrics, traces and logs, all doing nothing here.

Derive from ``Observer`` and override what you need; ``prometheus`` and ``tracing`` do. Hooks are called from any
thread, and must neither raise nor take long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["success", "again", "conflict", "error", "refused", "gone"]
"""``again``: it asked for another look; ``refused``: an error that repeating does not cure."""


class Observer:
    """Hears what happens."""

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        """Around each call of a reconcile function: a trace's span."""
        yield

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """After each of them."""

    def queued(self, controller: str, depth: int) -> None:
        """How many objects are in line, whenever that changes."""

    def retried(self, controller: str, failures: int) -> None:
        """An object is tried again, after that many failures in a row."""

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """A watch or list failed and is tried again."""

    def leading(self, lease: str, is_leader: bool) -> None:
        """Leadership came or went."""


class Observers(Observer):
    """Several observers as one."""

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = tuple(observers)

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        """Inside of all their contexts."""
        with ExitStack() as stack:
            for observer in self._observers:
                stack.enter_context(observer.reconciling(controller, namespace, name))
            yield

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Tells all."""
        for observer in self._observers:
            observer.reconciled(controller, outcome, seconds)

    def queued(self, controller: str, depth: int) -> None:
        """Tells all."""
        for observer in self._observers:
            observer.queued(controller, depth)

    def retried(self, controller: str, failures: int) -> None:
        """Tells all."""
        for observer in self._observers:
            observer.retried(controller, failures)

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """Tells all."""
        for observer in self._observers:
            observer.mirror_failed(resource, error)

    def leading(self, lease: str, is_leader: bool) -> None:
        """Tells all."""
        for observer in self._observers:
            observer.leading(lease, is_leader)
