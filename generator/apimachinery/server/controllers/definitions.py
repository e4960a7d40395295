"""CustomResourceDefinitions while the server runs: accepted, served, changed, and taken away with their objects.

A definition is read again whenever it changes: its names are accepted among the others of its group, its conditions
written, and the resources of its served versions put into the catalog, so what is served follows within moments of
the write. A definition that is being deleted refuses new objects; when the last one is gone, so is it.

What one definition costs does not grow with their number: the names that are held are kept by group, and of the others
only those that wait for a name are looked at again when one is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from apimachinery.crd import HeldNames, decide_names, has_bad_bundle, structure_condition
from apimachinery.http.messages import LARGE_BYTES
from apimachinery.http.steps import compute
from apimachinery.kinds.builtin_hooks import CLEANUP
from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.from_crds import served_versions
from apimachinery.server.catalog.served import Served
from apimachinery.server.catalog.webhook_conversion import Ask
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.layout import custom_prefix
from apimachinery.storage.watch_cache import WatchCache

DEFINITIONS = "/apiextensions.k8s.io/customresourcedefinitions/"
CATCH_UP_SECONDS = 2.0
CLEAN_UP_SECONDS = 0.2
NEVER = 1 << 63


class _Group(msgspec.Struct):
    group: str = ""


class _Status(msgspec.Struct):
    accepted: dict[str, Any] | None = msgspec.field(default=None, name="acceptedNames")
    conditions: list[dict[str, Any]] | None = None


class _Outline(msgspec.Struct):
    """What of a stored definition concerns the others; the schemas are passed over unread."""

    spec: _Group = msgspec.field(default_factory=_Group)
    status: _Status | None = None


_outline = msgspec.json.Decoder(_Outline).decode


class DefinitionsController(Controller):
    """All CustomResourceDefinitions of a server."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        end_watches: Callable[[str], None],
        served: Served,
        writer: Writer,
        deleter: Deleter,
        ask: Ask | None = None,
    ) -> None:
        super().__init__("definitions", cache)
        self._ask = ask
        self._catalog = catalog
        self._end_watches = end_watches
        self._served = served
        self._writer = writer
        self._deleter = deleter
        self._objects = cache.resource(DEFINITIONS)
        self._specs: dict[str, Any] = {}
        self._names = HeldNames()
        self._waiting: dict[str, set[str]] = {}
        self._writes = True

    async def prepare(self, *, writes: bool = True) -> None:
        """Serves what is stored, and hears of changes. Without ``writes`` it leaves the definitions as they are."""
        self._writes = writes
        self.follow(Source(DEFINITIONS, self._changed, listed=False))
        records = self._objects.snapshot(DEFINITIONS).records
        for record in records:
            self._note(record)
        for number, record in enumerate(records):
            await self._look_at(record.key)
            if number % 20 == 0:
                await asyncio.sleep(0)

    async def catch_up(self) -> None:
        """Returns when what other servers were given before is served here. Raises StorageUnreachable."""
        await self.cache.catch_up()
        await self.queue.wait_until_idle(CATCH_UP_SECONDS, delayed=False)

    def _changed(self, event: Event) -> Iterable[str]:
        if event.deleted:
            self._forget(event.record.key)
        else:
            self._note(event.record)
        return (event.record.key,)

    def _note(self, record: Record) -> None:
        """Keeps which names a definition holds, and whether it waits for some."""
        self._forget(record.key)
        outline = _outline(record.value)
        status = outline.status or _Status()
        self._names.set(record.key, outline.spec.group, status.accepted or {})
        if _state(status.conditions or []).get("NamesAccepted") != "True":
            self._waiting.setdefault(outline.spec.group, set()).add(record.key)

    def _forget(self, key: str) -> None:
        self._names.drop(key)
        group = key.removeprefix(DEFINITIONS).partition(".")[2]
        if (waiting := self._waiting.get(group)) is not None:
            waiting.discard(key)
            if not waiting:
                del self._waiting[group]

    async def reconcile(self, key: str) -> float | None:
        """Serves a definition as it is now. Raises ApiError, StorageError."""
        record = self._objects.get(key)
        name = key.removeprefix(DEFINITIONS)
        if record is None:
            self._withdraw(name)
            self._recheck_conflicts(name)
            return None
        weight = len(record.value)
        crd = await compute(weight, self._served.read, record)
        if not self._writes:
            await self._offer(name, crd, weight)
            return None
        if "deletionTimestamp" in crd["metadata"]:
            await self._offer(name, crd, weight)
            return await self._clean_up(name, record, crd)
        if not await self._accept(record, crd):
            await self._offer(name, crd, weight)
        return None

    async def _accept(self, record: Record, crd: Json) -> bool:
        """Writes names and conditions where they are not yet what they should be; says whether it wrote."""
        status = crd.get("status") or {}
        group = crd["spec"]["group"]
        known = _state(status.get("conditions") or [])
        # What is written was found structural; what is stored from older days was looked at once.
        checked = known.get("Established") == "True" and "NonStructuralSchema" not in known
        accepted = decide_names(
            crd,
            self._names.resources_of_others(record.key, group),
            self._names.kinds_of_others(record.key, group),
            None if checked else await compute(len(record.value), structure_condition, crd),
        )
        conditions = [dict(c) for c in status.get("conditions") or []]
        for wanted in accepted.conditions:
            _set_condition(conditions, wanted)
        if status.get("acceptedNames") == accepted.names and status.get("conditions") == conditions:
            return False
        renamed = status.get("acceptedNames") != accepted.names
        crd["status"] = {**status, "conditions": conditions, "acceptedNames": accepted.names}
        await self._write(record, crd, "status")
        if renamed:
            self._recheck_conflicts(crd["metadata"]["name"])
        return True

    async def _write(self, record: Record, crd: Json, subresource: str) -> None:
        target = WriteTarget(
            self._served, "", crd["metadata"]["name"], WriteOptions(manager="kube-apiserver")
        )
        old = await compute(len(record.value), self._served.read, record)
        owned = await compute(
            len(record.value),
            self._served.ownership(subresource).update,
            old,
            crd,
            "kube-apiserver",
            now=now(),
        )
        await self._writer.replace(target, record, owned)

    def _recheck_conflicts(self, gone: str) -> None:
        """Names that a definition gave up may be what another one waits for."""
        group = gone.partition(".")[2]
        for key in sorted(self._waiting.get(group, ())):
            if key.removeprefix(DEFINITIONS) != gone:
                self.queue.add(key)

    async def _offer(self, name: str, crd: Json, weight: int) -> None:
        """Puts a definition's resources into the catalog."""
        conditions = (crd.get("status") or {}).get("conditions") or []
        known = _state(conditions)
        established = known.get("Established") == "True"
        unresolved = has_bad_bundle(crd)
        if not established and not (unresolved and known.get("NamesAccepted") == "True"):
            self._withdraw(name)
            return
        terminating = "deletionTimestamp" in crd["metadata"]
        state = (crd["spec"], crd["status"].get("acceptedNames"), terminating, established)
        if self._specs.get(name) == state:
            return
        first = name not in self._specs
        self._specs[name] = state
        # Another server may go on writing by the schema of before for a moment: there nothing counts as fresh.
        fresh_since = NEVER if self.cache.shared else self.cache.revision
        served = await compute(weight, served_versions, crd, fresh_since, terminating, self._ask)
        for each in served:
            each.heavy = weight > LARGE_BYTES
            each.unresolved, each.hidden = unresolved, not established
        self._catalog.set_custom(name, served)
        if not first:
            self._end_watches(_prefix(name))

    def _withdraw(self, name: str) -> None:
        if self._specs.pop(name, None) is not None:
            self._catalog.set_custom(name, [])
            self._end_watches(_prefix(name))

    async def _clean_up(self, name: str, record: Record, crd: Json) -> float | None:
        """Deletes the objects of a definition that is going, then lets it go; when it is to be looked at again."""
        finalizers = crd["metadata"].get("finalizers") or []
        if CLEANUP not in finalizers:
            return None
        prefix = _prefix(name)
        objects = self.cache.resource(prefix)
        # Those of a group that is built in too: nobody asks for them there, but they may be kept from before it was.
        served = self._catalog.custom(name)
        for left in list(objects.snapshot(prefix).records):
            if not served:
                break
            rest = left.key[len(prefix) :]
            namespace, _, object_name = rest.rpartition("/")
            target = WriteTarget(served[0], namespace, object_name, WriteOptions())
            with contextlib.suppress(ApiError):
                await self._deleter.delete(target, DeletionOptions())
        if len(objects) and served:
            if _tell_progress(crd):
                await self._writer.replace(WriteTarget(self._served, "", name, WriteOptions()), record, crd)
            return CLEAN_UP_SECONDS
        crd["metadata"]["finalizers"] = [f for f in finalizers if f != CLEANUP]
        target = WriteTarget(self._served, "", name, WriteOptions())
        if crd["metadata"]["finalizers"]:
            await self._writer.replace(target, record, crd)
        else:
            del crd["metadata"]["finalizers"]
            await self._writer.remove(target, record, crd)
        return None


def _prefix(name: str) -> str:
    """How the keys of a definition's objects begin."""
    plural, _, group = name.partition(".")
    return custom_prefix(group, plural)


def _state(conditions: list[Json]) -> dict[str, str]:
    """The statuses of conditions by type."""
    return {condition.get("type", ""): condition.get("status", "") for condition in conditions}


def _tell_progress(crd: Json) -> bool:
    """Says in the Terminating condition that objects are being deleted; whether that is new."""
    for condition in (crd.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Terminating" and condition.get("reason") != "InstanceDeletionInProgress":
            condition["reason"] = "InstanceDeletionInProgress"
            condition["message"] = "CustomResource deletion is in progress"
            return True
    return False


def _set_condition(conditions: list[Json], wanted: dict[str, str]) -> None:
    for index, present in enumerate(conditions):
        if present.get("type") == wanted["type"]:
            if present.get("status") == wanted["status"]:
                changed = {**present, **wanted}
            else:
                changed = {**present, **wanted, "lastTransitionTime": now()}
            conditions[index] = changed
            return
    entry = {"type": wanted["type"], "status": wanted["status"], "lastTransitionTime": now()}
    conditions.append({**entry, **{k: v for k, v in wanted.items() if k not in entry}})
