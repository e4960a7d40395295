"""The state of a work queue, and how long a failed key waits. No waiting here: ``work_queue`` does that.

Theory (client-go's workqueue). A key is worked on by one worker at a time, and what happens to it meanwhile is one
more turn, however often it happens:

* ``dirty`` holds keys that need work, ``running`` those under way. A key that is added while it runs gets dirty only;
  when its run is ``done`` it goes to the end of the line.
* A delayed key waits in a heap; of two delays for one key the earlier counts.
* ``forget`` ends the history of failures by which ``add_rate_limited`` delays a key: call it after a success.
* A key may be added as one that has time (``low``): it is given out when no other is in line, and each tenth time even
  then, so that it comes in the end. Adding it again as one that has none moves it forward.
* After ``stop`` nothing is taken in; what is in line is still given out, delayed keys are dropped.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar

from apimachinery.queue.bucket import TokenBucket
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock

K = TypeVar("K", bound=Hashable)
LOW_TURN: Final = 10


class RateLimiter(Protocol):
    """How long a key waits for its next try; safe to share between threads."""

    def delay(self, key: Hashable) -> float:
        """Takes note of a failure of ``key``: seconds to wait."""

    def forget(self, key: Hashable) -> None:
        """Ends the history of ``key``."""

    def failures(self, key: Hashable) -> int:
        """How often ``key`` failed since it was forgotten."""


class ExponentialBackoff:
    """Each failure of a key doubles its wait: 5 ms up to 1000 s, as client-go's item limiter."""

    def __init__(self, first: float = 0.005, longest: float = 1000.0) -> None:
        self._first, self._longest = first, longest
        self._failures: dict[Hashable, int] = {}
        self._lock = threading.Lock()

    def delay(self, key: Hashable) -> float:
        """Doubles with each call for a key."""
        with self._lock:
            count = self._failures.get(key, 0)
            self._failures[key] = count + 1
        wait: float = self._first * 2.0 ** min(count, 60)
        return min(wait, self._longest)

    def forget(self, key: Hashable) -> None:
        """Starts the key at ``first`` again."""
        with self._lock:
            self._failures.pop(key, None)

    def failures(self, key: Hashable) -> int:
        """How often ``delay`` was asked for the key."""
        return self._failures.get(key, 0)


class OverallLimit:
    """All failures together: ``qps`` a second after a first ``burst`` (client-go: 10 and 100)."""

    def __init__(self, qps: float = 10.0, burst: int = 100, clock: Clock = SYSTEM_CLOCK) -> None:
        self._bucket = TokenBucket(qps, burst, clock.now())
        self._clock = clock

    def delay(self, key: Hashable) -> float:
        """Until a token is there, whatever the key."""
        return self._bucket.reserve(self._clock.now())

    def forget(self, key: Hashable) -> None:
        """Does nothing: it limits all keys together."""

    def failures(self, key: Hashable) -> int:
        """0: it knows no keys."""
        return 0


class LongestOf:
    """Several limiters; the longest wait counts."""

    def __init__(self, *limiters: RateLimiter) -> None:
        self._limiters = limiters

    def delay(self, key: Hashable) -> float:
        """The longest of all delays."""
        return max(limiter.delay(key) for limiter in self._limiters)

    def forget(self, key: Hashable) -> None:
        """Ends the history of ``key`` in all of them."""
        for limiter in self._limiters:
            limiter.forget(key)

    def failures(self, key: Hashable) -> int:
        """The most that one of them counted."""
        return max(limiter.failures(key) for limiter in self._limiters)


def default_limiter(clock: Clock = SYSTEM_CLOCK) -> RateLimiter:
    """client-go's DefaultControllerRateLimiter: per key 5 ms to 1000 s, overall 10 a second after 100."""
    return LongestOf(ExponentialBackoff(), OverallLimit(clock=clock))


class Backlog(Generic[K]):
    """Keys in line, under way and delayed; safe to share between threads."""

    def __init__(self, limiter: RateLimiter | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.clock = clock
        self.limiter = limiter if limiter is not None else default_limiter(clock)
        self.stopped = False
        self._lock = threading.Lock()
        self._line: deque[K] = deque()
        self._low: dict[K, None] = {}
        self._turns = 0
        self._dirty: set[K] = set()
        self._running: set[K] = set()
        self._delayed: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._order = itertools.count()

    def add(self, key: K, *, low: bool = False) -> None:
        """Puts a key in line, unless it is there."""
        with self._lock:
            if low and not self.stopped and key not in self._dirty and key not in self._running:
                self._dirty.add(key)
                self._low[key] = None
            else:
                self._add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Puts a key in line when ``seconds`` have passed."""
        with self._lock:
            if self.stopped:
                return
            if seconds <= 0:
                self._add(key)
                return
            due = self.clock.now() + seconds
            if key in self._due and self._due[key] <= due:
                return
            self._due[key] = due
            heapq.heappush(self._delayed, (due, next(self._order), key))

    def take(self) -> tuple[K | None, float | None]:
        """The next key, which is now under way; or None, and after how many seconds a delayed one is due."""
        with self._lock:
            now = self.clock.now()
            while self._delayed and (self._delayed[0][0] <= now or self._outdated()):
                due, _, key = heapq.heappop(self._delayed)
                if self._due.get(key) == due:
                    del self._due[key]
                    self._add(key)
            if self._line or self._low:
                key = self._next()
                self._dirty.discard(key)
                self._running.add(key)
                return key, None
            return None, self._delayed[0][0] - now if self._delayed else None

    def done(self, key: K) -> None:
        """Ends the run of a key; one that was added meanwhile is in line again."""
        with self._lock:
            self._running.discard(key)
            if key in self._dirty:
                self._line.append(key)

    def stop(self) -> None:
        """Takes nothing in from now on, and drops what is delayed."""
        with self._lock:
            self.stopped = True
            self._delayed.clear()
            self._due.clear()

    def __len__(self) -> int:
        return len(self._line) + len(self._low)

    @property
    def idle(self) -> bool:
        """Whether nothing is in line, under way or delayed."""
        with self._lock:
            return not (len(self) or self._running or self._due)

    @property
    def settled(self) -> bool:
        """Whether nothing is in line or under way; keys may be delayed."""
        with self._lock:
            return not (len(self) or self._running)

    def _next(self) -> K:
        self._turns += 1
        if self._low and (not self._line or self._turns % LOW_TURN == 0):
            key = next(iter(self._low))
            del self._low[key]
            return key
        return self._line.popleft()

    def has_work(self, seconds: float) -> bool:
        """Whether anything is in line or under way, or due within so many seconds."""
        with self._lock:
            soon = bool(self._delayed) and self._delayed[0][0] <= self.clock.now() + seconds
            return soon or bool(self._line or self._running)

    def _add(self, key: K) -> None:
        if key in self._low and not self.stopped:
            del self._low[key]
            self._line.append(key)
        if self.stopped or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._running:
            self._line.append(key)

    def _outdated(self) -> bool:
        due, _, key = self._delayed[0]
        return self._due.get(key) != due
