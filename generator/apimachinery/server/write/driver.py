"""Runs the steps of requests: says what a stretch of them weighs; ``http.steps`` says where so much runs.

A stretch is the code between two effects (``effects``). It is

- light, where the request and the object are small;
- long, where one of them is large or the steps say that what follows is heavy;
- asking, where a webhook converts the objects of the resource: whoever works with them may block.

What a write weighs only grows until it is stored. A read stays light: what it computes of much is a ``Work`` of its
own, since the rest of it touches what the loop alone may touch. Stretches get plain values and effects are plain data,
so a heavy stretch could run in another process by changing ``_next`` alone.

The driver also does what storing takes besides the storage: what was allocated for an object (``Allocation``) is
secured right before and kept right after it is stored, and given back when the write fails, however it fails. A dry run
is answered by ``DryRun``, which keeps nothing.

``Current`` waits for the write of its object that is under way in this process (``KeysUnderWay``).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextlib import suppress
from typing import Any, Final, Generic, Protocol, TypeVar

from apimachinery.http.governor import SMALL_BYTES
from apimachinery.http.leftovers import held_by
from apimachinery.http.messages import LARGE_BYTES, is_large
from apimachinery.http.steps import ASKS, LIGHT, LONG, AtOnce, Heavy, Wait, Work, compute
from apimachinery.meta.errors import ApiError, unreadable
from apimachinery.server.request.target import Allocation, WriteTarget
from apimachinery.server.write.allocating import Allocator
from apimachinery.server.write.effects import Begin, Create, Current, Delete, Effect, Steps, Update
from apimachinery.server.write.storing import KeysUnderWay, Storing
from apimachinery.storage.interface import (
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    UnreadableRecord,
    Value,
)
from apimachinery.storage.watch_cache import ResourceCache, WatchCache

STORING: Final = (Create, Update, Delete)
NOTED: Final = (Current, Begin, Heavy)
_REFUSED: Final = (KeyExists, KeyNotFound, RevisionConflict)
_R = TypeVar("_R")


class WritableStorage(Protocol):
    """What of a storage is used here."""

    def create(self, key: str, value: Value) -> Coroutine[Any, Any, Record]: ...

    def update(self, key: str, expected: int, value: Value) -> Coroutine[Any, Any, Record]: ...

    def delete(
        self, key: str, expected: int, last: Value, *, marked: bool = False
    ) -> Coroutine[Any, Any, Record]: ...


class DryRun:
    """Answers as the storage would, and keeps nothing. Its values have no place for a revision: they show one."""

    def __init__(self, cache: ResourceCache) -> None:
        self._cache = cache

    async def create(self, key: str, value: Value) -> Record:
        """See Storage; what is not stored has no revision. Who creates has looked whether the key is there."""
        return Record(key, 0, 0, value.head)

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """See Storage; the revision stays."""
        return self._unchanged(key, expected, value)

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        """See Storage; the revision stays."""
        return self._unchanged(key, expected, last)

    def _unchanged(self, key: str, expected: int, value: Value) -> Record:
        present = self._cache.get(key)
        if present is None:
            raise KeyNotFound(key)
        if present.revision != expected:
            raise RevisionConflict(expected, present)
        return Record(key, expected, present.created, value.head)


class Driver:
    """Runs steps on the event loop that it is used on."""

    def __init__(
        self, storage: WritableStorage, cache: WatchCache, allocators: Mapping[str, Allocator] | None = None
    ) -> None:
        """``allocators`` are by the prefix of their resource."""
        self._allocators = allocators or {}
        self._storage = storage
        self._storing = Storing()
        self.under_way = KeysUnderWay()
        self._cache = cache

    def current(self, target: WriteTarget) -> Record | None:
        """The target's record as it is now. Raises ApiError 500 for one that is there and cannot be read."""
        key = target.key
        try:
            self._cache.check_readable(key)
        except UnreadableRecord as fault:
            raise unreadable(str(fault)) from None
        return self._cache.resource(target.served.prefix).get(key)

    async def run(self, steps: Steps[_R], *, large: bool = False) -> _R:
        """Runs steps to their end; ``large`` where they begin with something large. Raises what they raise."""
        if large:
            return await Course(self, steps, LONG).to_end()
        try:
            # Without a task or a coroutine: this is the path of every read.
            due = steps.send(None)
        except StopIteration as end:  # most reads need nothing but what is in memory
            answer: _R = end.value
            return answer
        return await Course(self, steps, LIGHT, due).to_end()

    async def run_ahead(self, begin: Callable[[], Steps[_R]], *, large: bool = False) -> _R:
        """Runs the steps of a write on what is in memory, which may be older than what other servers have answered.

        The storage refuses what was computed from an older record. Only steps that end without its word, by a refusal
        or because nothing changes, are held against the newest revision, and run again if there is a newer one.
        Raises what they raise."""
        seen, weight = self._cache.revision, LONG if large else LIGHT
        course = Course(self, begin(), weight)
        try:
            answer = await course.to_end()
        except ApiError:
            if course.is_confirmed or not await self._has_moved(seen):
                raise
        else:
            if course.is_confirmed or not await self._has_moved(seen):
                return answer
        return await Course(self, begin(), weight).to_end()

    async def _has_moved(self, seen: int) -> bool:
        """Whether there is anything newer than a revision."""
        await self._cache.catch_up()
        return self._cache.revision != seen

    async def begin(self, steps: Steps[_R]) -> Course[_R]:
        """Runs steps until they are about to store something, or end. Raises what they raise until then."""
        course = Course(self, steps, LIGHT)
        await course.to_end(stores=False)
        return course

    def store(self, effect: Create | Update | Delete) -> Coroutine[Any, Any, Record]:
        """Stores what a write has come to, or pretends to. Raises as the effects say."""
        target = effect.target
        storage = (
            DryRun(self._cache.resource(target.served.prefix)) if target.options.dry_run else self._storage
        )
        if isinstance(effect, Delete):
            return self._delete(storage, effect)
        if target.allocation is not None:
            return self._store_allocated(storage, effect, target.allocation)
        size = len(effect.value.head) + len(effect.value.tail)
        # Large values wait by user: one user's must not fill the queue to the disk.
        if size > LARGE_BYTES and target.user is not None and not target.options.dry_run:
            return self._storing.in_turn(target.user.name, size, _stored(storage, effect))
        return _stored(storage, effect)

    async def _store_allocated(
        self, storage: WritableStorage, effect: Create | Update, allocation: Allocation
    ) -> Record:
        target = effect.target
        if not target.options.dry_run:
            await allocation.secure(target.name)
        record = await _stored(storage, effect)
        # Now that the object is stored, it keeps what it was given, whatever happens to the answer.
        await settle(target, stored=True)
        return record

    async def _delete(self, storage: WritableStorage, effect: Delete) -> Record:
        target, record = effect.target, effect.record
        removed = await storage.delete(record.key, record.revision, effect.value, marked=effect.marked)
        if (
            not target.options.dry_run
            and (allocator := self._allocators.get(target.served.prefix)) is not None
        ):
            await allocator.removed(effect.last)
        return removed


