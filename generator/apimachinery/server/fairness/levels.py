"""One priority level: its seats, its queues, and which request is next.

Virtual time. A queue's ``due`` is the virtual time at which its next request may begin: each request that is
dispatched moves it on by the work that it is expected to be (its seats, for as long as requests of this level last on
average), and by the difference when it ends. The queue with the smallest ``due`` is next. A queue that was empty begins
at the time of the others: it saves up no right to be served alone, and what it was served before is not held against it
(as with kube-apiserver). A user whose one write took 60 ms would wait for thousands of another's gets of 20 µs.

Kept seats. Requests that take seats may wait for a thread for a long time, since Python runs one at a time: sixty slow
lists of one user would hold every seat, and a get of another would wait until one of them ends. So a flow that has
seats gets no more of the last quarter of them, which are kept for flows that have none.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from apimachinery.http.remembered import Remembered

WAIT_SECONDS = 15.0
"""A quarter of the time that a request may take, as with kube-apiserver."""
SMOOTHING = 0.1
FIRST_GUESS = 0.001
KEPT_SHARE = 4
"""One seat of so many is kept for flows that have none."""
Json = dict[str, Any]


class Rejected(Exception):
    """A request that is not served now: ``reason`` is ``queue-full``, ``concurrency-limit`` or ``time-out``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(slots=True, eq=False)
class Waiter:
    """A request that waits."""

    seats: int
    turn: asyncio.Future[None]
    queue: Queue
    since: float
    flow: str


@dataclass(slots=True, eq=False)
class Queue:
    """Requests that wait, first come first."""

    waiting: deque[Waiter] = field(default_factory=deque)
    due: float = 0.0
    executing: int = 0
    expected: deque[float] = field(default_factory=deque)
    """By how much each request that executes moved ``due`` on when it began."""


@dataclass(frozen=True, slots=True)
class LevelShape:
    """What a PriorityLevelConfiguration says."""

    exempt: bool = False
    shares: int = 0
    lendable_percent: int = 0
    borrowing_percent: int | None = None
    queues: int = 0
    hand: int = 0
    length: int = 0


def read_shape(obj: Json) -> LevelShape:
    """The shape of an object as it is stored: checked when it was written, if perhaps by another release."""
    spec = obj.get("spec") or {}
    if spec.get("type") == "Exempt":
        exempt = spec.get("exempt") or {}
        return LevelShape(
            True, int(exempt.get("nominalConcurrencyShares") or 0), int(exempt.get("lendablePercent") or 0)
        )
    limited = spec.get("limited") or {}
    shares = limited.get("nominalConcurrencyShares")
    response = limited.get("limitResponse") or {}
    queuing = (response.get("queuing") or {}) if response.get("type") == "Queue" else {}
    borrowing = limited.get("borrowingLimitPercent")
    return LevelShape(
        False,
        # The API's default, for objects stored without it.
        30 if shares is None else int(shares),
        int(limited.get("lendablePercent") or 0),
        None if borrowing is None else int(borrowing),
        int(queuing.get("queues") or 0),
        int(queuing.get("handSize") or 0),
        int(queuing.get("queueLengthLimit") or 0),
    )


