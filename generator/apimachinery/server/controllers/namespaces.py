"""The namespace life cycle: a namespace that is being deleted is emptied, and goes when nothing is left in it.

A turn deletes what is in a terminating namespace, pods first and nothing else while there are any, writes conditions
that say what it still waits for, and, when it is empty, takes the ``kubernetes`` finalizer from its spec, which lets it
go. What may not be deleted keeps the namespace. The next turn follows soon after any change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from apimachinery.http.messages import User
from apimachinery.http.turns import Turns
from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.namespaces import NAMESPACES, phase_of
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

SECONDS = 0.25
MANAGER = "kube-controller-manager"
_WAITING = frozenset({"foregroundDeletion", "orphan"})
FINALIZER = "kubernetes"
WORKERS = 10
ACCOUNT = User(
    "system:serviceaccount:kube-system:namespace-controller",
    groups=("system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"),
)
"""Who deletes, for policies and webhooks."""


@dataclass(slots=True)
class _Left:
    """What a turn left in a namespace: objects by resource, their finalizers, group-versions that nobody could ask, and
    why something may not be deleted."""

    objects: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    unknown: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)


class Elsewhere(Protocol):
    """Content of namespaces that other servers hold."""

    async def empty(self, namespace: str) -> tuple[dict[str, int], list[str]]:
        """Deletes what is in a namespace; how many objects are left, by resource, and the group-versions of which that
        is not known."""


class NamespaceController(Controller):
    """Empties namespaces that are being deleted, and lets them go."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        writer: Writer,
        deleter: Deleter,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        super().__init__("namespace", cache, Source(NAMESPACES, self._soon), workers=WORKERS)
        self._elsewhere = elsewhere
        self._catalog = catalog
        self._writer = writer
        self._deleter = deleter
        self._objects = cache.resource(NAMESPACES)
        self._seen: dict[str, int] = {}
        """The revision at which all that was left of a namespace was to be seen in the storage."""

    def _soon(self, event: Event) -> Iterable[str]:
        if not event.deleted and phase_of(event.record) == "Terminating":
            self.queue.add_after(event.record.key, SECONDS)
        return ()

    async def reconcile(self, key: str) -> float | None:
        """Empties a namespace until it goes. Raises ApiError, StorageError."""
        record = self._objects.get(key)
        if record is None or phase_of(record) != "Terminating":
            self._seen.pop(key, None)
            return None
        revision = self.cache.revision
        if revision != self._seen.get(key) and await self._empty(record):
            self._seen[key] = revision
        return SECONDS

    async def _empty(self, record: Record) -> bool:
        """Deletes what is in a namespace; whether what is left of it is to be seen in the storage."""
        namespace = record.key.removeprefix(NAMESPACES)
        left = _Left()
        for served in stored_resources(self._catalog):
            if not served.namespaced:
                continue
            pods = (served.group, served.plural) == ("", "pods")
            await self._delete_content(served, namespace, left)
            if pods and left.objects:
                await self._tell(record, _Left(refusals=left.refusals), goes=False)
                return not left.refusals
        if self._elsewhere is not None:
            held, left.unknown = await self._elsewhere.empty(namespace)
            left.objects.update(held)
            await self._tell(record, left)
            return not (held or left.unknown or left.refusals)
        await self._tell(record, left)
        return not left.refusals

    async def _delete_content(self, served: Served, namespace: str, left: _Left) -> None:
        """Deletes the objects of a resource in a namespace, and counts what stays; where one may not be deleted, the
        refusal alone is noted."""
        name = f"{served.plural}.{served.group}"
        try:
            staying = await self._delete_all(served, namespace)
        except ApiError as error:
            left.refusals.append(error.message)
            return
        turns = Turns()
        if hidden := self.cache.unreadable_in(served.scope(namespace)):
            left.objects[name] += len(hidden)
        for record in staying:
            await turns.give_way()
            left.objects[name] += 1
            left.finalizers.update(decode(record.value)["metadata"].get("finalizers") or [])

    async def _delete_all(self, served: Served, namespace: str) -> list[Record]:
        """Deletes the objects of a resource in a namespace; those that stay. Raises the first ApiError that says more
        than that one was gone or changed meanwhile, when all have been tried."""
        cache, scope = self.cache.resource(served.prefix), served.scope(namespace)
        turns, staying = Turns(), []
        for record in list(cache.snapshot(scope).records):
            await turns.give_way()
            metadata = decode(record.value)["metadata"]
            # Who is being deleted waits no longer for dependents, which may be elsewhere.
            if "deletionTimestamp" not in metadata or _WAITING.intersection(metadata.get("finalizers") or ()):
                staying.append(record)
        options = WriteOptions(manager=MANAGER)
        refusals: list[ApiError] = []

        def pass_over(error: ApiError) -> bool:
            if error.code not in (404, 409):
                refusals.append(error)
            return True

        await self._deleter.delete_all(
            (WriteTarget(served, *name_of(record.key, served), options, user=ACCOUNT) for record in staying),
            DeletionOptions(policy="Background"),
            passes_over=pass_over,
            of_collection=True,
        )
        if refusals:
            raise refusals[0]
        return list(cache.snapshot(scope).records)

    async def _tell(self, record: Record, left: _Left, *, goes: bool = True) -> None:
        """Writes the conditions, and lets the namespace go (``goes``) where nothing is left."""
        served = self._catalog.find("", "v1", "namespaces")
        current = self._objects.get(record.key)
        if served is None or current is None:
            return
        target = WriteTarget(served, "", record.key.removeprefix(NAMESPACES), WriteOptions(manager=MANAGER))
        target.subresource = "status"
        await self._writer.update(target, lambda obj: _with_conditions(obj, left))
        if left.objects or left.unknown or left.refusals or not goes:
            return
        target.subresource = "finalize"
        await self._writer.update(target, _finalized)


