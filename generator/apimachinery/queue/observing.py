"""What a running operator can be asked about: hooks for metrics, traces and logs, all doing nothing here.

Derive from ``Observer`` and override what you need; ``prometheus`` and ``tracing`` do. Hooks are called from any
thread, and must not take long. What they raise is logged and counted, and ends nothing (``GuardedObserver``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["success", "again", "conflict", "error", "refused", "gone", "lost"]
"""``again``: it asked for another look; ``refused``: an error that repeating does not cure; ``lost``: the lease was
lost meanwhile."""

_log = logging.getLogger("kubewright.controller")


class Observer:
    """Hears what happens."""

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        """Around each call of a reconcile function: a trace's span."""
        yield

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """After each of them."""

    def queued(self, controller: str, depth: int) -> None:
        """Reports how many objects are in line, whenever that changes."""

    def retried(self, controller: str, failures: int) -> None:
        """Reports that an object is tried again, after that many failures in a row."""

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """Reports that a watch or list failed and is tried again."""

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


class GuardedObserver(Observer):
    """Another observer, whose errors end nothing: they are logged, and counted in ``failures``."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.failures = 0
        self.last_failure = ""

    @property
    def trouble(self) -> str:
        """What went wrong in the observer; empty while nothing did."""
        if not self.failures:
            return ""
        return f"{type(self._observer).__name__} failed {self.failures} times, last: {self.last_failure}"

    @contextmanager
    def reconciling(self, controller: str, namespace: str, name: str) -> Iterator[None]:
        """Within its context, where it has one: errors of the body pass, whatever the context makes of them."""
        with ExitStack() as stack:

            def enter() -> None:
                context = self._observer.reconciling(controller, namespace, name)
                context.__enter__()
                stack.push(lambda *error: self._guarded(lambda: context.__exit__(*error)))

            self._guarded(enter)
            yield

    def reconciled(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Passes it on."""
        self._guarded(lambda: self._observer.reconciled(controller, outcome, seconds))

    def queued(self, controller: str, depth: int) -> None:
        """Passes it on."""
        self._guarded(lambda: self._observer.queued(controller, depth))

    def retried(self, controller: str, failures: int) -> None:
        """Passes it on."""
        self._guarded(lambda: self._observer.retried(controller, failures))

    def mirror_failed(self, resource: str, error: Exception) -> None:
        """Passes it on."""
        self._guarded(lambda: self._observer.mirror_failed(resource, error))

    def leading(self, lease: str, is_leader: bool) -> None:
        """Passes it on."""
        self._guarded(lambda: self._observer.leading(lease, is_leader))

    def _guarded(self, call: Callable[[], object]) -> None:
        try:
            call()
        except Exception as error:
            self.failures += 1
            self.last_failure = f"{type(error).__name__}: {error}"
            _log.exception("the observer %s failed", type(self._observer).__name__)
