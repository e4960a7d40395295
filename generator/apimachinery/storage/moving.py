"""All objects of a storage: copied to another, looked over, written again.

- A copy takes the state at one revision of the source. What the target has already with the same content is left, so a
  copy that was cut short is simply run again; anything else there is refused. Revisions are the target's own, and they
  must not mean anything to those who know the source's: the target's are brought past them and compacted, so whoever
  goes on from one of before is answered 410 and lists again.
- Events get a time to live again, as whoever writes them gives them one: what is stored says nothing of it, and in etcd
  an event without it would stay for ever.
- A check reads every object, and looks whether it is the one that its key names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from apimachinery.storage.interface import (
    KeyExists,
    KeyNotFound,
    Record,
    RevisionConflict,
    Storage,
    StorageError,
    Value,
)
from apimachinery.storage.layout import package_prefix, place_of
from apimachinery.storage.objects import NotAnObject, at_other_revision, value_of

AT_ONCE = 64
PAGE = 500
SKIPPED_ONE_BY_ONE = 200_000
"""How many revisions a copy goes past by writing; etcd has no other way while it runs."""
EVENTS = package_prefix("", "events")
EVENT_SECONDS = 3600
"""How long an event lasts that was copied or written again: kube-apiserver's default."""
Progress = Callable[[int, int], None]
"""Is told how many are done, of how many."""


class CopyRefused(StorageError):
    """A copy that would mix two states; the text says what is in the way."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy did: objects written, objects that were there; the revisions of source and target; whether those of
    before are compacted in the target."""

    written: int
    present: int
    source: int
    target: int
    broken: bool


@dataclass(slots=True)
class Findings:
    """What a check found: how many objects of which resource, and the faults by key."""

    revision: int = 0
    objects: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


async def copy_objects(
    source: Storage, target: Storage, tell: Progress, pass_revision: Callable[[], Any] | None
) -> Copied:
    """Copies all objects. ``pass_revision`` takes the target one revision further without an object. Raises
    CopyRefused, StorageError."""
    if hidden := dict(source.unreadable):
        key, reason = min(hidden.items())
        # A copy without them would look complete.
        raise CopyRefused(f"the source has {len(hidden)} objects that cannot be read: {key}: {reason}, …")
    page = await source.list("")
    wanted = {record.key: record for record in page.records}
    present = {record.key: record for record in (await target.list("")).records}
    strange = sorted(present.keys() - wanted.keys())
    if strange:
        raise CopyRefused(f"the target has {len(strange)} objects that the source has not: {strange[0]}, …")
    missing = [record for key, record in wanted.items() if not _same(record, present.get(key))]
    changed = [record.key for record in missing if record.key in present]
    if changed:
        raise CopyRefused(f"the target has {len(changed)} objects with other content: {changed[0]}, …")
    done = 0
    async for _ in _at_once(missing, lambda record: _create(target, record)):
        done += 1
        tell(done, len(missing))
    broken = await _break(source.revision, target, pass_revision)
    return Copied(done, len(wanted) - done, source.revision, target.revision, broken)


async def _break(before: int, target: Storage, pass_revision: Callable[[], Any] | None) -> bool:
    """Sees to it that no revision of the source can be read in the target; whether it could."""
    # Writes of the copy are seen here before the target's revision is compared.
    await target.catch_up()
    behind = before - target.revision
    if behind >= 0 and pass_revision is not None and behind <= SKIPPED_ONE_BY_ONE:
        # One more than behind: the source's own revision must be out of reach too.
        async for _ in _at_once(range(behind + 1), lambda _: pass_revision()):
            pass
        await target.catch_up()
    if target.revision <= before:
        return False
    await target.compact(target.revision)
    return True


async def _at_once(items: Iterable[Any], act: Callable[[Any], Any]) -> AsyncIterator[None]:
    """Acts on some at a time."""
    batch: list[Any] = []
    for item in items:
        batch.append(act(item))
        if len(batch) == AT_ONCE:
            await asyncio.gather(*batch)
            for _ in batch:
                yield
            batch = []
    if batch:
        await asyncio.gather(*batch)
    for _ in batch:
        yield


