"""Which events are rewritten, which only counted, and which not at all. No I/O.

Rules (client-go's EventCorrelator): events equal in source, object, type, reason and message are one Event with a
``count``. More than ten that differ in their message only, within ten minutes, become one whose message says that it
combines them. And each object may cause 25 events at once, then one in five minutes: a controller in trouble must not
fill the cluster's storage.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from apimachinery.queue.bucket import TokenBucket
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock

EventKind: TypeAlias = Literal["Normal", "Warning"]

SIMILAR: Final = 10
SIMILAR_SECONDS: Final = 600.0
KEPT: Final = 4096
SPAM_QPS: Final = 1 / 300
SPAM_BURST: Final = 25
COMBINED: Final = "(combined from similar events): "
LONGEST_MESSAGE: Final = 1024


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One thing that happened to an object (``uid``)."""

    uid: str
    kind: EventKind
    reason: str
    message: str


@dataclass(slots=True)
class Series:
    """An Event that stands for one or more occurrences; ``name`` is empty until it is written."""

    message: str
    count: int = 0
    name: str = ""
    first: str = ""


@dataclass(slots=True)
class _Similar:
    since: float
    messages: set[str] = field(default_factory=set)


class EventSeries:
    """What was told of late, and what becomes of the next occurrence."""

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._series: OrderedDict[Occurrence, Series] = OrderedDict()
        self._similar: OrderedDict[tuple[str, str, str], _Similar] = OrderedDict()
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, seen: Occurrence) -> Series | None:
        """The series that an occurrence belongs to, counted; None where its object says too much."""
        with self._lock:
            now = self._clock.now()
            bucket = self._buckets.setdefault(seen.uid, TokenBucket(SPAM_QPS, SPAM_BURST, now))
            if not bucket.take(now):
                return None
            message = seen.message[:LONGEST_MESSAGE]
            group = (seen.uid, seen.kind, seen.reason)
            similar = self._similar.setdefault(group, _Similar(now))
            if now - similar.since > SIMILAR_SECONDS:
                self._similar[group] = similar = _Similar(now)
            similar.messages.add(message)
            key = Occurrence(seen.uid, seen.kind, seen.reason, message)
            if len(similar.messages) > SIMILAR:
                similar.messages.discard(message)
                key = Occurrence(seen.uid, seen.kind, seen.reason, COMBINED)
                message = (COMBINED + message)[:LONGEST_MESSAGE]
            series = self._series.setdefault(key, Series(message))
            series.message = message
            series.count += 1
            for table in (self._series, self._similar, self._buckets):
                while len(table) > KEPT:
                    table.popitem(last=False)
            return series
