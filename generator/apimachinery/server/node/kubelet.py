"""The loop of the simulated node: binds pods that nobody scheduled, moves bound ones through their stages, lets deleted
ones go within their grace, and keeps its Node and Lease fresh, so that a node controller does not think it dead.

It writes as a scheduler and a kubelet do: ``spec.nodeName``, the status subresource, and a deletion without grace.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.node.behaviour import FOREVER, NodeBehaviour
from apimachinery.server.node.stages import Stage, set_condition, stage_at, write_stage
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import DeleteOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Record, RevisionConflict, StorageError
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

LOOK_SECONDS = 0.02
HEARTBEAT_SECONDS = 10.0
RETRY_SECONDS = 0.2
FIRST_RESTART_SECONDS = 1.0
NOT_READY = "node.kubernetes.io/not-ready"
KUBELET, SCHEDULER = "kubelet", "kube-scheduler"
LEASE_NAMESPACE = "kube-node-lease"
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}
log = logging.getLogger("kubewright.server.node")


@dataclass(slots=True)
class _Running:
    """What the node knows of a pod."""

    uid: str
    revision: int
    since: float
    due: float = 0.0
    stage: Stage | None = None
    restarts: int = 0
    deleted_at: float = 0.0


class SimulatedNode:
    """The node's loop."""

    def __init__(
        self, catalog: Catalog, cache: WatchCache, writer: Writer, deleter: Deleter, behaviour: NodeBehaviour
    ) -> None:
        self._catalog = catalog
        self._cache = cache
        self._writer = writer
        self._deleter = deleter
        self._behaviour = behaviour
        self._pods: dict[str, _Running] = {}
        self._stamp = -1
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        beat = 0.0
        served = self._catalog.find("", "v1", "pods")
        while served is not None:
            try:
                if time.monotonic() >= beat:
                    await self._heartbeat()
                    beat = time.monotonic() + HEARTBEAT_SECONDS
                await self._round(served)
            except (ApiError, StorageError) as error:
                log.debug("the simulated node tries again: %s", error)
            except Exception:
                log.exception("the simulated node failed")
                await asyncio.sleep(1)
            await asyncio.sleep(LOOK_SECONDS)

    async def _round(self, served: Served) -> None:
        resource = self._cache.resource(served.prefix)
        stamp = resource.stamp(served.prefix)
        if stamp != self._stamp:
            self._stamp = stamp
            records = resource.snapshot(served.prefix).records
            present = {record.key for record in records}
            for key in [key for key in self._pods if key not in present]:
                del self._pods[key]
            for record in records:
                known = self._pods.get(record.key)
                if known is None or known.revision != record.revision:
                    self._note(record, known)
        moment = time.monotonic()
        for key in [key for key, known in self._pods.items() if known.due <= moment]:
            found = resource.get(key)
            if found is not None and key in self._pods:
                await self._move(served, found, self._pods[key])

    def _note(self, record: Record, known: _Running | None) -> None:
        metadata = decode(record.value)["metadata"]
        if known is None or known.uid != metadata["uid"]:
            known = self._pods[record.key] = _Running(metadata["uid"], record.revision, time.monotonic())
        known.revision, known.due = record.revision, 0.0

    async def _move(self, served: Served, record: Record, known: _Running) -> None:
        pod = served.read(record)
        node = (pod.get("spec") or {}).get("nodeName")
        target = WriteTarget(served, *name_of(record.key, served), WriteOptions(manager=KUBELET))
        known.due = FOREVER
        try:
            if node and node != self._behaviour.name:
                return  # somebody else's
            if "deletionTimestamp" in pod["metadata"]:
                await self._end(target, pod, known)
            elif not node:
                await self._bind(target, record, pod, known)
            else:
                await self._stage(target, pod, known)
        except (ApiError, StorageError, RevisionConflict):
            known.due = time.monotonic() + RETRY_SECONDS

    async def _bind(self, target: WriteTarget, record: Record, pod: Json, known: _Running) -> None:
        if (pod["spec"].get("schedulerName") or "default-scheduler") != "default-scheduler":
            return
        if pod["spec"].get("schedulingGates"):
            return
        pod["spec"]["nodeName"] = self._behaviour.name
        set_condition(pod.setdefault("status", {}), "PodScheduled", True)
        target.options = WriteOptions(manager=SCHEDULER)
        await self._writer.replace(target, record, pod)
        known.since = time.monotonic()

    async def _stage(self, target: WriteTarget, pod: Json, known: _Running) -> None:
        phase = (pod.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            return
        plan = self._behaviour.plan_of(pod)
        moment = time.monotonic()
        if moment < known.since:
            known.due = known.since  # its containers wait for their restart
            return
        stage, wait = stage_at(plan, moment - known.since)
        policy = pod["spec"].get("restartPolicy") or "Always"
        ended = stage >= Stage.SUCCEEDED
        if ended and (policy == "Always" or (policy == "OnFailure" and stage is Stage.FAILED)):
            await self._restart(target, known)
            return
        known.due = FOREVER if wait == FOREVER else moment + wait
        if stage is known.stage:
            return
        target.subresource = "status"
        ip = _address(known.uid)
        await self._writer.update(target, lambda obj: write_stage(obj, stage, plan, ip, known.restarts))
        known.stage = stage

    async def _restart(self, target: WriteTarget, known: _Running) -> None:
        """The containers ended and begin again, after a wait that doubles."""
        wait = FIRST_RESTART_SECONDS * 2 ** min(known.restarts, 8)
        known.restarts += 1

        def transform(pod: Json) -> Json:
            plan = self._behaviour.plan_of(pod)
            write_stage(pod, Stage.FAILED, plan, _address(known.uid), known.restarts)
            pod["status"]["phase"] = "Running"
            for entry in pod["status"]["containerStatuses"]:
                ended = entry["state"]["terminated"]
                said = f"back-off {wait:g}s restarting failed container"
                entry["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": said}}
                entry["lastState"] = {"terminated": ended}
            return pod

        target.subresource = "status"
        await self._writer.update(target, transform)
        known.stage, known.since = None, time.monotonic() + wait
        known.due = known.since

    async def _end(self, target: WriteTarget, pod: Json, known: _Running) -> None:
        moment = time.monotonic()
        known.deleted_at = known.deleted_at or moment
        grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
        ends = known.deleted_at + min(grace, self._behaviour.plan_of(pod).terminate_after)
        if moment < ends:
            known.due = ends
            return
        if grace and (pod.get("status") or {}).get("phase") == "Running":
            await self._stop(target, known)
            return
        if pod["metadata"].get("finalizers") and grace == 0:
            return  # gone as far as the node is concerned
        options = DeleteOptions(grace_seconds=0, uid=known.uid)
        with contextlib.suppress(ApiError):  # it went meanwhile
            await self._deleter.delete(target, options)

    async def _stop(self, target: WriteTarget, known: _Running) -> None:
        """The containers end; who watches the pod sees that before it goes."""

        def transform(pod: Json) -> Json:
            plan = self._behaviour.plan_of(pod)
            stage = Stage.FAILED if plan.exit_code else Stage.SUCCEEDED
            return write_stage(pod, stage, plan, _address(known.uid), known.restarts)

        await self._writer.update(replace(target, subresource="status"), transform)
        known.due = time.monotonic() + LOOK_SECONDS

    async def _heartbeat(self) -> None:
        nodes = self._catalog.find("", "v1", "nodes")
        if nodes is None:
            return
        target = WriteTarget(nodes, "", self._behaviour.name, WriteOptions(manager=KUBELET))
        if self._writer.current(target) is None:
            labels = {"kubernetes.io/hostname": self._behaviour.name, "kubernetes.io/os": "linux"}
            metadata = {"name": self._behaviour.name, "labels": {**labels, "type": "simulated"}}
            obj: Json = {"kind": "Node", "apiVersion": "v1", "metadata": metadata}
            finish_form(obj, nodes)
            await self._writer.create(target, obj)
        await self._writer.update(replace(target, subresource="status"), _healthy)
        current = self._writer.current(target)
        if current is not None and _untainted(nodes.read(current)) is not None:
            await self._writer.update(target, lambda node: _untainted(node) or node)
        leases = self._catalog.find("coordination.k8s.io", "v1", "leases")
        if leases is not None:
            await self._renew(leases)

    async def _renew(self, leases: Served) -> None:
        name = self._behaviour.name
        target = WriteTarget(leases, LEASE_NAMESPACE, name, WriteOptions(manager=KUBELET))
        moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}

        def renew(lease: Json) -> Json:
            return {**lease, "spec": spec}

        if self._writer.current(target) is None:
            lease: Json = {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
                "spec": spec,
            }
            finish_form(lease, leases)
            await self._writer.create(target, lease)
        else:
            await self._writer.update(target, renew)


