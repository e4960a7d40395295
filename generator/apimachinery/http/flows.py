"""Whose turn it is: queues of work by flow, so that one who asks for much does not hold up one who asks for little.

A *flow* is the work of one user. It is two queues: of light work, and of heavy work. By what is known beforehand, the
bytes that a request is about, and by what the user's work cost compared with that lately; bytes alone say little, since
9 KB of printer columns may cost more than 3 MB of text. Of each queue one piece runs at a time, and of all heavy queues
``HEAVY`` pieces, of all light ones ``LIGHT``. So heavy work never takes all threads, whoever asks for it, and Python
runs one thread at a time anyway. A light piece that lasts is counted as heavy (``reconsider``), which makes room for
light ones.

Virtual time (as in ``fairness/levels.py``). A queue's ``due`` is the virtual time at which its next piece may begin.
A piece that begins moves it on by the CPU time that it is expected to take, and when it ends by what it took more or
less. The queue with the smallest is next. A queue that was empty begins at the time of the others, or it could save up
a right to be served alone.
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Generic, TypeVar

on_behalf_of: ContextVar[str] = ContextVar("on_behalf_of", default="")
"""The user whose request this task works on; empty for the server's own work."""

LIGHT_SECONDS = 0.02
"""What is expected to take less is light."""
SECONDS_A_BYTE = 1e-7
"""A megabyte of JSON that is read, checked and written takes a tenth of a second."""
LEAST_SECONDS = 0.001
SMOOTHING = 0.2
KNOWN_FLOWS = 1_000
HEAVY = LIGHT = 2
"""How many pieces run at a time."""

Item = TypeVar("Item")


@dataclass(slots=True, eq=False)
class Line(Generic[Item]):
    """A queue of a flow: what waits with the time that it is expected to take, whether a piece runs, and whether that
    is counted as light."""

    flow: str
    key: tuple[str, bool]
    waiting: deque[tuple[float, Item]] = field(default_factory=deque)
    due: float = 0.0
    running: bool = False
    light: bool = False

    @property
    def is_light(self) -> bool:
        """Whether what waits here is light."""
        return self.key[1]


class FairLines(Generic[Item]):
    """All queues. Not safe for threads: whoever has it locks it."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, bool], Line[Item]] = {}
        self._rates: dict[str, float] = {}
        self._now = 0.0
        self._room = {True: LIGHT, False: HEAVY}
        """How many pieces more may run, light and heavy; below 0 where light ones turned out to be heavy."""

    def put(self, flow: str, size: int, item: Item, *, heavy: bool = False) -> None:
        """Queues work on an object of so many bytes, as heavy whatever these say where it is told to be."""
        expected = max(LEAST_SECONDS, size * SECONDS_A_BYTE) * self._rates.get(flow, 1.0)
        key = (flow, expected < LIGHT_SECONDS and not heavy)
        line = self._lines.get(key)
        if line is None:
            # Beginning at the present virtual time: an idle flow saves up no right to go first.
            line = self._lines[key] = Line(flow, key, due=self._now)
        line.waiting.append((expected, item))

    def is_ready(self) -> bool:
        """Whether a piece may begin."""
        return any(map(self._may_begin, self._lines.values()))

    def _may_begin(self, line: Line[Item]) -> bool:
        return bool(line.waiting) and not line.running and self._room[line.is_light] > 0

    def take(self) -> tuple[Line[Item], float, Item] | None:
        """The next piece, its queue and what it is expected to take. None where nothing may begin."""
        line = min(filter(self._may_begin, self._lines.values()), key=lambda line: line.due, default=None)
        if line is None:
            return None
        expected, item = line.waiting.popleft()
        line.running, line.light = True, line.is_light
        self._room[line.light] -= 1
        # A queue that owes much may be the only one that is ready: who comes now must not begin with its debt.
        self._now = max(
            self._now, min(each.due for each in self._lines.values() if each.waiting or each.running)
        )
        line.due += expected
        return line, expected, item

    def reconsider(self, line: Line[Item]) -> None:
        """Counts the piece that runs as heavy: it lasts."""
        if line.running and line.light:
            # Both counts change: its place among the light ones is free, and among the heavy ones it takes one.
            line.light = False
            self._room[True] += 1
            self._room[False] -= 1

    def done(self, line: Line[Item], expected: float, took: float) -> None:
        """Accounts for a piece that ended after ``took`` seconds of CPU time."""
        line.running = False
        self._room[line.light] += 1
        line.due += took - expected
        rate = self._rates.pop(line.flow, 1.0)
        # Put in again, it is the newest. Expectations are never less than what bytes say.
        self._rates[line.flow] = max(1.0, rate * (1 - SMOOTHING + SMOOTHING * took / expected))
        if len(self._rates) > KNOWN_FLOWS:
            del self._rates[next(iter(self._rates))]
        self._forget()

    def _forget(self) -> None:
        """Drops queues that are empty and owe nothing: their time has come, or there is nobody who waits for it."""
        if not any(line.waiting or line.running for line in self._lines.values()):
            self._lines.clear()
            return
        for line in tuple(self._lines.values()):
            if not (line.waiting or line.running) and line.due <= self._now:
                del self._lines[line.key]
