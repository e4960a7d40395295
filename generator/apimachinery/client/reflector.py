"""Mirroring a selection of objects: list, then watch, forever. No event lost, none doubled.

Theory (client-go's reflector, KEP-3157 for streaming lists). The server gives a consistent state at a version,
and after it every change in order. A mirror holds the last version it has seen. So:

* Begin with a list (or a streaming list, whose ``initial-events-end`` bookmark closes the state), and watch from
  its version. Every event and every bookmark moves the version on.
* A watch that ends or breaks is opened again at the last version: nothing between was missed. A server may then
  repeat what was already seen; an event whose version the mirror holds for that object is dropped.
* An object that does not fit its model is no part of the mirror: one that was, and changed so, is DELETED there. The
  mirror keeps its JSON in ``unreadable``, and the rest goes on.
* 410 (the version is too old) in either step: list again, from the newest state, and tell the difference to what
  the mirror holds: so handlers see each object's change once, though not every step in between.
* An object of the same name and another uid was deleted and recreated: that is DELETED, then ADDED.
* Breaks are followed by a growing pause with jitter; a watch that brought something starts it afresh. A server that
  cannot be reached is tried again within ``RECONNECT_SECONDS`` however long that lasts: a refused connection costs it
  nothing, and the jitter has those who wait come one after the other.
* A watch may be silent because nothing happens, or because the other side is gone without a word. After ``silence``
  seconds it is opened again, with a time limit a little shorter than that: a server says a bookmark before it ends a
  watch, so quiet watches are short and keep their version current, busy ones long, and a dead one is found in 45 s
  (as long as client-go's pings take). Silence where the server was to end the watch is a failure.
* Until the first state is there, an error that waiting does not cure (401, 403, 404, a kubeconfig that cannot be used)
  is raised: it is nearly always a mistake of whoever starts the program. After that nothing is: roles, tokens and
  CRDs go away for a moment and come back. Every failure is logged, kept as ``last_error`` and passed to ``on_error``.

``Mirror`` is that state without any I/O; ``Reflector`` here and ``AsyncReflector`` (async_reflector) drive it.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Literal, TypeAlias, TypeVar, overload

from apimachinery.client import calls
from apimachinery.client.access import Key, key_of, resource_version_of, uid_of
from apimachinery.client.calls import (
    PAGE_SIZE,
    UNSTRUCTURED,
    Codec,
    Event,
    EventType,
    ListOptions,
    RawEvent,
    Target,
    WatchOptions,
    decode_items,
    no_collection,
)
from apimachinery.client.config import ConfigError
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import LineStream, Request, TransportError
from apimachinery.client.errors import (
    BadRequest,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Unauthorized,
    UnreadableObject,
)
from apimachinery.client.sharing import sharing
from apimachinery.meta.errors import ApiError
from apimachinery.meta.printing import printable
from apimachinery.typed import lossless

T = TypeVar("T")

ChangeKind: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
WATCH_SECONDS: Final = (300, 600)
SHORT_WATCH_SECONDS: Final = 1.0
RECONNECT_SECONDS: Final = 2.0
_USELESS_TO_REPEAT: Final = (Unauthorized, Forbidden, NotFound, BadRequest, Invalid, ConfigError)

_log = logging.getLogger("kubewright.client")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What became of one object. ``old`` is what the mirror held before; DELETED gives the last state seen.
    ``initial``: it was there already when the handler came. ``key`` is its namespace and name."""

    kind: ChangeKind
    object: T
    old: T | None = None
    initial: bool = False
    key: Key = field(default=("", ""), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.key[1]:
            object.__setattr__(self, "key", key_of(self.object))


class FirstState(Sequence[Change[T]]):
    """ADDED of every object of a first state, made when they are iterated: a list of them would take as much memory as
    their keys. It is good until the next batch is asked for."""

    def __init__(self, items: Mapping[Key, T]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Change[T]]:
        return (Change("ADDED", item, key=key) for key, item in self._items.items())

    @overload
    def __getitem__(self, index: int) -> Change[T]: ...

    @overload
    def __getitem__(self, index: slice) -> list[Change[T]]: ...

    def __getitem__(self, index: int | slice) -> Change[T] | list[Change[T]]:
        return [*self][index]


class Mirror(Generic[T]):
    """The objects of a selection as last seen, and the version they are of."""

    def __init__(self) -> None:
        self.items: dict[Key, T] = {}
        self.unreadable: dict[Key, UnreadableObject] = {}
        self.version = ""

    def replace(
        self, items: Iterable[T], version: str, unreadable: Iterable[UnreadableObject] = ()
    ) -> Sequence[Change[T]]:
        """A whole new state: gives the difference, deletions first."""
        self.unreadable = {error.key: error for error in unreadable}
        # By name: the uid decides below whether it is still the same object.
        fresh = {key_of(item): item for item in items}
        if not self.items:
            self.items, self.version = fresh, version
            return FirstState(fresh)
        changes = [
            Change("DELETED", old, old, key=key) for key, old in self.items.items() if key not in fresh
        ]
        for key, item in fresh.items():
            made = self._changes(key, item)
            changes += made
            if not made:
                fresh[key] = self.items[key]  # unchanged: what handlers already hold stays the object we hold
        self.items, self.version = fresh, version
        return changes

    def apply(self, event: Event[T]) -> list[Change[T]]:
        """One event: gives what changed; nothing for bookmarks and for what was already seen."""
        if event.resource_version:
            # Bookmarks move the version on too, so a quiet watch does not fall behind.
            self.version = event.resource_version
        if event.object is None:
            return []
        key = key_of(event.object)
        self.unreadable.pop(key, None)
        if event.type == "DELETED":
            old = self.items.pop(key, None)
            # A server may repeat events from before the version; what is not held is news to nobody.
            return [] if old is None else [Change("DELETED", event.object, old, key=key)]
        changes = self._changes(key, event.object)
        self.items[key] = event.object
        return changes

    def leave_out(self, error: UnreadableObject, event_type: EventType) -> list[Change[T]]:
        """The event of an object that cannot be read: what handlers are told of it."""
        self.version = error.object_version or self.version
        if event_type == "DELETED":
            self.unreadable.pop(error.key, None)
        else:
            self.unreadable[error.key] = error
        old = self.items.pop(error.key, None)
        return [] if old is None else [Change("DELETED", old, old)]

    def _changes(self, key: Key, item: T) -> list[Change[T]]:
        old = self.items.get(key)
        if old is None:
            return [Change("ADDED", item, key=key)]
        if uid_of(old) != uid_of(item):
            return [Change("DELETED", old, old, key=key), Change("ADDED", item, key=key)]
        if resource_version_of(old) == resource_version_of(item):
            return []
        return [Change("MODIFIED", item, old, key=key)]


class InitialEvents(Generic[T]):
    """The state that a streaming list tells, read in batches: so it costs what pages cost, not what events cost."""

    def __init__(self, codec: Codec[T]) -> None:
        self._codec = codec
        self._parts: list[lossless.Origin] = []
        self._items: dict[Key, T] = {}
        self._unreadable: dict[Key, UnreadableObject] = {}

    def take(self, event: RawEvent) -> None:
        """Takes one event before the end of the state: nearly always ADDED, but changes may come in between."""
        if event.raw is None:
            return
        self._parts.append(event.raw)
        if event.type == "DELETED":
            self._read()
            gone = key_of(UNSTRUCTURED.decode(event.raw))
            self._items.pop(gone, None)
            self._unreadable.pop(gone, None)
        # Decoded in batches, which cost what pages of a list cost.
        elif len(self._parts) >= PAGE_SIZE:
            self._read()

    def state(self, version: str) -> tuple[Iterable[T], str, Iterable[UnreadableObject]]:
        """The whole state: what ``Mirror.replace`` takes."""
        self._read()
        return self._items.values(), version, self._unreadable.values()

    def _read(self) -> None:
        with no_collection():
            items, unreadable = decode_items(self._codec, self._parts)
        self._parts = []
        for item in items:
            key = key_of(item)
            self._items[key] = item
            self._unreadable.pop(key, None)
        for error in unreadable:
            self._items.pop(error.key, None)
            self._unreadable[error.key] = error


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorOptions:
    """How a reflector behaves; waits in seconds. ``streaming``: ask for streaming lists, falling back to pages
    where a server has none. ``silence``: a watch that brings nothing for so long, not even a bookmark, is reopened.
    ``patient``: wait for the first state through every refusal. ``on_error`` is called with each failure."""

    streaming: bool = False
    first_wait: float = 0.1
    longest_wait: float = 30.0
    silence: float = 45.0
    patient: bool = False
    on_error: Callable[[Exception], None] | None = None


@dataclass(slots=True)
class Pause:
    """The growing pause between failures."""

    options: ReflectorOptions
    failures: int = 0
    _random: random.Random = field(default_factory=random.Random)

    def next(self, longest: float = float("inf")) -> float:
        """Takes note of a failure; how many seconds to wait after it, ``longest`` at most."""
        self.failures += 1
        # At most 2^20 times: a float would overflow after a long outage.
        doubled: float = self.options.first_wait * 2.0 ** min(self.failures - 1, 20)
        return min(self.options.longest_wait, longest, doubled) * self._random.uniform(0.5, 1.0)


class ReflectorPlan(Generic[T]):
    """What both drivers share: options of each request, and what a failure means."""

    def __init__(
        self, target: Target, codec: Codec[T], selection: ListOptions, options: ReflectorOptions
    ) -> None:
        self.target = target
        self.codec = sharing(codec)
        self.selection = selection
        self.options = options
        self.mirror: Mirror[T] = Mirror()
        self.streaming = options.streaming
        self.listed = False
        self.synced = False
        self.quiet = False
        self.following = False
        self.last_error: Exception | None = None
        self.pause = Pause(options)

    def watch_request(self, version: str, *, initial: bool) -> Request:
        """The request of a watch from ``version``, or of a streaming list."""
        seconds = random.randint(*WATCH_SECONDS)
        if self.quiet:
            # Shorter than the silence allowed: the server ends the watch with a bookmark before it counts as dead.
            seconds = max(1, int(self.options.silence * 0.9))
        options = WatchOptions(
            bookmarks=True, initial_events=initial, timeout_seconds=seconds, silence=self.options.silence
        )
        request = calls.watch(self.target, replace(self.selection, resource_version=version), options)
        return replace(request, headers=self.codec.accept(as_list=False)) if self.codec.form else request

    def ended(self, events: int, seconds: float) -> float:
        """Takes note of a watch that ended by itself after that many events: how long to wait before the next.

        One that ends at once and brings nothing is a failure, else a server in trouble would be asked without pause.
        """
        return self.pause.next() if not events and seconds < SHORT_WATCH_SECONDS else 0.0

    def succeeded(self, *, following: bool = False) -> None:
        """Takes note of an answer: the server speaks to us again; ``following`` where it is that of a watch."""
        self.following = following
        self.last_error = None

    def heard(self, event: RawEvent) -> None:
        """Takes note of an event of a watch."""
        self.pause.failures = 0
        if event.raw is not None:
            self.quiet = False

    def failed(self, error: Exception) -> float:
        """Takes note of a failure: how long to wait before going on. Raises it where going on is useless."""
        if isinstance(error, Gone):
            self.listed = False
            wait = self.pause.next()
            # The first 410 is ordinary after a pause; a second one in a row is a server in trouble.
            return 0.0 if self.pause.failures == 1 else wait
        if isinstance(error, TransportError) and error.timed_out and self.following and not self.quiet:
            self.quiet = True
            return 0.0
        if self.streaming and not self.listed and isinstance(error, Invalid | BadRequest):
            # A server without streaming lists refuses the parameter.
            self.streaming = False
            return 0.0
        known = isinstance(error, ApiError | TransportError | ConfigError)
        if not self.synced and not self.options.patient:
            if not known or isinstance(error, _USELESS_TO_REPEAT):
                raise error
        if not isinstance(error, TransportError):
            # The state may be another one by now: a resource that was not found may be a CRD made again, whose
            # objects are not those that the last version knew.
            self.listed = self.listed and isinstance(error, Unauthorized | Forbidden | ConfigError)
        unreachable = isinstance(error, TransportError) and not error.sent
        wait = self.pause.next(RECONNECT_SECONDS if unreachable else float("inf"))
        if isinstance(error, ApiError):
            # Retry-After is a lower bound, never a reason to wait less.
            wait = max(wait, float(error.retry_after))
        self._report(error, wait, trace=not known)
        return wait

    def _report(self, error: Exception, wait: float, *, trace: bool) -> None:
        self.last_error = error
        what = f"{self.target.collection()}: {error}; trying again in {wait:.1f} s"
        _log.warning("mirroring %s", printable(what), exc_info=error if trace else None)
        if self.options.on_error is not None:
            try:
                self.options.on_error(error)
            except Exception:  # somebody else's hook must not end the mirroring
                _log.exception("on_error failed")


class Reflector(Generic[T]):
    """Mirrors a selection, in the thread that iterates it."""

    def __init__(
        self,
        client: Client,
        target: Target,
        codec: Codec[T],
        selection: ListOptions | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._plan = ReflectorPlan(target, codec, selection or ListOptions(), options or ReflectorOptions())
        self._stopped = threading.Event()
        self._stream: LineStream | None = None
        self.synced = threading.Event()

    @property
    def mirror(self) -> Mirror[T]:
        """The state so far; changed by the iterating thread only."""
        return self._plan.mirror

    @property
    def namespace(self) -> str:
        """The namespace that it mirrors; empty for all of them."""
        return self._plan.target.namespace

    @property
    def last_error(self) -> Exception | None:
        """What the last try ran into; None while the server answers."""
        return self._plan.last_error

    def stop(self) -> None:
        """Ends the iteration, from any thread."""
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            stream.close()

    def __iter__(self) -> Iterator[Sequence[Change[T]]]:
        """Batches of changes, in order; the first batch is the whole state (and may be empty).

        Raises ``Unauthorized``, ``Forbidden``, ``NotFound``, ``BadRequest``, ``Invalid`` and ``ConfigError`` before
        the first state only, and not where ``ReflectorOptions.patient``.
        """
        plan = self._plan
        while not self._stopped.is_set():
            try:
                if not plan.listed:
                    yield from self._start()
                yield from self._follow(plan.mirror.version)
            except Exception as error:  # nothing but stop ends a mirror; Plan.failed says which are raised
                # stop() may have come before the stream was there to be closed.
                if self._stopped.is_set():
                    return
                self._stopped.wait(plan.failed(error))

    def _start(self) -> Iterator[Sequence[Change[T]]]:
        plan = self._plan
        if plan.streaming:
            initial = InitialEvents(plan.codec)
            for event in self._events("", initial=True):
                if event.initial_events_end:
                    yield self._listed(plan.mirror.replace(*initial.state(event.resource_version)))
                    return
                initial.take(event)
            raise TransportError("the streaming list ended before its state was complete", sent=True)
        found: list[T] = []
        unreadable: list[UnreadableObject] = []
        version, token, tokens = "", "", calls.Tokens()
        while True:
            page = self._client.run(calls.list_page(plan.target, plan.codec, plan.selection, token))
            found += page.items
            unreadable += page.unreadable
            version = version or page.resource_version
            token = tokens.take(page.next_token)
            if not token:
                break
        yield self._listed(plan.mirror.replace(found, version, unreadable))

    def _listed(self, changes: Sequence[Change[T]]) -> Sequence[Change[T]]:
        self._plan.listed = self._plan.synced = True
        self._plan.succeeded()
        if unreadable := self._plan.mirror.unreadable:
            self._client._report_unreadable(unreadable.values())
        self.synced.set()
        return changes

    def _follow(self, version: str) -> Iterator[list[Change[T]]]:
        began, events = time.monotonic(), 0
        for event in self._events(version, initial=False):
            events += 1
            self._plan.heard(event)
            changes = self._apply(event)
            if changes:
                yield changes
        self._stopped.wait(self._plan.ended(events, time.monotonic() - began))

    def _apply(self, event: RawEvent) -> list[Change[T]]:
        plan = self._plan
        try:
            return plan.mirror.apply(event.decoded(plan.codec))
        except UnreadableObject as error:
            self._client._report_unreadable([error])
            return plan.mirror.leave_out(error, event.type)

    def _events(self, version: str, *, initial: bool) -> Iterator[RawEvent]:
        self._plan.following = False
        stream = self._client._stream(self._plan.watch_request(version, initial=initial))
        self._stream = stream
        self._plan.succeeded(following=not initial)
        try:
            if self._stopped.is_set():
                return
            for line in stream:
                yield calls.raw_event(line)
        finally:
            self._stream = None
            stream.close()