def memo_of(record: Record) -> dict[Hashable, Any] | None:
    """The memo of a record that is large."""
    if record.memo is None and len(record.value) > LARGE_BYTES:
        record.memo = {}
    return record.memo


def _stored(storage: WritableStorage, effect: Create | Update) -> Coroutine[Any, Any, Record]:
    if isinstance(effect, Create):
        return storage.create(effect.target.key, effect.value)
    return storage.update(effect.record.key, effect.record.revision, effect.value)


async def settle(target: WriteTarget | None, *, stored: bool) -> None:
    """Ends what was allocated for a write: the object keeps it, or it is free again."""
    if target is None or target.allocation is None:
        return
    if stored:
        await target.allocation.keep()
    else:
        await target.allocation.drop()
    target.allocation = None


class Course(Generic[_R]):
    """Steps under way."""

    __slots__ = (
        "_answer",
        "_driver",
        "_due",
        "_ended",
        "_fault",
        "_result",
        "_steps",
        "_target",
        "_weight",
        "is_confirmed",
    )

    def __init__(self, driver: Driver, steps: Steps[_R], weight: int, due: Effect | None = None) -> None:
        """``due`` is the effect that the steps have come to already."""
        self._driver = driver
        self._steps = steps
        self._weight = weight
        self._target: WriteTarget | None = None
        self._due = due
        self._ended = False
        self._answer: Any = None
        self._fault: Exception | None = None
        self._result: Any = None
        self.is_confirmed = False
        """Whether the storage has made or refused a write, so that what was read since then is new enough."""

    async def to_end(self, *, stores: bool = True) -> _R:
        """Runs what is left; the answer of the steps. Unless it ``stores`` it stops, without one, where it would."""
        try:
            while not self._ended:
                effect, self._due = self._due, None
                if effect is None:
                    effect = await self._next() if self._weight else self._stretch()
                if isinstance(effect, NOTED):
                    if isinstance(effect, Current) and not self._driver.under_way.is_free(
                        key := effect.target.key
                    ):
                        await self._driver.under_way.turn(key)
                    self._note(effect)
                elif not stores and isinstance(effect, STORING):
                    self._due = effect
                    break
                elif effect is not None:
                    await self._meet(effect)
            else:
                if self._target is not None and self._target.allocation is not None:
                    await settle(self._target, stored=True)
        except BaseException:
            with suppress(ValueError):  # raised while another thread runs the steps
                self._steps.close()
            await settle(self._target, stored=False)
            raise
        result: _R = self._result
        return result

    async def _next(self) -> Effect | None:
        """Runs a stretch where it is to run."""
        effect, _ = await compute(self._weight, self._stretch_of_large)
        return effect

    def _stretch_of_large(self) -> tuple[Effect | None, list[Any]]:
        """With the effect goes what the steps refer to, for whoever frees large objects a little at a time. An effect
        that is noted alone does not end the stretch, unless it goes on elsewhere: the way to the loop and back again
        is long where others ask for much."""
        weight = self._weight
        effect = self._stretch()
        while isinstance(effect, Begin | Heavy):
            self._note(effect)
            if self._weight != weight:
                effect = None
                break
            effect = self._stretch()
        return effect, held_by(self._steps)

    def _stretch(self) -> Effect | None:
        """Runs a stretch, here and now; the effect it ends with, None at the end."""
        answer, fault = self._answer, self._fault
        # Kept only for this call: the frame would refer to the fault, and the fault to the frame.
        self._answer = self._fault = None
        try:
            return self._steps.send(answer) if fault is None else self._steps.throw(fault)
        except StopIteration as end:
            self._ended, self._result = True, end.value
            return None
        finally:
            answer = fault = None  # or a fault that is raised would refer to itself

    def _note(self, effect: Current | Begin | Heavy) -> None:
        """Meets an effect for which nothing has to be awaited."""
        if isinstance(effect, Heavy):
            self._weight = self._weight or LONG
            return
        target = effect.target
        if isinstance(effect, Current):
            try:
                self._answer = record = self._driver.current(target)
                if record is not None:
                    # Counted once for a write, however often it begins again.
                    if self._target is not target and len(record.value) >= SMALL_BYTES:
                        # Large objects that many requests change are gone through once.
                        target.hold(record.value, memo=memo_of(record))
                    target.large = target.large or is_large(record.value)
            except Exception as fault:
                self._fault = fault
        self._target = target
        if target.served.asks:
            self._weight = ASKS
        elif target.large:
            self._weight = self._weight or LONG

    async def _meet(self, effect: Effect) -> None:
        try:
            if isinstance(effect, STORING):
                await self._store(effect)
                # What is left is to answer, which says itself where that takes long.
                self._weight = min(self._weight, LIGHT)
            elif isinstance(effect, Wait):
                self._answer = await effect.call()
            elif isinstance(effect, Work):
                self._answer = await compute(effect.weight, effect.call)
            elif isinstance(effect, AtOnce):
                self._answer = await self._at_once(effect)
        except Exception as fault:
            self._fault = fault
            if isinstance(effect, Update):
                await settle(effect.target, stored=False)  # the next attempt allocates again

    async def _store(self, effect: Create | Update | Delete) -> None:
        under_way, key = self._driver.under_way, effect.target.key
        under_way.begin(key)
        try:
            self._answer = await self._driver.store(effect)
            self.is_confirmed = not effect.target.options.dry_run
        except _REFUSED:
            self.is_confirmed = not effect.target.options.dry_run
            raise
        finally:
            under_way.end(key)

    async def _at_once(self, effect: AtOnce) -> list[Any]:
        waiting = deque(
            asyncio.ensure_future(Course(self._driver, steps, self._weight).to_end())
            for steps in effect.steps
        )
        answers: list[Any] = []
        try:
            while waiting:
                # Not named here: a fault would refer to itself by this frame, and to whatever its own frames hold.
                answers.append(await waiting.popleft())
            return answers
        finally:
            for task in waiting:
                if not task.cancel() and not task.cancelled():
                    task.exception()  # noted, though one before it counts
