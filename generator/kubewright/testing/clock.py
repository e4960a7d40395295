"""The time of a server for tests, moved by durations as Go writes them."""

from __future__ import annotations

from apimachinery.meta.clock import MovableClock
from apimachinery.server.node.behaviour import parse_duration


class TestClock(MovableClock):
    """``server.clock``: it goes with the machine's time, and forward by what a test says."""

    __test__ = False  # no test class, in pytest's eyes

    def advance(self, duration: float | str) -> None:
        """Lets time pass: seconds, or ``1h30m``. Raises ValueError for anything else, or a step back."""
        seconds = parse_duration(duration) if isinstance(duration, str) else duration
        if seconds is None:
            raise ValueError(f"{duration!r} is no duration; write 90s, 15m or 1h30m")
        super().advance(seconds)
