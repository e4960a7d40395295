"""The loop of the scheduler: binds pods that wait for a node, the most important first, as ``apimachinery.scheduling``
decides; says of the others why they wait, and has pods give way to them.

It writes as kube-scheduler does. A pod that names another scheduler is left to that one; ``--controllers
all,node,-scheduler`` leaves all pods to one that you bring.
"""

from __future__ import annotations

from collections.abc import Iterable

from apimachinery.kinds.hooks import Json
from apimachinery.scheduling.board import Board, priority_of
from apimachinery.scheduling.placing import Placement, place
from apimachinery.server.controllers.controller import EVERYTHING, Controller, Source
from apimachinery.server.controllers.decoded import DecodedObjects
from apimachinery.server.controllers.event_writer import EventWriter, Involved
from apimachinery.server.node.containers import set_condition
from apimachinery.server.request.options import DeletionOptions, WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.deletion import Deleter
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import Event, KeyNotFound, RevisionConflict
from apimachinery.storage.watch_cache import WatchCache

PODS, NODES = "/core/pods/", "/core/nodes/"
NAME = "default-scheduler"
MANAGER = "kube-scheduler"


class Scheduler(Controller):
    """Looks at all pods that wait, whenever a pod or a node changes."""

    def __init__(
        self,
        decoded: DecodedObjects,
        cache: WatchCache,
        writer: Writer,
        deleter: Deleter,
        events: EventWriter,
    ) -> None:
        nodes = Source(NODES, self._node_changed, listed=False)
        super().__init__("scheduler", cache, Source(PODS, self._pod_changed), nodes)
        self._decoded, self._writer, self._deleter = decoded, writer, deleter
        self._events = events
        self._waiting: set[str] = set()
        self._nodes: dict[str, object] = {}

    def _pod_changed(self, event: Event) -> Iterable[str]:
        key = event.record.key
        pods = self._decoded.resource("pods")
        if pods is None:
            return ()
        if not event.deleted and waits(pods.of(event.record)):
            self._waiting.add(key)
            return (EVERYTHING,)
        self._waiting.discard(key)
        return (EVERYTHING,) if self._waiting else ()

    def _node_changed(self, event: Event) -> Iterable[str]:
        """A heartbeat changes nothing for pods."""
        name, nodes = event.record.key, self._decoded.resource("nodes")
        if nodes is None:
            return ()
        node = None if event.deleted else nodes.of(event.record)
        shown = None if node is None else _matters(node)
        if self._nodes.get(name) == shown:
            return ()
        self._nodes[name] = shown
        return (EVERYTHING,) if self._waiting else ()

    async def reconcile(self, key: str) -> None:
        """Places what waits. Raises ApiError, StorageError."""
        pods, nodes, namespaces = (self._decoded.resource(name) for name in ("pods", "nodes", "namespaces"))
        if pods is None or nodes is None or not self._waiting:
            return
        board = Board(nodes.all(), pods.all(), [] if namespaces is None else namespaces.all())
        waiting = [pod for pod in pods.all() if waits(pod)]
        for pod in sorted(waiting, key=_turn):
            placement = place(board, pod)
            if placement.node:
                bound = {**pod, "spec": {**pod["spec"], "nodeName": placement.node}}
                if await self._bind(pod, placement.node):
                    board.places[placement.node].add(bound)
                    about = _about(pod)
                    said = f"Successfully assigned {about.namespace}/{about.name} to {placement.node}"
                    await self._events.write(about, "Scheduled", said)
            else:
                await self._refuse(pod, placement, len(board.places))

    def _target(self, pod: Json, subresource: str = "") -> WriteTarget:
        served = self._decoded.resource("pods")
        assert served is not None
        metadata = pod["metadata"]
        options = WriteOptions(manager=MANAGER)
        return WriteTarget(served.served, metadata["namespace"], metadata["name"], options, subresource)

    async def _bind(self, pod: Json, node: str) -> bool:
        """Whether the pod was there still, as it was."""
        target = self._target(pod)
        record = self._writer.current(target)
        if record is None:
            return False
        new = target.served.read(record)
        if new["metadata"]["uid"] != pod["metadata"]["uid"] or not waits(new):
            return False
        new["spec"]["nodeName"] = node
        status = new.setdefault("status", {})
        status.pop("nominatedNodeName", None)
        set_condition(status, "PodScheduled", True)
        try:
            await self._writer.replace(target, record, new)
        except (KeyNotFound, RevisionConflict):
            return False  # its change makes it due again
        return True

    async def _refuse(self, pod: Json, placement: Placement, nodes: int) -> None:
        status = pod.get("status") or {}
        leaving = [other for other in placement.victims if "deletionTimestamp" not in other["metadata"]]
        for other in leaving:
            await self._give_way(other, pod)
        message = placement.message(nodes)
        held = next((each for each in status.get("conditions") or () if each["type"] == "PodScheduled"), None)
        nominated = placement.nominated or status.get("nominatedNodeName", "")
        if (
            held is not None
            and held.get("message") == message
            and status.get("nominatedNodeName", "") == nominated
        ):
            return

        def refused(new: Json) -> Json:
            held = new.setdefault("status", {})
            set_condition(held, "PodScheduled", False, "Unschedulable", message)
            if nominated:
                held["nominatedNodeName"] = nominated
            return new

        await self._writer.update(self._target(pod, "status"), refused, uid=pod["metadata"]["uid"])
        await self._events.write(_about(pod), "FailedScheduling", message, warning=True)

    async def _give_way(self, other: Json, pod: Json) -> None:
        def disrupted(new: Json) -> Json:
            set_condition(
                new.setdefault("status", {}), "DisruptionTarget", True, "PreemptionByScheduler", _WHY
            )
            return new

        uid = other["metadata"]["uid"]
        del pod
        await self._writer.update(self._target(other, "status"), disrupted, uid=uid)
        await self._deleter.delete(self._target(other), DeletionOptions(uid=uid))


_WHY = f"{NAME}: preempting to accommodate a higher priority pod"


def waits(pod: Json) -> bool:
    """Whether a pod is this scheduler's to place."""
    spec = pod["spec"]
    return not (
        spec.get("nodeName")
        or spec.get("schedulingGates")
        or "deletionTimestamp" in pod["metadata"]
        or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        or (spec.get("schedulerName") or NAME) != NAME
    )


def _about(pod: Json) -> Involved:
    metadata = pod["metadata"]
    return Involved("v1", "Pod", metadata["namespace"], metadata["name"], metadata["uid"])


def _turn(pod: Json) -> tuple[object, ...]:
    metadata = pod["metadata"]
    return -priority_of(pod), metadata["creationTimestamp"], metadata["namespace"], metadata["name"]


def _matters(node: Json) -> object:
    """What of a node decides about pods."""
    spec = node.get("spec") or {}
    allocatable = (node.get("status") or {}).get("allocatable")
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable"), allocatable
