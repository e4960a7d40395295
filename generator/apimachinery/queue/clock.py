"""Time as queues and elections see it, so that tests can move it by hand."""

from __future__ import annotations

import threading
import time
from typing import Final, Protocol

_BOOT_TIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Seconds that only go forward, and how long to sleep really for some of them."""

    def now(self) -> float:
        """Seconds since an unknown start."""

    def real(self, seconds: float | None) -> float | None:
        """How long a waiter sleeps before it looks at the clock again; None for until it is woken."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        """The monotonic time. Where the system has a clock that counts sleep too, it is that one: a leader that was
        suspended must see that its lease has ended."""
        return time.clock_gettime(_BOOT_TIME) if _BOOT_TIME is not None else time.monotonic()

    def real(self, seconds: float | None) -> float | None:
        """What was asked for."""
        return seconds


class FakeClock:
    """A clock that stands still until ``advance``. Waiters look at it every few milliseconds."""

    LOOK_SECONDS: Final = 0.002

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._lock = threading.Lock()

    def now(self) -> float:
        """The time it was set to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        with self._lock:
            self._now += seconds

    def real(self, seconds: float | None) -> float | None:
        """A moment, where somebody waits for a time to come."""
        return None if seconds is None else self.LOOK_SECONDS


SYSTEM_CLOCK: Final = SystemClock()