async def _create(target: Storage, record: Record) -> None:
    try:
        await target.create(record.key, _value(record))
    # What was listed as absent is there now: two writers would make a mix of two states.
    except KeyExists:
        raise CopyRefused(f"somebody else writes to the target: {record.key} was not there before") from None


def _value(record: Record) -> Value:
    value = value_of(record.value)
    return msgspec.structs.replace(value, ttl=EVENT_SECONDS) if record.key.startswith(EVENTS) else value


def _same(one: Record, other: Record | None) -> bool:
    # Compared at one revision, since each store stamps its own into the object.
    return other is not None and at_other_revision(one.value, 1) == at_other_revision(other.value, 1)


async def rewrite_objects(storage: Storage, wanted: Callable[[str], bool], tell: Progress) -> int:
    """Writes objects again as they are, so that they are stored the way things are stored today; how many. ``wanted``
    chooses by key."""
    records = [record for record in (await storage.list("")).records if wanted(record.key)]
    done = 0
    async for _ in _at_once(records, lambda record: _rewrite(storage, record)):
        done += 1
        tell(done, len(records))
    return done


async def _rewrite(storage: Storage, record: Record | None) -> None:
    while record is not None:
        try:
            await storage.update(record.key, record.revision, _value(record))
        # A live cluster goes on writing; the newer object is the one to write again.
        except RevisionConflict as conflict:
            record = conflict.current
        else:
            return


async def bring_home(storage: Storage, records: Iterable[Record], prefix: str, home: str) -> int:
    """Moves objects to keys that begin with ``home``; how many. It can be repeated after it was cut short, and run
    beside another server: an object is there before it is taken away here, and what is there is not written again."""
    done = 0
    for record in records:
        with contextlib.suppress(KeyExists):
            await storage.create(home + record.key.removeprefix(prefix), _value(record))
        with contextlib.suppress(KeyNotFound, RevisionConflict):
            await storage.delete(record.key, record.revision, _value(record))
        done += 1
    return done


async def check_objects(storage: Storage) -> Findings:
    """Reads every object."""
    found = Findings()
    after = ""
    at = 0
    while True:
        page = await storage.list("", at=at, after=after, limit=PAGE)
        # All pages at the revision of the first one.
        at = found.revision = page.revision
        for record in page.records:
            resource = record.key[: record.key.index("/", record.key.index("/", 1) + 1)]
            found.objects[resource] += 1
            if fault := fault_of(record):
                found.faults.append(f"{record.key}: {fault}")
        if not page.remaining:
            return found
        after = page.records[-1].key


class _Metadata(msgspec.Struct):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = msgspec.field(name="resourceVersion", default="")


class _Object(msgspec.Struct):
    kind: str = ""
    api_version: str = msgspec.field(name="apiVersion", default="")
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_read = msgspec.json.Decoder(_Object).decode


def fault_of(record: Record) -> str:
    """What is wrong with a stored object; empty for nothing."""
    try:
        obj = _read(record.value)
        at_other_revision(record.value, 1)
    except (msgspec.MsgspecError, NotAnObject) as fault:
        return f"cannot be decoded: {fault}"
    group = place_of(record.key).group
    namespace, _, name = record.key.split("/", 3)[3].rpartition("/")
    metadata = obj.metadata
    if (metadata.namespace, metadata.name) != (namespace, name):
        return f"is the object {metadata.namespace or '-'}/{metadata.name}"
    if not obj.kind or not obj.api_version:
        return "has no kind or apiVersion"
    own = obj.api_version.rpartition("/")[0]
    # Events are served by two groups and stored once, under the core group.
    if own != group and not (group == "" and own == "events.k8s.io"):
        return f"is of {obj.api_version}"
    if not metadata.uid:
        return "has no uid"
    if metadata.resource_version != str(record.revision):
        return f"says resourceVersion {metadata.resource_version!r} at revision {record.revision}"
    return ""
