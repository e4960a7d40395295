"""The time as one server sees it: the machine's, or one that a test moves forward.

``wall`` and ``monotonic`` are ``time.time`` and ``time.monotonic`` of the clock of whoever calls. A server enters its
clock when it starts; what runs on its loop and its threads inherits it, so two servers in one process have two times.
Timeouts of connections, and what is measured, stay with the machine's time: moving a clock breaks no connection.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Protocol


class ClockFollower(Protocol):
    """Something that waits for times to come."""

    @property
    def name(self) -> str:
        """How messages call it."""

    @property
    def busy(self) -> bool:
        """Whether it has something to do now, not only when a time comes."""

    def wake(self) -> None:
        """Looks at the time again: the clock was moved. Called on the thread that moved it."""


class MovableClock:
    """The machine's time plus what ``advance`` added; from any thread."""

    def __init__(self) -> None:
        self.ahead = 0.0
        """Seconds before the machine's time."""
        self._followers: list[ClockFollower] = []

    def now(self) -> float:
        """Seconds that only go forward."""
        return time.monotonic() + self.ahead

    def real(self, seconds: float | None) -> float | None:
        """How long a waiter sleeps: ``advance`` wakes it."""
        return seconds

    def advance(self, seconds: float) -> None:
        """Lets time pass, and has waiters look at the clock. Raises ValueError for a step back."""
        if seconds < 0:
            raise ValueError(f"a clock goes forward only: {seconds:g} s")
        self.ahead += seconds
        for follower in tuple(self._followers):
            follower.wake()

    def follow(self, follower: ClockFollower) -> Callable[[], None]:
        """Wakes ``follower`` after each ``advance``; the answer ends that."""
        self._followers.append(follower)
        return lambda: self._followers.remove(follower)

    def busy(self) -> list[str]:
        """The names of those that have something to do now. Exact on the loop that they run on."""
        return [follower.name for follower in tuple(self._followers) if follower.busy]


_present: ContextVar[MovableClock] = ContextVar("clock", default=MovableClock())  # noqa: B039 - never moved


def enter(clock: MovableClock) -> None:
    """Makes a clock that of the calling context, and of what it starts from now on."""
    _present.set(clock)


def present() -> MovableClock:
    """The clock of the calling context."""
    return _present.get()


def wall() -> float:
    """Seconds since 1970."""
    return time.time() + _present.get().ahead


def monotonic() -> float:
    """Seconds that only go forward, of an unknown start."""
    return time.monotonic() + _present.get().ahead


def utc() -> datetime:
    """The time, in UTC."""
    return datetime.fromtimestamp(wall(), UTC)


_second: tuple[int, str] = (0, "")


def now() -> str:
    """The time in RFC 3339, in whole seconds."""
    global _second
    second = int(wall())
    if _second[0] != second:
        _second = (second, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(second)))
    return _second[1]
