"""The loop of the simulated node: binds pods that nobody scheduled, moves bound ones through their stages, lets deleted
ones go within their grace, and keeps its Node and Lease fresh, so that a node controller does not think it dead.

It writes as a scheduler and a kubelet do: ``spec.nodeName``, the status subresource, and a deletion without grace.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import monotonic, utc
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served, name_of
from apimachinery.server.controllers.controller import EVERYTHING, Controller, Source
from apimachinery.server.node.behaviour import FOREVER, NodeBehaviour
from apimachinery.server.node.stages import Stage, set_condition, stage_at, write_stage
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode

LOOK_SECONDS = 0.02
HEARTBEAT_SECONDS = 10.0
PODS = "/core/pods/"
WORKERS = 4
FIRST_RESTART_SECONDS = 1.0
NOT_READY = "node.kubernetes.io/not-ready"
KUBELET, SCHEDULER = "kubelet", "kube-scheduler"
LEASE_NAMESPACE = "kube-node-lease"
_CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "10000", "ephemeral-storage": "1Ti"}


@dataclass(slots=True)
class _Running:
    """What the node knows of a pod."""

    uid: str
    since: float
    stage: Stage | None = None
    restarts: int = 0
    deleted_at: float = 0.0


class SimulatedNode(Controller):
    """Keeps the node fresh (the key ``EVERYTHING``), and moves each pod by its key."""

    def __init__(
        self, catalog: Catalog, cache: WatchCache, writer: Writer, deleter: Deleter, behaviour: NodeBehaviour
    ) -> None:
        super().__init__("node", cache, Source(PODS, self._changed), workers=WORKERS)
        self._catalog = catalog
        self._writer = writer
        self._deleter = deleter
        self._behaviour = behaviour
        self._pods: dict[str, _Running] = {}
        self.queue.add(EVERYTHING)

    def _changed(self, event: Event) -> Iterable[str]:
        if event.deleted:
            self._pods.pop(event.record.key, None)
            return ()
        return (event.record.key,)

    async def reconcile(self, key: str) -> float | None:
        """Moves a pod; when its next stage is due. Raises ApiError, StorageError."""
        if key == EVERYTHING:
            await self._heartbeat()
            return HEARTBEAT_SECONDS
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
        if node and node != self._behaviour.name:
            return None  # somebody else's
        if "deletionTimestamp" in pod["metadata"]:
            return await self._end(target, pod, known)
        if node:
            return await self._stage(target, pod, known)
        await self._bind(target, record, pod, known)
        return None

    async def _bind(self, target: WriteTarget, record: Record, pod: Json, known: _Running) -> None:
        if (pod["spec"].get("schedulerName") or "default-scheduler") != "default-scheduler":
            return
        if pod["spec"].get("schedulingGates"):
            return
        pod["spec"]["nodeName"] = self._behaviour.name
        set_condition(pod.setdefault("status", {}), "PodScheduled", True)
        target.options = WriteOptions(manager=SCHEDULER)
        await self._writer.replace(target, record, pod)
        known.since = monotonic()

    async def _stage(self, target: WriteTarget, pod: Json, known: _Running) -> float | None:
        phase = (pod.get("status") or {}).get("phase")
        if phase in ("Succeeded", "Failed"):
            return None
        plan = self._behaviour.plan_of(pod)
        moment = monotonic()
        if moment < known.since:
            return known.since - moment  # its containers wait for their restart
        stage, wait = stage_at(plan, moment - known.since)
        policy = pod["spec"].get("restartPolicy") or "Always"
        ended = stage >= Stage.SUCCEEDED
        if ended and (policy == "Always" or (policy == "OnFailure" and stage is Stage.FAILED)):
            return await self._restart(target, known)
        if stage is not known.stage:
            target.subresource = "status"
            ip = _address(known.uid)
            await self._writer.update(target, lambda obj: write_stage(obj, stage, plan, ip, known.restarts))
            known.stage = stage
        return None if wait == FOREVER else max(moment + wait - monotonic(), 0.0)

    async def _restart(self, target: WriteTarget, known: _Running) -> float:
        """The containers ended and begin again, after a wait that doubles."""
        wait: float = FIRST_RESTART_SECONDS * 2 ** min(known.restarts, 8)
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
            return write_stage(pod, stage, plan, _address(known.uid), known.restarts)

        await self._writer.update(replace(target, subresource="status"), transform)
        return LOOK_SECONDS

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
        moment = utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
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
