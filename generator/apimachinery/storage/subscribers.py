"""The live half of ``Storage.watch``: who is called with which events. Shared by the in-process drivers."""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.storage.interface import Event, Reset, Sink


class Subscribers:
    """Running watches; ``publish`` hands a batch of events to each."""

    def __init__(self) -> None:
        self._watches: list[Subscription] = []

    def add(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> Subscription:
        """Starts a watch that leaves out what is at or before ``after``."""
        watch = Subscription(self, prefix, after, sink, reset)
        self._watches.append(watch)
        return watch

    def publish(self, events: Sequence[Event]) -> None:
        """Calls every sink with those of ``events`` that are its own."""
        for watch in tuple(self._watches):
            watch.take(events)

    def reset(self) -> None:
        """Tells every watch that events were lost."""
        for watch in tuple(self._watches):
            watch.lose()

    def remove(self, watch: Subscription) -> None:
        """Forgets a watch."""
        if watch in self._watches:
            self._watches.remove(watch)


class Subscription:
    """One running watch."""

    __slots__ = ("_after", "_group", "_prefix", "_reset", "_sink")

    def __init__(self, group: Subscribers, prefix: str, after: int, sink: Sink, reset: Reset | None) -> None:
        self._group = group
        self._prefix = prefix
        self._after = after
        self._sink = sink
        self._reset = reset

    def take(self, events: Sequence[Event]) -> None:
        """Passes on what the watch asked for."""
        if self._prefix or events[0].record.revision <= self._after:
            events = [
                event
                for event in events
                if event.revision > self._after and event.record.key.startswith(self._prefix)
            ]
        if events:
            self._sink(events)

    def lose(self) -> None:
        """Says that events were lost; what comes now is taken, whatever its revision."""
        self._after = 0
        if self._reset is not None:
            self._reset()

    def close(self) -> None:
        """Ends the watch."""
        self._group.remove(self)