def stored_resources(catalog: Catalog) -> list[Served]:
    """One version of each stored resource."""
    found: dict[str, Served] = {}
    for served in catalog:
        if served.prefix and "delete" in served.verbs:
            known = found.get(served.prefix)
            if known is None or served.api_version == served.storage_version:
                found[served.prefix] = served
    return [
        found[prefix] for prefix in sorted(found, key=lambda prefix: (found[prefix].plural != "pods", prefix))
    ]


def _finalized(obj: Json) -> Json:
    spec = obj.get("spec") or {}
    left = [name for name in spec.get("finalizers") or [] if name != FINALIZER]
    obj["spec"] = {key: value for key, value in spec.items() if key != "finalizers"}
    if left:
        obj["spec"]["finalizers"] = left
    return obj


def _with_conditions(obj: Json, left: _Left) -> Json:
    status = obj.setdefault("status", {})
    present = {condition.get("type"): condition for condition in status.get("conditions") or []}
    status["conditions"] = []
    for kind, state, reason, message in _conditions(left):
        old = present.get(kind, {})
        same = old.get("status") == state
        status["conditions"].append(
            {
                "type": kind,
                "status": state,
                "lastTransitionTime": old.get("lastTransitionTime") if same else now(),
                "reason": reason,
                "message": message,
            }
        )
    return obj


def _conditions(content: _Left) -> list[tuple[str, str, str, str]]:
    unknown, refusals = content.unknown, sorted(content.refusals)
    left = ", ".join(
        f"{name} has {count} resource instances" for name, count in sorted(content.objects.items())
    )
    held = ", ".join(
        f"{name} in {count} resource instances" for name, count in sorted(content.finalizers.items())
    )
    stale = ", ".join(f"{name}: stale GroupVersion discovery: {name}" for name in unknown)
    return [
        (
            "NamespaceDeletionDiscoveryFailure",
            "True" if unknown else "False",
            "DiscoveryFailed" if unknown else "ResourcesDiscovered",
            f"Discovery failed for some groups, {len(unknown)} failing: unable to retrieve the complete list of "
            f"server APIs: {stale}"
            if unknown
            else "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "True" if refusals else "False",
            "ContentDeletionFailed" if refusals else "ContentDeleted",
            f"Failed to delete all resource types, {len(refusals)} remaining: {', '.join(refusals)}"
            if refusals
            else "All content successfully deleted, may be waiting on finalization",
        ),
        (
            "NamespaceContentRemaining",
            "True" if left else "False",
            "SomeResourcesRemain" if left else "ContentRemoved",
            f"Some resources are remaining: {left}" if left else "All content successfully removed",
        ),
        (
            "NamespaceFinalizersRemaining",
            "True" if held else "False",
            "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {held}"
            if held
            else "All content-preserving finalizers finished",
        ),
    ]
