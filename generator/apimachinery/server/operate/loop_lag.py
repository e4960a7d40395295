"""How late the event loop is: what every request waits for while one of them holds the loop.

A task asks to be woken every 50 ms. How much later it is is the *lag*, which a busy machine makes longer. How long the
loop's own work *held* it is counted in CPU time of its thread, which other programs add nothing to: /metrics has both,
the worst of the last minute, and how the second is distributed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from apimachinery.metrics import Metrics

PERIOD_SECONDS = 0.05
STALL_SECONDS = 0.1
WINDOW_SECONDS = 60.0
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class _Worst:
    """The largest of the values of the last minute."""

    def __init__(self) -> None:
        # Those that no later one exceeds, oldest (and largest) first.
        self._values: deque[tuple[float, float]] = deque()

    def add(self, now: float, value: float) -> None:
        self._forget(now)
        while self._values and self._values[-1][1] <= value:
            self._values.pop()
        self._values.append((now, value))

    def value(self) -> float:
        self._forget(time.monotonic())
        return self._values[0][1] if self._values else 0.0

    def _forget(self, now: float) -> None:
        while self._values and self._values[0][0] < now - WINDOW_SECONDS:
            self._values.popleft()


class LoopLag:
    """The lag of the loop that ``measure`` runs on, in seconds."""

    def __init__(self, metrics: Metrics) -> None:
        self.stalls = 0
        self._lag, self._held = _Worst(), _Worst()
        self._distribution = metrics.histogram(
            "kubewright_loop_held_seconds",
            "CPU time for which the loop's own work kept what was due waiting.",
            BOUNDS,
        ).at()
        metrics.gauge(
            "kubewright_loop_lag_seconds", "Worst lag of the loop in the last minute.", self._lag.value
        )
        metrics.gauge(
            "kubewright_loop_held_worst_seconds",
            "Longest that the loop's own work held it in the last minute, in CPU time.",
            self._held.value,
        )
        metrics.gauge(
            "kubewright_loop_stalls_total",
            "How often the loop's own work held it for more than 100 ms of CPU time.",
            lambda: self.stalls,
            kind="counter",
        )

    def worst(self) -> float:
        """The worst lag of the last minute."""
        return self._lag.value()

    async def measure(self) -> None:
        """Measures until cancelled."""
        while True:
            before, used = time.monotonic(), time.thread_time()
            await asyncio.sleep(PERIOD_SECONDS)
            self.note(time.monotonic() - before - PERIOD_SECONDS, time.thread_time() - used)

    def note(self, lag: float, used: float) -> None:
        """Takes how late one turn was, and the CPU time that the loop's thread used since the one before."""
        lag = max(0.0, lag)
        # Some of the CPU time was used before the turn was due, at most a period of it.
        held = min(lag, used)
        now = time.monotonic()
        self.stalls += held > STALL_SECONDS
        self._lag.add(now, lag)
        self._held.add(now, held)
        self._distribution.observe(held)
