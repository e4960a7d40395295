"""A rate-limited work queue, awaited; what it promises is in ``backlog``.

``work_queue``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

from apimachinery.queue.async_running import AsyncBell
from apimachinery.queue.backlog import Backlog, RateLimiter
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock

K = TypeVar("K", bound=Hashable)


class AsyncWorkQueue(Generic[K]):
    """Keys to work on: each in line once, each under way once. ``add`` and ``stop`` may be called from any thread."""

    def __init__(self, limiter: RateLimiter | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.backlog: Backlog[K] = Backlog(limiter, clock)
        self._bell = AsyncBell()
        self._failed: set[K] = set()

    def add(self, key: K, *, low: bool = False) -> None:
        """Puts a key in line, unless it is there; ``low``: behind all that is urgent."""
        self.backlog.add(key, low=low)
        self._bell.ring()

    def add_after(self, key: K, seconds: float) -> None:
        """Puts a key in line when ``seconds`` have passed; of several delays of a key the earliest counts."""
        self.backlog.add_after(key, seconds)
        self._bell.ring()

    def add_rate_limited(self, key: K) -> None:
        """Puts a key in line after the wait that its failures have earned it."""
        self._failed.add(key)
        self.add_after(key, self.backlog.limiter.delay(key))

    def forget(self, key: K) -> None:
        """Ends the history of failures of a key: after a success."""
        self._failed.discard(key)
        self.backlog.limiter.forget(key)

    def failures(self, key: K) -> int:
        """How often a key failed since it was forgotten."""
        return self.backlog.limiter.failures(key)

    async def get(self) -> K | None:
        """The next key, when there is one: call ``done`` with it. None after ``stop``, when the line is empty."""
        while True:
            heard = self._bell.rings
            key, wait = self.backlog.take()
            if key is not None:
                return key
            if self.backlog.stopped:
                return None
            await self._bell.wait(heard, self.backlog.clock.real(wait))

    def wake(self) -> None:
        """Has whoever waits look at the clock again: it was moved."""
        self._bell.ring()

    def done(self, key: K) -> None:
        """Ends the work on a key."""
        self.backlog.done(key)
        self._bell.ring()

    def stop(self) -> None:
        """Takes nothing in any more; ``get`` gives what is in line, then None."""
        self.backlog.stop()
        for key in [*self._failed]:  # the limiter may serve another queue after this one
            self.forget(key)
        self._bell.ring()

    async def wait_until_idle(self, seconds: float, *, delayed: bool = True) -> bool:
        """Waits until nothing is in line, under way or (where ``delayed``) delayed; whether that came in time."""
        clock = self.backlog.clock
        ends = clock.now() + seconds
        while not (self.backlog.idle if delayed else self.backlog.settled):
            heard = self._bell.rings
            left = ends - clock.now()
            if left <= 0:
                return False
            await self._bell.wait(heard, clock.real(min(left, 0.05)))
        return True

    def __len__(self) -> int:
        return len(self.backlog)
