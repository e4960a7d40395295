"""Runs the workload controllers of ``apimachinery.workloads`` in the server, each on a queue of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import partial

from apimachinery.kinds.hooks import Json
from apimachinery.meta import clock
from apimachinery.meta.errors import ApiError, not_found
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.controllers.decoded import DecodedObjects
from apimachinery.server.controllers.leadership import Alone
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.workloads.interface import Change, Follows, Workload

MANAGER = "kube-controller-manager"
TERMINATING = "NamespaceTerminating"
WORKERS = 5
Usage = Callable[[Json, str], Mapping[str, Fraction]]


class _Unchanged(Exception):
    """A change that is not to be written."""


class ServedCluster:
    """The ``ClusterView`` of this server."""

    def __init__(self, decoded: DecodedObjects, writer: Writer, deleter: Deleter, usage: Usage) -> None:
        self.decoded = decoded
        self.usage = usage
        self._writer = writer
        self._deleter = deleter

    def now(self) -> float:
        return clock.wall()

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        held = self.decoded.resource(resource)
        return None if held is None else held.get(namespace, name)

    def objects(self, resource: str, namespace: str = "") -> list[Json]:
        held = self.decoded.resource(resource)
        return [] if held is None else held.all(namespace)

    async def create(self, resource: str, obj: Json) -> Json:
        served = self._served(resource)
        made = deepcopy(obj)
        finish_form(made, served)
        target = WriteTarget(served, made["metadata"].get("namespace", ""), "", WriteOptions(manager=MANAGER))
        return served.read((await self._writer.create(target, made)).record)

    async def update(self, resource: str, obj: Json, change: Change, subresource: str = "") -> Json:
        target = self._target(resource, obj, subresource)

        def transform(present: Json) -> Json:
            made = change(present)
            if made is None:
                raise _Unchanged
            finish_form(made, target.served)
            return made

        try:
            written = await self._writer.update(target, transform, uid=obj["metadata"]["uid"])
        except _Unchanged:
            return self.get(resource, target.namespace, target.name) or obj
        return target.served.read(written.record)

    async def delete(
        self, resource: str, obj: Json, *, foreground: bool = False, at_once: bool = False
    ) -> None:
        policy = "Foreground" if foreground else "Background"
        grace = 0 if at_once else None
        options = DeletionOptions(uid=obj["metadata"]["uid"], policy=policy, grace_seconds=grace)
        try:
            await self._deleter.delete(self._target(resource, obj), options)
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _served(self, resource: str) -> Served:
        held = self.decoded.resource(resource)
        if held is None:
            plural, _, group = resource.partition(".")
            raise not_found(plural, group, "")
        return held.served

    def _target(self, resource: str, obj: Json, subresource: str = "") -> WriteTarget:
        metadata = obj["metadata"]
        options = WriteOptions(manager=MANAGER)
        return WriteTarget(
            self._served(resource), metadata.get("namespace", ""), metadata["name"], options, subresource
        )


class WorkloadController(Controller):
    """One workload controller; its keys are storage keys of the objects it is for."""

    def __init__(
        self, name: str, workload: Workload, served: Served, cluster: ServedCluster, cache: WatchCache
    ):
        self._served = served
        self._resource = workload.resource
        self._reconcile = workload.reconcile
        self._cluster = cluster
        follows = [self._source(each) for each in workload.follows]
        super().__init__(
            name,
            cache,
            Source(served.prefix),
            *(each for each in follows if each is not None),
            workers=WORKERS,
        )

    def _source(self, follows: Follows) -> Source | None:
        held = self._cluster.decoded.resource(follows.resource)
        if held is None:
            return None

        def keys(event: Event) -> Iterable[str]:
            return {
                self._served.key(namespace, name)
                for obj in held.changed(event)
                for namespace, name in follows.keys(self._cluster, obj)
            }

        return Source(held.served.prefix, keys, listed=False)

    async def reconcile(self, key: str) -> float | None:
        """See Workload; nothing more is made in a namespace that is going."""
        obj = self._cluster.get(self._resource, *name_of(key, self._served))
        if obj is None:
            return None
        try:
            return await self._reconcile(self._cluster, obj)
        except ApiError as error:
            if any(cause.reason == TERMINATING for cause in error.causes):
                return None
            raise


def workload_controllers(
    name: str, workloads: Sequence[Workload], cluster: ServedCluster, cache: WatchCache
) -> Alone:
    """The loops of one name, over the resources that are served."""
    made = []
    for workload in workloads:
        held = cluster.decoded.resource(workload.resource)
        if held is not None:
            made.append(partial(WorkloadController, name, workload, held.served, cluster, cache))
    return Alone(made)