class Level:
    """A priority level at work. ``nominal`` are its own seats, ``lendable`` how many of them others may use while it
    does not, ``borrowable`` how many of others it may use."""

    def __init__(self, name: str, uid: str, shape: LevelShape) -> None:
        self.name = name
        self.nominal = self.lendable = 0
        self.borrowable = 0
        self.executing = 0
        self.running = 0
        self.waiting = 0
        self.due = 0.0
        self.average = FIRST_GUESS
        self._held: dict[str, int] = {}
        self.configure(uid, shape)

    def configure(self, uid: str, shape: LevelShape) -> None:
        """Takes a new shape; requests that wait stay where they are."""
        self.uid, self.shape = uid, shape
        old = getattr(self, "queues", [])
        queues = [Queue() for _ in range(max(shape.queues, 1))]
        for number, queue in enumerate(old):
            if queue.waiting or queue.executing:
                # Under another number of queues a flow may be dealt others; order within the queue stays.
                if number < len(queues):
                    queues[number] = queue
                else:
                    queues.append(queue)
        self.queues: list[Queue] = queues
        self._busy: set[Queue] = {queue for queue in queues if queue.waiting or queue.executing}
        self._hands: Remembered[str, list[int]] = Remembered()

    def seat(self, total: int, all_shares: int) -> None:
        """Works out the seats of ``total`` that are its own."""
        shape = self.shape
        # Rounded up: a level with shares has one seat at least.
        self.nominal = -(-total * shape.shares // all_shares) if all_shares else 0
        self.lendable = _rounded(self.nominal * shape.lendable_percent / 100)
        if shape.borrowing_percent is None:
            self.borrowable = total
        else:
            self.borrowable = _rounded(self.nominal * shape.borrowing_percent / 100)

    def spare(self) -> int:
        """Seats that others may use now."""
        return min(self.lendable, self.nominal - self.executing) if self.nominal > self.executing else 0

    def choose(self, flow: str) -> Queue:
        """The queue of a flow: of its hand the one with the least before it."""
        number = min(self.shape.queues, len(self.queues))
        if number <= 1:
            return self.queues[0]
        hand = self._hands.get(flow)
        if hand is None:
            # Shuffle sharding: a heavy flow fills its own hand, and others have queues it is not in.
            hand = deal(flow, number, self.shape.hand)
            self._hands.put(flow, hand)
        return min(
            (self.queues[card] for card in hand), key=lambda queue: len(queue.waiting) + queue.executing
        )

    def kept_from(self, flow: str) -> int:
        """Seats that a flow leaves to others: none where it has none itself, or where nobody can wait."""
        return self.nominal // KEPT_SHARE if flow in self._held and self.shape.queues else 0

    def wait(self, queue: Queue, seats: int, flow: str) -> Waiter:
        """Lets a request wait. Raises Rejected."""
        if not self.shape.queues:
            raise Rejected("concurrency-limit")
        if len(queue.waiting) >= self.shape.length:
            raise Rejected("queue-full")
        waiter = Waiter(seats, asyncio.get_running_loop().create_future(), queue, perf_counter(), flow)
        # Its due is set only when it was idle, so that it saves up nothing.
        if not queue.waiting and not queue.executing:
            self._join(queue)
        queue.waiting.append(waiter)
        self.waiting += 1
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Takes out a request that gives up waiting."""
        if waiter in waiter.queue.waiting:
            waiter.queue.waiting.remove(waiter)
            self.waiting -= 1

    def next_queue(self, fits: Callable[[Waiter], bool]) -> Queue | None:
        """The queue whose turn it is, None where its request does not fit: those behind it wait too, or narrow ones
        would keep wide ones out for ever. But what a flow leaves to others, they may take."""
        ready = [queue for queue in self.queues if queue.waiting]
        first = min(ready, key=_turn, default=None)
        if first is None or fits(first.waiting[0]):
            return first
        if not self.kept_from(first.waiting[0].flow):
            return None
        new = (queue for queue in ready if queue.waiting[0].flow not in self._held)
        first = min(new, key=_turn, default=None)
        return first if first is not None and fits(first.waiting[0]) else None

    def _join(self, queue: Queue) -> None:
        """Adds a queue that was empty, due with the queue that was served least. Expected service does not count: of a
        flood that is refused at once little of it comes true."""
        self._busy = {other for other in self._busy if other.waiting or other.executing}
        queue.due = min((other.due - sum(other.expected) for other in self._busy), default=self.due)
        self._busy.add(queue)

    def begin(self, queue: Queue, seats: int, flow: str) -> None:
        """Lets in a request of a queue."""
        if not queue.waiting and not queue.executing:
            self._join(queue)
        self.due = max(self.due, queue.due)
        queue.expected.append(seats * self.average)
        queue.due += queue.expected[-1]
        queue.executing += 1
        self.executing += seats
        self.running += 1
        self._held[flow] = self._held.get(flow, 0) + seats

    def end(self, queue: Queue, seats: int, flow: str, seconds: float) -> None:
        """Ends a request, after so many seconds."""
        # What it was expected to be then: the average has changed since, and the difference would add up.
        queue.due += seats * seconds - queue.expected.popleft()
        self.average += SMOOTHING * (seconds - self.average)
        queue.executing -= 1
        self.executing -= seats
        self.running -= 1
        self._held[flow] -= seats
        if not self._held[flow]:
            del self._held[flow]


def _turn(queue: Queue) -> tuple[float, float]:
    """What queues that wait are ordered by."""
    return queue.due, queue.waiting[0].since


def _rounded(value: float) -> int:
    """Halves up, as Go rounds."""
    return int(value + 0.5)


def deal(flow: str, queues: int, hand: int) -> list[int]:
    """A hand of queues for a flow: the same each time, all hands alike likely, no queue twice.

    The hash is consumed digit by digit in a base that shrinks as cards are dealt.
    """
    entropy = int.from_bytes(hashlib.blake2b(flow.encode(), digest_size=8).digest(), "big")
    cards: list[int] = []
    for dealt in range(min(hand, queues)):
        entropy, card = divmod(entropy, queues - dealt)
        for other in sorted(cards):
            if card >= other:
                card += 1
        cards.append(card)
    return cards
