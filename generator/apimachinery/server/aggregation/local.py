"""Makes and keeps the APIServices of what this server serves itself, as kube-apiserver's autoregistration does.

The label ``kube-aggregator.kubernetes.io/automanaged`` says what may be done to one:

    onstart   built-in group-versions: made and put right at the start, then left to their owner
    true      those of CustomResourceDefinitions: made, put right and taken away with them at any time
    none      made by somebody: left alone

A local APIService is always available; a condition that says otherwise is put right.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable

import msgspec

from apimachinery.kinds.apiregistration.local import LOCALLY_AVAILABLE, locally_available
from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.aggregation.priorities import (
    CUSTOM_GROUP,
    CUSTOM_VERSION,
    group_priority,
    version_priority,
)
from apimachinery.server.aggregation.registry import Json, Registry
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

DEFINITIONS = "/apiextensions.k8s.io/customresourcedefinitions/"
LABEL = "kube-aggregator.kubernetes.io/automanaged"
ON_START, ALWAYS = "onstart", "true"
MANAGER = "kube-apiserver"


class _Version(msgspec.Struct):
    name: str = ""
    served: bool = False


class _Spec(msgspec.Struct):
    group: str = ""
    versions: list[_Version] | None = None


class _Definition(msgspec.Struct):
    """What of a stored definition counts here; its schemas are passed over unread."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


_definition = msgspec.json.Decoder(_Definition).decode


class LocalApiServices(Controller):
    """The APIServices of built-in group-versions and of CustomResourceDefinitions."""

    def __init__(
        self,
        catalog: Catalog,
        cache: WatchCache,
        registry: Registry,
        served: Served,
        writer: Writer,
        deleter: Deleter,
    ) -> None:
        super().__init__("local-apiservices", cache)
        self._catalog = catalog
        self._definitions = cache.resource(DEFINITIONS)
        self._registry = registry
        self._served = served
        self._writer = writer
        self._deleter = deleter
        self._versions: dict[str, frozenset[tuple[str, str]]] = {}
        self._owners: dict[tuple[str, str], set[str]] = {}
        # What a definition says of a group-version that is built in makes no difference to its APIService.
        self._own = self._builtin()

    async def prepare(self) -> None:
        """Writes what is missing or wrong at the start."""
        self.follow(Source(DEFINITIONS, self._changed, listed=False))
        defined = {
            name for record in self._definitions.snapshot(DEFINITIONS).records for name in self._note(record)
        }
        await asyncio.gather(*(self._put(name, spec, ON_START) for name, spec in self._own.items()))
        for name in sorted({*defined, *self._registry.all}):
            if name not in self._own:
                await self._keep(name, started=False)
        self._registry.listen(self.queue.add)

    def _builtin(self) -> dict[str, Json]:
        return {
            f"{version}.{group.name}": _spec(
                group.name,
                version,
                group_priority(group.name, group.priority),
                version_priority(group.name, version),
            )
            for group in self._catalog.groups.values()
            if group.name != self._served.group
            for version in group.versions
            if group.has_builtin(version)
        }

    def _changed(self, event: Event) -> Iterable[str]:
        return self._give(event.record.key, frozenset()) if event.deleted else self._note(event.record)

    def _note(self, record: Record) -> Iterable[str]:
        spec = _definition(record.value).spec
        return self._give(
            record.key, frozenset((spec.group, v.name) for v in spec.versions or () if v.served)
        )

    def _give(self, key: str, versions: frozenset[tuple[str, str]]) -> Iterable[str]:
        """Keeps which versions a definition serves; the APIServices that appear or go by it."""
        old = self._versions.get(key, frozenset())
        due = []
        for place in old - versions:
            self._owners[place].discard(key)
            if not self._owners[place]:
                del self._owners[place]
                due.append(f"{place[1]}.{place[0]}")
        for place in versions - old:
            owners = self._owners.setdefault(place, set())
            if not owners:
                due.append(f"{place[1]}.{place[0]}")
            owners.add(key)
        if versions:
            self._versions[key] = versions
        else:
            self._versions.pop(key, None)
        return due

    async def reconcile(self, key: str) -> None:
        """Makes, mends or takes away an APIService; ``key`` is its name. Raises ApiError, StorageError."""
        await self._keep(key)

    async def _keep(self, name: str, *, started: bool = True) -> None:
        version, _, group = name.partition(".")
        if (group, version) in self._owners and name not in self._own:
            await self._put(name, _spec(group, version, CUSTOM_GROUP, CUSTOM_VERSION), ALWAYS)
        current = self._current(name)
        if current is None:
            return
        label = (current["metadata"].get("labels") or {}).get(LABEL)
        if (group, version) not in self._owners and (label == ALWAYS or (label == ON_START and not started)):
            with contextlib.suppress(ApiError):
                await self._deleter.delete(self._target(name), DeletionOptions())
        elif (current.get("spec") or {}).get("service") is None:
            await self._say_available(name, current)

    async def _put(self, name: str, spec: Json, label: str) -> None:
        current = self._current(name)
        if current is None:
            obj: Json = {
                "kind": self._served.kind,
                "apiVersion": self._served.api_version,
                "metadata": {"name": name, "labels": {LABEL: label}},
                "spec": dict(spec),
            }
            finish_form(obj, self._served)
            with contextlib.suppress(ApiError):
                await self._writer.create(self._target(name), obj)
            return
        labels = current["metadata"].get("labels") or {}
        if labels.get(LABEL) not in (ON_START, ALWAYS):
            return
        if labels[LABEL] == label and current.get("spec") == spec:
            return

        def put_right(old: Json) -> Json:
            metadata = old["metadata"]
            metadata["labels"] = {**(metadata.get("labels") or {}), LABEL: label}
            return {**old, "spec": dict(spec)}

        await self._writer.update(self._target(name), put_right)

    async def _say_available(self, name: str, current: Json) -> None:
        conditions = (current.get("status") or {}).get("conditions") or []
        if any(LOCALLY_AVAILABLE.items() <= entry.items() for entry in conditions):
            return

        def put_right(old: Json) -> Json:
            others = [
                c for c in (old.get("status") or {}).get("conditions") or () if c.get("type") != "Available"
            ]
            return {**old, "status": {"conditions": [*others, locally_available(now())]}}

        await self._writer.update(self._target(name, "status"), put_right)

    def _current(self, name: str) -> Json | None:
        record = self._registry.record(name)
        return None if record is None else decode(record.value)

    def _target(self, name: str, subresource: str = "") -> WriteTarget:
        return WriteTarget(self._served, "", name, WriteOptions(manager=MANAGER), subresource)


def _spec(group: str, version: str, of_group: int, of_version: int) -> Json:
    """As a stored spec reads, so that the two can be compared."""
    spec: Json = {"group": group} if group else {}
    return {**spec, "version": version, "groupPriorityMinimum": of_group, "versionPriority": of_version}
