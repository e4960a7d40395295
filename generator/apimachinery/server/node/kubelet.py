"""The loop of the simulated nodes' kubelets: moves pods that are bound through their stages, and lets deleted ones go
within their grace. Pods of nodes that are out of order stay as they are.

It writes as a kubelet does: the status subresource, and a deletion without grace.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import monotonic
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import Controller, Source
from apimachinery.server.node.behaviour import FOREVER, NodeBehaviour, Plan
from apimachinery.server.node.stages import Stage, stage_at, write_stage
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
FIRST_RESTART_SECONDS = 1.0
KUBELET = "kubelet"


@dataclass(slots=True)
class _Running:
    """What the node knows of a pod."""

    uid: str
    since: float
    stage: Stage | None = None
    restarts: int = 0
    deleted_at: float = 0.0
    host: str = ""
    generation: int = 0


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
        self._pods: dict[str, _Running] = {}
        behaviour.faults.listen(self._look_at_all)

    def _look_at_all(self) -> None:
        """A node came back, or an image can be pulled: from any thread."""
        for key in tuple(self._pods):
            self.queue.add(key)

    def _changed(self, event: Event) -> Iterable[str]:
        if event.deleted:
            self._pods.pop(event.record.key, None)
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
            known = self._pods[key] = _Running(uid, monotonic())
        return await self._move(served, record, known)

    async def _move(self, served: Served, record: Record, known: _Running) -> float | None:
        pod = served.read(record)
        node = (pod.get("spec") or {}).get("nodeName")
        target = WriteTarget(served, *name_of(record.key, served), WriteOptions(manager=KUBELET))
        shape = self._shapes.get(node or "")
        if shape is None or not self._behaviour.faults.is_reachable(shape):
            return None  # somebody else's, or nobody's for now
        if "deletionTimestamp" in pod["metadata"]:
            return await self._end(target, pod, known)
        if not known.host:
            known.host, known.since = shape.address, monotonic()  # it was bound just now
        return await self._stage(target, pod, known)

    async def _stage(self, target: WriteTarget, pod: Json, known: _Running) -> float | None:
        phase = (pod.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            return None
        plan, moment = self._plan(pod, known), monotonic()
        if moment < known.since:
            return known.since - moment  # its containers wait for their restart
        stage, wait = stage_at(plan, moment - known.since)
        policy = pod["spec"].get("restartPolicy") or "Always"
        ended = stage >= Stage.SUCCEEDED
        if ended and (policy == "Always" or (policy == "OnFailure" and stage is Stage.FAILED)):
            return await self._restart(target, known)
        generation = pod["metadata"].get("generation", 0)
        if stage is not known.stage or generation != known.generation:
            target.subresource = "status"
            await self._writer.update(target, lambda obj: _written(obj, stage, plan, known))
            known.stage, known.generation = stage, generation
        return None if wait == FOREVER else max(moment + wait - monotonic(), 0.0)

    def _plan(self, pod: Json, known: _Running) -> Plan:
        """What is to become of a pod; what runs has its images."""
        plan = self._behaviour.plan_of(pod)
        if known.stage in (None, Stage.BOUND, Stage.PULL_FAILED):
            images = [each.get("image", "") for each in pod["spec"]["containers"]]
            if not all(map(self._behaviour.faults.can_pull, images)):
                return replace(plan, image_error=True)
            self._behaviour.note_images(images)
        return plan

    async def _restart(self, target: WriteTarget, known: _Running) -> float:
        """The containers ended and begin again, after a wait that doubles."""
        wait: float = FIRST_RESTART_SECONDS * 2 ** min(known.restarts, 8)
        known.restarts += 1

        def transform(pod: Json) -> Json:
            plan = self._behaviour.plan_of(pod)
            _written(pod, Stage.FAILED, plan, known)
            pod["status"]["phase"] = "Running"
            for entry in pod["status"]["containerStatuses"]:
                ended = entry["state"]["terminated"]
                said = f"back-off {wait:g}s restarting failed container"
                entry["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": said}}
                entry["lastState"] = {"terminated": ended}
            return pod

        target.subresource = "status"
        await self._writer.update(target, transform)
        known.stage, known.since = None, monotonic() + wait
        return wait

    async def _end(self, target: WriteTarget, pod: Json, known: _Running) -> float | None:
        moment = monotonic()
        known.deleted_at = known.deleted_at or moment
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        ends = known.deleted_at + min(grace, self._behaviour.plan_of(pod).terminate_after)
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

    async def _stop_pod(self, target: WriteTarget, known: _Running) -> float:
        """The containers end; who watches the pod sees that before it goes."""

        def transform(pod: Json) -> Json:
            plan = self._behaviour.plan_of(pod)
            stage = Stage.FAILED if plan.exit_code else Stage.SUCCEEDED
            return _written(pod, stage, plan, known)

        await self._writer.update(replace(target, subresource="status"), transform)
        return LOOK_SECONDS


def _written(pod: Json, stage: Stage, plan: Plan, known: _Running) -> Json:
    return write_stage(pod, stage, plan, _address(known.uid), known.restarts, known.host)


def _address(uid: str) -> str:
    digest = hashlib.blake2s(uid.encode(), digest_size=2).digest()
    return f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
