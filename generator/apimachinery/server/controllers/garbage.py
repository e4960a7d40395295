"""Garbage collection by ownerReferences (docs: Owners and Dependents).

Theory. The collector keeps a graph of uids: who is there, and who names whom as owner. From it follow three duties:

- an object all of whose owners are gone is deleted; one that keeps a living owner loses the references to the
  gone ones;
- an owner with the finalizer ``orphan`` is forgotten by its dependents, then loses the finalizer;
- an owner with ``foregroundDeletion`` has its dependents deleted, and loses the finalizer when none is left that
  blocks (``blockOwnerDeletion``).

An owner is looked for where its reference says: by the kind, among the objects of the cluster or of the dependent's own
namespace, by name. It counts as gone when nothing is there, or something with another uid. Two sorts of references
cannot be judged, and an object with one of them is left as it is: to a kind that nobody serves, and from an object of
the cluster to a kind that namespaces have. A reference to an object of another namespace is reported by an event.

With ``known_owners`` there is a third: to an owner that never was here. Suites that were written for envtest, which
collects nothing, make up such owners and count on what refers to them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec

from apimachinery.http.turns import Turns
from apimachinery.kinds.hooks import Json
from apimachinery.meta import clock
from apimachinery.meta.errors import ApiError
from apimachinery.meta.gvk import GroupVersion
from apimachinery.queue.backlog import Backlog, ExponentialBackoff
from apimachinery.queue.observing import Observer
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import (
    FIRST_RETRY_SECONDS,
    LONGEST_RETRY_SECONDS,
    SILENT,
    Running,
)
from apimachinery.server.controllers.misplaced_owners import Misplaced, MisplacedOwners
from apimachinery.server.controllers.namespaces import stored_resources
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import FOREGROUND, ORPHAN, Deleted, Deleter
from apimachinery.server.write.driver import Course
from apimachinery.server.write.together import Together
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record, StorageError
from apimachinery.storage.watch_cache import WatchCache

SECONDS = 0.1
HEARD_SECONDS = 0.02
"""How long the events of what the collector did itself are waited for."""
MANAGER = "kube-controller-manager"
log = logging.getLogger("kubewright.server.garbage")


class _Owner(msgspec.Struct):
    uid: str = ""
    kind: str = ""
    name: str = ""
    apiVersion: str = ""  # noqa: N815
    blockOwnerDeletion: bool = False  # noqa: N815


class _Metadata(msgspec.Struct):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    finalizers: list[str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815


class _Object(msgspec.Struct):
    metadata: _Metadata
    kind: str = ""


_read = msgspec.json.Decoder(_Object).decode


def _blocks(metadata: _Metadata, uid: str) -> bool:
    return any(o.uid == uid and o.blockOwnerDeletion for o in metadata.ownerReferences or ())


def _waits(metadata: _Metadata) -> bool:
    """Whether an object is being deleted, and goes after its dependents."""
    return metadata.deletionTimestamp is not None and FOREGROUND in (metadata.finalizers or ())


def _unblocked(obj: Json) -> Json:
    for owner in obj["metadata"].get("ownerReferences") or []:
        if owner.get("blockOwnerDeletion"):
            owner["blockOwnerDeletion"] = False
    return obj


class OwnershipNode:
    """One object of the graph."""

    __slots__ = ("key", "kind", "metadata")

    def __init__(self, key: str, kind: str, metadata: _Metadata) -> None:
        self.key = key
        self.kind = kind
        self.metadata = metadata


class GarbageCollector(Running):
    """Deletes what nobody owns any more, and sees to the two propagation finalizers."""

    name = "gc"

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        writer: Writer,
        deleter: Deleter,
        *,
        known_owners: bool = False,
    ) -> None:
        super().__init__()
        self._gone: set[str] | None = set() if known_owners else None
        """Who was here and is not any more, where that has to be known."""
        self._catalog = catalog
        self._cache = cache
        self._writer = writer
        self._deleter = deleter
        self._nodes: dict[str, OwnershipNode] = {}
        self._keys: dict[str, str] = {}
        self._dependents: dict[str, set[str]] = {}
        self._due: Backlog[str] = Backlog(ExponentialBackoff(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS))
        self._learned = -1
        self._stored: dict[str, Served] = {}
        self._kinds: dict[tuple[str, str, str], Served] = {}
        self._misplaced = MisplacedOwners(catalog, writer)
        self._unjudged: set[str] = set()
        """Who names a kind that nobody serves yet: due when other kinds are served."""
        self._deaths = asyncio.Event()
        """Set when something is deleted, or begins to be: its owners and dependents are due."""
        self._revision = 0
        self._watch: Any = None
        self._writes = Together()
        """What the round under way has begun to delete."""

    def start(self, observer: Observer = SILENT) -> None:
        """Reads the present state and follows it."""
        self._watch = None
        self._unlisten.append(clock.present().follow(self))
        super().start(observer)

    def wake(self) -> None:
        """Does nothing: no work here waits for a time."""

    @property
    def busy(self) -> bool:
        return self._watch is None or self._due.has_work(SECONDS)

    async def stop(self) -> None:
        """Ends."""
        if self._watch is not None:
            self._watch.close()
        await super().stop()

    async def _run(self) -> None:
        page = await self._cache.storage.list("")
        turns = Turns()
        for record in page.records:
            if self._cache.record(record.key) is not None:
                # Reading thousands of objects must not hold up requests.
                self._put(record)
            await turns.give_way()
        # From the revision of the list, so that nothing in between is lost.
        self._watch = await self._cache.storage.watch("", page.revision, self._take)
        while True:
            await asyncio.sleep(SECONDS)
            self._learn()
            while due := self._taken():
                self._deaths.clear()
                # What is looked at may become due again by its own events.
                await self._look_at_all(due)
                # What was just deleted says whose turn is next: a deep tree goes without a pause at each level.
                if not self._deaths.is_set():
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._deaths.wait(), HEARD_SECONDS)
                if not self._deaths.is_set():
                    break

    def _taken(self) -> list[str]:
        """All that is due now."""
        due = []
        while (uid := self._due.take()[0]) is not None:
            due.append(uid)
        return due

    async def _look_at_all(self, due: list[str]) -> None:
        """Looks at what is due; what failed is tried again after a while."""
        await self._misplaced.report()
        failed: list[str] = []
        turns = Turns()
        async with Together() as self._writes:
            for uid in due:
                await turns.give_way()
                await self._noted(uid, failed, self._look_at(uid, failed))
        for uid in due:
            self._due.done(uid)
            if uid not in failed:
                self._due.limiter.forget(uid)
        for uid in failed:
            self._due.add_after(uid, self._due.limiter.delay(uid))
            self.observer.retried("gc", self._due.limiter.failures(uid))
        self.observer.queued("gc", len(self._due))

    async def _noted(self, uid: str, failed: list[str], work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (ApiError, StorageError) as error:
            log.warning("an object could not be collected", extra={"uid": uid, "why": str(error)})
            failed.append(uid)
        except Exception:
            log.exception("garbage could not be collected", extra={"uid": uid})
            failed.append(uid)

    def _take(self, events: Any) -> None:
        event: Event
        for event in events:
            if event.deleted:
                self._drop(event.record)
            else:
                self._put(event.record)

    def _put(self, record: Record) -> None:
        # Only what decides about ownership is decoded.
        try:
            found = _read(record.value)
        except msgspec.DecodeError:
            return
        metadata = found.metadata
        old = self._nodes.get(metadata.uid)
        # Owners may have been added or removed since.
        if old is not None:
            for owner in old.metadata.ownerReferences or ():
                self._dependents.get(owner.uid, set()).discard(metadata.uid)
        self._nodes[metadata.uid] = OwnershipNode(record.key, found.kind, metadata)
        self._keys[record.key] = metadata.uid
        known = {owner.uid for owner in old.metadata.ownerReferences or ()} if old is not None else ()
        for owner in metadata.ownerReferences or ():
            self._dependents.setdefault(owner.uid, set()).add(metadata.uid)
            # The owner may be waiting for its dependents.
            self._due.add(owner.uid)
            if owner.uid not in known:
                self._check_place(self._nodes[metadata.uid], owner)
        if old is None and metadata.namespace:
            self._check_dependents(metadata.uid)
        if metadata.ownerReferences or metadata.finalizers:
            self._due.add(metadata.uid)
            if metadata.deletionTimestamp is not None:
                self._deaths.set()

    def _check_dependents(self, uid: str) -> None:
        """Checks those that named an object before it appeared."""
        for dependent in self._dependents.get(uid, ()):
            node = self._nodes[dependent]
            for owner in node.metadata.ownerReferences or ():
                if owner.uid == uid:
                    self._check_place(node, owner)

    def _check_place(self, node: OwnershipNode, owner: _Owner) -> None:
        """Notes an owner that is there, but in another namespace."""
        found = self._nodes.get(owner.uid)
        if found is None or found.metadata.namespace in ("", node.metadata.namespace):
            return
        served, metadata = self._served(node), node.metadata
        self._due.add(metadata.uid)
        if served is not None:
            self._misplaced.note(
                Misplaced(
                    served,
                    metadata.namespace,
                    metadata.name,
                    metadata.uid,
                    owner.apiVersion,
                    owner.kind,
                    owner.name,
                    owner.uid,
                )
            )

    def _drop(self, record: Record) -> None:
        uid = self._keys.pop(record.key, None)
        if uid is None:
            return
        self._deaths.set()
        self._unjudged.discard(uid)
        if self._gone is not None:
            self._gone.add(uid)
        node = self._nodes.pop(uid, None)
        for owner in (node.metadata.ownerReferences or ()) if node else ():
            siblings = self._dependents.get(owner.uid)
            if siblings is not None:
                siblings.discard(uid)
                if not siblings:
                    del self._dependents[owner.uid]
            self._due.add(owner.uid)
        for dependent in self._dependents.get(uid, ()):
            self._due.add(dependent)

    def _served(self, node: OwnershipNode) -> Served | None:
        prefix = node.key[: node.key.index("/", node.key.index("/", 1) + 1) + 1]
        self._learn()
        return self._stored.get(prefix)

    def _learn(self) -> None:
        """Looks at the catalog where it has changed."""
        if self._learned != self._catalog.generation:
            self._learned = self._catalog.generation
            self._stored = {served.prefix: served for served in stored_resources(self._catalog)}
            self._kinds = {(served.group, served.version, served.kind): served for served in self._catalog}
            for uid in self._unjudged:
                self._due.add(uid)
            self._unjudged.clear()

    async def _look_at(self, uid: str, failed: list[str]) -> None:
        node = self._nodes.get(uid)
        if node is None:
            return
        finalizers = node.metadata.finalizers or []
        if node.metadata.deletionTimestamp is not None:
            # Orphaning first: an object with both finalizers keeps its dependents.
            if ORPHAN in finalizers:
                await self._orphan(node)
                return
            if FOREGROUND in finalizers:
                await self._foreground(node, failed)
                return
        if node.metadata.ownerReferences and node.metadata.deletionTimestamp is None:
            await self._weigh(node, failed)

    def _kind_of(self, owner: _Owner) -> Served | None:
        self._learn()
        return self._kinds.get((*GroupVersion.parse(owner.apiVersion), owner.kind))

    def _can_be_judged(self, owner: _Owner, node: OwnershipNode) -> bool:
        """Whether it can be said that an owner is gone: not while an object of its kind cannot be read."""
        kind = self._kind_of(owner)
        if kind is None or self._cache.unreadable_in(kind.prefix):
            return False
        if self._gone is not None and owner.uid not in self._gone and owner.uid not in self._nodes:
            return False
        return bool(node.metadata.namespace) or not kind.namespaced

    def _is_alive(self, owner: _Owner, node: OwnershipNode) -> bool:
        kind = self._kind_of(owner)
        return kind is not None and self._keys.get(kind.key(node.metadata.namespace, owner.name)) == owner.uid

    def _waits_for_dependents(self, owner: _Owner) -> bool:
        found = self._nodes.get(owner.uid)
        return found is not None and _waits(found.metadata)

    async def _weigh(self, node: OwnershipNode, failed: list[str]) -> None:
        owners = node.metadata.ownerReferences or []
        # One owner that cannot be judged protects the object.
        if not all(self._can_be_judged(owner, node) for owner in owners):
            self._unjudged.add(node.metadata.uid)
            return
        alive = [owner for owner in owners if self._is_alive(owner, node)]
        staying = [owner for owner in alive if not self._waits_for_dependents(owner)]
        # An owner that stays holds the object, however many others are gone.
        if staying:
            if len(staying) < len(owners):
                await self._forget(node, {owner.uid for owner in owners if owner not in staying})
            return
        await self._delete(node, await self._policy(node, bool(alive)), failed)

    async def _policy(self, node: OwnershipNode, awaited: bool) -> str:
        """How an object goes that nothing holds any more; ``awaited``: an owner waits for it."""
        dependents = [
            self._nodes[uid] for uid in self._dependents.get(node.metadata.uid, ()) if uid in self._nodes
        ]
        if awaited and dependents:
            if any(_waits(dependent.metadata) for dependent in dependents):
                # Each waits for the other: this one stops to hold its owners.
                await self._change(node, _unblocked)
            return "Foreground"
        finalizers = node.metadata.finalizers or []
        if ORPHAN in finalizers:
            return "Orphan"
        return "Foreground" if FOREGROUND in finalizers else "Background"

    async def _delete(self, node: OwnershipNode, policy: str, failed: list[str]) -> None:
        """Deletes an object; when that is stored is not waited for here."""
        served = self._served(node)
        if served is None:
            return
        target = WriteTarget(served, *name_of(node.key, served), WriteOptions(manager=MANAGER))
        # With the uid: an object of the same name may have taken its place.
        options = DeletionOptions(policy=policy, uid=node.metadata.uid)
        # Gone already, or refused by admission: the next event brings it back.
        with contextlib.suppress(ApiError):
            decided = await self._deleter.decide(target, options)
            await self._writes.add(self._noted(node.metadata.uid, failed, self._carry_out(decided)))

    async def _carry_out(self, decided: Course[Deleted]) -> None:
        with contextlib.suppress(ApiError):
            await decided.to_end()

    async def _foreground(self, node: OwnershipNode, failed: list[str]) -> None:
        uid = node.metadata.uid
        for dependent in list(self._dependents.get(uid, ())):
            found = self._nodes.get(dependent)
            if found is not None and found.metadata.deletionTimestamp is None:
                await self._weigh(found, failed)
        # Deletions that were begun above count only once they are stored.
        await self._writes.settle()
        left = [self._nodes[each] for each in self._dependents.get(uid, ()) if each in self._nodes]
        # Only dependents that block are waited for.
        if not any(_blocks(dependent.metadata, uid) for dependent in left):
            await self._without_finalizer(node, FOREGROUND)

    async def _orphan(self, node: OwnershipNode) -> None:
        async with Together() as writes:
            for uid in list(self._dependents.get(node.metadata.uid, ())):
                dependent = self._nodes.get(uid)
                if dependent is not None:
                    await writes.add(self._forget(dependent, {node.metadata.uid}))
        await self._without_finalizer(node, ORPHAN)

    async def _forget(self, node: OwnershipNode, owners: set[str]) -> None:
        def transform(obj: Json) -> Json:
            kept = [o for o in obj["metadata"].get("ownerReferences") or [] if o.get("uid") not in owners]
            if kept:
                obj["metadata"]["ownerReferences"] = kept
            else:
                obj["metadata"].pop("ownerReferences", None)
            return obj

        await self._change(node, transform)

    async def _without_finalizer(self, node: OwnershipNode, name: str) -> None:
        def transform(obj: Json) -> Json:
            kept = [f for f in obj["metadata"].get("finalizers") or [] if f != name]
            if kept:
                obj["metadata"]["finalizers"] = kept
            else:
                obj["metadata"].pop("finalizers", None)
            return obj

        await self._change(node, transform)

    async def _change(self, node: OwnershipNode, transform: Any) -> None:
        served = self._served(node)
        if served is None:
            return
        target = WriteTarget(served, *name_of(node.key, served), WriteOptions(manager=MANAGER))
        try:
            await self._writer.update(target, transform)
        except ApiError as error:
            # Gone already: there is nothing to change.
            if error.reason != "NotFound":
                raise
