"""How late the event loop is: what every request waits for while one of them holds the loop.

A task asks to be woken every 50 ms and measures how much later it is. /metrics has the worst of the last minute and how
often it was later than 100 ms.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from apimachinery.server.operate.metrics import Metrics

PERIOD_SECONDS = 0.05
STALL_SECONDS = 0.1
WINDOW_SECONDS = 60.0


class LoopLag:
    """The lag of the loop that ``measure`` runs on."""

    def __init__(self, metrics: Metrics) -> None:
        self.stalls = 0
        # The lags of the last minute that no later one exceeds, oldest (and largest) first.
        self._worst: deque[tuple[float, float]] = deque()
        metrics.gauge("kubewright_loop_lag_seconds", "Worst lag of the loop in the last minute.", self.worst)
        metrics.gauge(
            "kubewright_loop_stalls_total",
            "How often the loop was held for more than 100 ms.",
            lambda: self.stalls,
            kind="counter",
        )

    def worst(self) -> float:
        """The worst lag of the last minute, in seconds."""
        now = time.monotonic()
        while self._worst and self._worst[0][0] < now - WINDOW_SECONDS:
            self._worst.popleft()
        return self._worst[0][1] if self._worst else 0.0

    async def measure(self) -> None:
        """Measures until cancelled."""
        while True:
            before = time.monotonic()
            await asyncio.sleep(PERIOD_SECONDS)
            now = time.monotonic()
            lag = max(0.0, now - before - PERIOD_SECONDS)
            self.stalls += lag > STALL_SECONDS
            while self._worst and (self._worst[-1][1] <= lag or self._worst[0][0] < now - WINDOW_SECONDS):
                if self._worst[-1][1] <= lag:
                    self._worst.pop()
                else:
                    self._worst.popleft()
            self._worst.append((now, lag))