def _untainted(node: Json) -> Json | None:
    """A ready node without the taint of new nodes, as a node controller leaves it; None where it has none."""
    spec = dict(node.get("spec") or {})
    taints = spec.pop("taints", None) or []
    kept = [taint for taint in taints if taint.get("key") != NOT_READY]
    if len(kept) == len(taints):
        return None
    return {**node, "spec": {**spec, "taints": kept} if kept else spec}


def _healthy(node: Json) -> Json:
    status = node.setdefault("status", {})
    status["capacity"], status["allocatable"] = dict(_CAPACITY), dict(_CAPACITY)
    status["addresses"] = [
        {"type": "InternalIP", "address": "127.0.0.1"},
        {"type": "Hostname", "address": node["metadata"]["name"]},
    ]
    old = {entry["type"]: entry for entry in status.get("conditions") or []}
    status["conditions"] = []
    for kind, value, reason in (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ):
        since = old.get(kind, {}).get("lastTransitionTime") or now()
        status["conditions"].append(
            {
                "type": kind,
                "status": value,
                "reason": reason,
                "lastHeartbeatTime": now(),
                "lastTransitionTime": since,
            }
        )
    return node


def _address(uid: str) -> str:
    digest = hashlib.blake2s(uid.encode(), digest_size=2).digest()
    return f"10.244.{digest[0]}.{digest[1] % 254 + 1}"
