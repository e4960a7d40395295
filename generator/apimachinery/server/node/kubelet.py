"""The loop of the simulated nodes' kubelets: moves pods that are bound through their stages, and lets deleted ones go
within their grace. Pods of nodes that are out of order stay as they are.

It writes as a kubelet does: the status subresource, and a deletion without grace.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import msgspec

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import monotonic
from apimachinery.meta.errors import ApiError
from apimachinery.scheduling.filters import NO_PORTS, ports_clash
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.node.behaviour import FOREVER, FindVariables, NodeBehaviour, Plan
from apimachinery.server.node.containers import PodLife
from apimachinery.server.node.runs import CommandRun
from apimachinery.server.node.variables import ContainerVariables
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

LOOK_SECONDS = 0.02
PODS = "/core/pods/"
WORKERS = 4
KUBELET = "kubelet"


class SimulatedNode(Controller):
    """Moves each pod of its nodes by its key."""

    def __init__(
        self, catalog: Catalog, cache: WatchCache, writer: Writer, deleter: Deleter, behaviour: NodeBehaviour
    ) -> None:
        super().__init__("node", cache, Source(PODS, self._changed), workers=WORKERS)
        self._catalog = catalog
        self._writer = writer
        self._deleter = deleter
        self._behaviour = behaviour
        self._shapes = {shape.name: shape for shape in behaviour.shapes}
        self._variables = ContainerVariables(cache)
        self._pods: dict[str, PodLife] = {}
        behaviour.faults.listen(self._look_at_all)

    def _look_at_all(self) -> None:
        """Queues all pods: a node came back, or an image can be pulled. Called from any thread."""
        for key in tuple(self._pods):
            self.queue.add(key)

    def _changed(self, event: Event) -> Iterable[str]:
        if event.deleted:
            gone = self._pods.pop(event.record.key, None)
            if gone is not None:
                self._behaviour.forget(gone.uid)
            return ()
        return (event.record.key,)

    async def reconcile(self, key: str) -> float | None:
        """Moves a pod; when its next stage is due. Raises ApiError, StorageError."""
        served = self._catalog.find("", "v1", "pods")
        record = self.cache.resource(PODS).get(key)
        if served is None or record is None:
            return None
        uid = decode(record.value)["metadata"]["uid"]
        known = self._pods.get(key)
        if known is None or known.uid != uid:
            known = self._pods[key] = PodLife(uid, monotonic())
        return await self._move(served, record, known)

    async def _move(self, served: Served, record: Record, known: PodLife) -> float | None:
        pod = served.read(record)
        node = (pod.get("spec") or {}).get("nodeName")
        target = WriteTarget(served, *name_of(record.key, served), WriteOptions(manager=KUBELET))
        shape = self._shapes.get(node or "")
        if shape is None or not self._behaviour.faults.is_reachable(shape):
            return None  # somebody else's, or nobody's for now
        if "deletionTimestamp" in pod["metadata"]:
            return await self._end(target, pod, known)
        if not known.host:
            known.host, known.bound = shape.address, monotonic()  # it was bound just now
        return await self._go_on(target, pod, known)

    async def _go_on(self, target: WriteTarget, pod: Json, known: PodLife) -> float | None:
        if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return None
        if not known.lives and ports_clash(pod, self._beside(known)):
            target.subresource = "status"
            await self._writer.update(target, _rejected)
            return None
        plan, moment = self._plan(pod, known), monotonic()
        address = _address(known.uid)
        pod["status"] = {**(pod.get("status") or {}), **known.addresses(address)}
        capacity = self._shapes[pod["spec"]["nodeName"]].capacity
        variables = partial(self._variables.of, pod, capacity)
        begin = partial(self._begin, pod, variables)
        wait = known.move(pod, plan, moment, begin, partial(self._behaviour.ask, pod, variables))
        picture = known.picture(pod, plan, moment)
        if picture != known.written:
            target.subresource = "status"
            await self._writer.update(target, lambda obj: known.write(obj, plan, moment, address))
            known.written = picture
        return None if wait == FOREVER else max(moment + wait - monotonic(), 0.0)

    def _beside(self, known: PodLife) -> Iterator[Json]:
        """The pods that run on the same node."""
        for key, other in self._pods.items():
            record = self.cache.resource(PODS).get(key) if other.host == known.host and other.lives else None
            pod = {} if record is None else decode(record.value)
            if pod and (pod.get("status") or {}).get("phase") == "Running":
                yield pod

    def _begin(self, pod: Json, variables: FindVariables, container: Json) -> CommandRun | None:
        self._variables.require(pod, container)
        return self._behaviour.begin(pod, variables, container)

    def _plan(self, pod: Json, known: PodLife) -> Plan:
        """What is to become of a pod; what runs has its images."""
        plan = self._behaviour.plan_of(pod)
        if not known.lives:
            images = [each.get("image", "") for each in pod["spec"]["containers"]]
            if not all(map(self._behaviour.faults.can_pull, images)):
                return replace(plan, image_error=True)
            self._behaviour.note_images(images)
        return plan

    async def _end(self, target: WriteTarget, pod: Json, known: PodLife) -> float | None:
        moment = monotonic()
        known.deleted = known.deleted or moment
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        ends = known.deleted + min(grace, self._behaviour.plan_of(pod).terminate_after)
        if moment < ends:
            return ends - moment
        if grace and (pod.get("status") or {}).get("phase") == "Running":
            return await self._stop_pod(target, known)
        if pod["metadata"].get("finalizers") and grace == 0:
            return None  # gone as far as the node is concerned
        options = DeletionOptions(grace_seconds=0, uid=known.uid)
        with contextlib.suppress(ApiError):  # it went meanwhile
            await self._deleter.delete(target, options)
        return None

    async def _stop_pod(self, target: WriteTarget, known: PodLife) -> float:
        """The containers end; who watches the pod sees that before it goes."""

        def transform(pod: Json) -> Json:
            plan, moment = self._behaviour.plan_of(pod), monotonic()
            known.stop(moment, plan.exit_code or 0)
            return known.write(pod, plan, moment, _address(known.uid))

        await self._writer.update(msgspec.structs.replace(target, subresource="status"), transform)
        return LOOK_SECONDS


def _rejected(pod: Json) -> Json:
    """A pod that a kubelet does not admit, as a scheduler would not have placed it."""
    message = f"Pod was rejected: Predicate NodePorts failed: {NO_PORTS}"
    changes = {"phase": "Failed", "reason": "NodePorts", "message": message}
    return {**pod, "status": {**(pod.get("status") or {}), **changes}}


def _address(uid: str) -> str:
    digest = hashlib.blake2s(uid.encode(), digest_size=2).digest()
    return f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
