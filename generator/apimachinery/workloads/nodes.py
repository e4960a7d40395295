"""Nodes that fall silent: they are not ready, and what does not tolerate that leaves them.

A kubelet renews a Lease. One that was not renewed in time makes the node Unknown and unreachable; pods leave it when
their tolerations end; pods of nodes that are gone are ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.meta.json import Json
from apimachinery.scheduling.tolerations import NO_EXECUTE, NO_SCHEDULE, tolerates

from .conditions import find
from .interface import ClusterView, Follows, Workload
from .moments import seconds_of, sooner, text_of
from .owners import is_going
from .pods import has_ended

NODES, LEASES, NAMESPACE = "nodes", "leases.coordination.k8s.io", "kube-node-lease"
GRACE_SECONDS = 50.0
"""How long a node may be silent (kube-controller-manager's ``--node-monitor-grace-period``)."""
LOOK_AGAIN_SECONDS = 0.08
"""A clock that jumps makes every Lease old at once: a kubelet that lives gets the time to renew its own."""
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_SILENT = "NodeStatusUnknown", "Kubelet stopped posting node status."


class NodeLifecycle:
    """Judges nodes by their Leases; it remembers which looked silent a moment ago."""

    def __init__(self) -> None:
        self._suspected: set[str] = set()

    async def reconcile(self, cluster: ClusterView, node: Json) -> float | None:
        """Says whether a node is alive. Raises ApiError."""
        name, now = node["metadata"]["name"], cluster.now()
        lease = cluster.get(LEASES, NAMESPACE, name)
        if lease is None:
            return None  # of nodes that nobody runs nothing is known
        left = seconds_of((lease.get("spec") or {}).get("renewTime")) + GRACE_SECONDS - now
        if left > 0:
            self._suspected.discard(name)
            await self._taint(cluster, node, _taints_of(node, now))
            return left
        if name not in self._suspected:
            self._suspected.add(name)
            return LOOK_AGAIN_SECONDS
        await self._silence(cluster, node, now)
        return None

    async def _silence(self, cluster: ClusterView, node: Json, now: float) -> None:
        ready = find((node.get("status") or {}).get("conditions"), "Ready")
        if ready is None or ready["status"] != "Unknown":
            node = await cluster.update(NODES, node, lambda obj: _unknown(obj, now), "status")
        await self._taint(cluster, node, _taints_of(node, now))
        for pod in cluster.objects("pods"):
            if pod["spec"].get("nodeName") == node["metadata"]["name"] and not has_ended(pod):
                held = find((pod.get("status") or {}).get("conditions"), "Ready")
                if held is not None and held["status"] == "True":
                    await cluster.update("pods", pod, lambda obj: _not_ready(obj, now), "status")

    async def _taint(self, cluster: ClusterView, node: Json, wanted: list[Json]) -> None:
        held = (node.get("spec") or {}).get("taints") or []
        own = {(each["key"], each["effect"]) for each in held if each["key"] in (NOT_READY, UNREACHABLE)}
        if own == {(each["key"], each["effect"]) for each in wanted}:
            return

        def change(obj: Json) -> Json:
            spec = dict(obj.get("spec") or {})
            kept = [
                each for each in spec.pop("taints", None) or () if each["key"] not in (NOT_READY, UNREACHABLE)
            ]
            taints = [*kept, *wanted]
            return {**obj, "spec": {**spec, "taints": taints} if taints else spec}

        await cluster.update(NODES, node, change)


def _taints_of(node: Json, now: float) -> list[Json]:
    """The taints that follow from a node's condition."""
    ready = find((node.get("status") or {}).get("conditions"), "Ready")
    if ready is not None and ready["status"] == "True":
        return []
    key = UNREACHABLE if ready is not None and ready["status"] == "Unknown" else NOT_READY
    return [
        {"key": key, "effect": NO_SCHEDULE, "timeAdded": text_of(now)},
        {"key": key, "effect": NO_EXECUTE, "timeAdded": text_of(now)},
    ]


def _unknown(node: Json, now: float) -> Json:
    reason, message = _SILENT
    # The node may have changed since the controller read it, so its status may be gone.
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("status") != "Unknown":
            condition |= {"status": "Unknown", "reason": reason, "message": message}
            condition["lastTransitionTime"] = text_of(now)
    return node


def _not_ready(pod: Json, now: float) -> Json:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") == "True":
            condition |= {"status": "False", "lastTransitionTime": text_of(now)}
    return pod


async def evict(cluster: ClusterView, pod: Json) -> float | None:
    """Deletes a pod that does not tolerate a taint of its node, or not for so long. Raises ApiError."""
    node = cluster.get(NODES, "", pod["spec"].get("nodeName") or "")
    if node is None or is_going(pod) or has_ended(pod):
        return None
    now, wait = cluster.now(), None
    for taint in (node.get("spec") or {}).get("taints") or ():
        if taint["effect"] != NO_EXECUTE:
            continue
        matching = [each for each in pod["spec"].get("tolerations") or () if tolerates(each, taint)]
        limits = [each["tolerationSeconds"] for each in matching if each.get("tolerationSeconds") is not None]
        if matching and not limits:
            continue
        left = (seconds_of(taint.get("timeAdded")) or now) + min(limits, default=0) - now
        if left > 0:
            wait = sooner(wait, left)
            continue
        await cluster.update("pods", pod, lambda obj: _disrupted(obj, now), "status")
        await cluster.delete("pods", pod)
        return None
    return wait


def _disrupted(pod: Json, now: float) -> Json:
    made = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": text_of(now)}
    made |= {"reason": "DeletionByTaintManager", "message": "Taint manager: deleting due to NoExecute taint"}
    status = pod.get("status") or {}
    kept = [each for each in status.get("conditions") or () if each.get("type") != made["type"]]
    return {**pod, "status": {**status, "conditions": [*kept, made]}}


async def collect(cluster: ClusterView, pod: Json) -> float | None:
    """Ends a pod whose node is gone, or that is to go and was never on one. Raises ApiError."""
    name = pod["spec"].get("nodeName")
    lost = cluster.get(NODES, "", name) is None if name else is_going(pod)
    if lost:
        await cluster.delete("pods", pod, at_once=True)
    return None


def _pods_of(cluster: ClusterView, node: Json) -> Iterator[tuple[str, str]]:
    if not any(taint["effect"] == NO_EXECUTE for taint in (node.get("spec") or {}).get("taints") or ()):
        return
    yield from _all_pods_of(cluster, node)


def _all_pods_of(cluster: ClusterView, node: Json) -> Iterator[tuple[str, str]]:
    for pod in cluster.objects("pods"):
        if pod["spec"].get("nodeName") == node["metadata"]["name"]:
            yield pod["metadata"]["namespace"], pod["metadata"]["name"]


def _orphans_of(cluster: ClusterView, node: Json) -> Iterator[tuple[str, str]]:
    if cluster.get(NODES, "", node["metadata"]["name"]) is None:
        yield from _all_pods_of(cluster, node)


def _node_of(cluster: ClusterView, lease: Json) -> Iterator[tuple[str, str]]:
    """Of a Lease of a node: it is looked at when it is made; renewals are seen when the time is up."""
    del cluster
    if lease["metadata"]["namespace"] == NAMESPACE:
        yield "", lease["metadata"]["name"]


def lifecycle() -> Workload:
    """The judge of nodes, for one server."""
    return Workload(NODES, NodeLifecycle().reconcile, (Follows(LEASES, _node_of),))


EVICTION = Workload("pods", evict, (Follows(NODES, _pods_of),))
COLLECTION = Workload("pods", collect, (Follows(NODES, _orphans_of),))
