"""Nodes that show that they live: each registers, keeps its status and renews its Lease, unless it is out of order."""

from __future__ import annotations

import msgspec

from apimachinery.kinds.hooks import Json
from apimachinery.meta.clock import now, utc
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.controller import Controller
from apimachinery.server.node.behaviour import NodeBehaviour
from apimachinery.server.node.shapes import NODE_INFO, NodeShape
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.watch_cache import WatchCache

# As the kubelet does it without options (nodeStatusUpdateFrequency).
HEARTBEAT_SECONDS = 10.0
KUBELET = "kubelet"
LEASE_NAMESPACE = "kube-node-lease"
OWN_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


class Heartbeats(Controller):
    """Its keys are names of nodes."""

    def __init__(self, catalog: Catalog, cache: WatchCache, writer: Writer, behaviour: NodeBehaviour) -> None:
        super().__init__("node-heartbeat", cache)
        self._catalog, self._writer, self._behaviour = catalog, writer, behaviour
        self._shapes = {shape.name: shape for shape in behaviour.shapes}
        behaviour.faults.listen(self._beat)
        self._beat()

    def _beat(self) -> None:
        """Has every node show itself now; from any thread."""
        for name in self._shapes:
            self.queue.add(name)

    async def reconcile(self, key: str) -> float:
        """One beat of a node that is in order. Raises ApiError, StorageError."""
        shape, nodes = self._shapes[key], self._catalog.find("", "v1", "nodes")
        if nodes is None or not self._behaviour.faults.is_reachable(shape):
            return HEARTBEAT_SECONDS
        target = WriteTarget(nodes, "", key, WriteOptions(manager=KUBELET))
        if self._writer.current(target) is None:
            obj = shape.registered()
            finish_form(obj, nodes)
            await self._writer.create(target, obj)
        images = self._behaviour.images
        await self._writer.update(
            msgspec.structs.replace(target, subresource="status"), lambda node: _healthy(node, shape, images)
        )
        current = self._writer.current(target)
        if current is not None and _untainted(nodes.read(current)) is not None:
            await self._writer.update(target, lambda node: _untainted(node) or node)
        leases = self._catalog.find("coordination.k8s.io", "v1", "leases")
        if leases is not None:
            await self._renew(leases, key)
        return HEARTBEAT_SECONDS

    async def _renew(self, leases: Served, name: str) -> None:
        target = WriteTarget(leases, LEASE_NAMESPACE, name, WriteOptions(manager=KUBELET))
        moment = utc().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        # 40 s is the kubelet's default too: the node counts as silent when four beats are missing.
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}

        def renew(lease: Json) -> Json:
            return {**lease, "spec": spec}

        if self._writer.current(target) is None:
            metadata = {"name": name, "namespace": LEASE_NAMESPACE}
            lease: Json = {
                "kind": "Lease",
                "apiVersion": "coordination.k8s.io/v1",
                "metadata": metadata,
                "spec": spec,
            }
            finish_form(lease, leases)
            await self._writer.create(target, lease)
        else:
            await self._writer.update(target, renew)


def _untainted(node: Json) -> Json | None:
    """A ready node without the taints of new and silent nodes, as a node controller leaves it; None where it has
    none."""
    spec = dict(node.get("spec") or {})
    taints = spec.pop("taints", None) or []
    kept = [taint for taint in taints if taint.get("key") not in OWN_TAINTS]
    if len(kept) == len(taints):
        return None
    return {**node, "spec": {**spec, "taints": kept} if kept else spec}


def _healthy(node: Json, shape: NodeShape, images: list[str]) -> Json:
    status = node.setdefault("status", {})
    # What others added stays: extended resources are put there by whoever has the devices. All of it can be allocated.
    status["capacity"] = {**(status.get("capacity") or {}), **shape.capacity}
    status["allocatable"] = dict(status["capacity"])
    status["addresses"] = [
        {"type": "InternalIP", "address": shape.address},
        {"type": "Hostname", "address": shape.name},
    ]
    status["nodeInfo"] = dict(NODE_INFO)
    status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 10250}}
    if images:
        status["images"] = [{"names": [name], "sizeBytes": 1 << 20} for name in images]
    old = {entry["type"]: entry for entry in status.get("conditions") or []}
    own = [_condition(old, *each) for each in _CONDITIONS]
    mine = {each["type"] for each in own}
    status["conditions"] = [*(each for kind, each in old.items() if kind not in mine), *own]
    return node


_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def _condition(old: dict[str, Json], kind: str, value: str, reason: str, message: str) -> Json:
    held = old.get(kind) or {}
    since = held.get("lastTransitionTime") if held.get("status") == value else None
    made = {"type": kind, "status": value, "lastHeartbeatTime": now(), "lastTransitionTime": since or now()}
    return {**made, "reason": reason, "message": message}
