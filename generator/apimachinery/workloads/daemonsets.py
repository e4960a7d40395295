"""DaemonSets: a pod on each node that takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json
from apimachinery.scheduling.node_terms import asks_for
from apimachinery.scheduling.tolerations import NO_EXECUTE, untolerated

from . import revisions
from .interface import ClusterView, Follows, Workload, write_status
from .owners import claim, is_going, labels_of, owner_or_selecting, selector
from .pods import has_ended, is_available, is_ready, next_available, pod_of
from .replicasets import create_pods
from .rollouts import share

SETS = "daemonsets.apps"
GENERATION = "pod-template-generation"
GENERATION_NOTE = "deprecated.daemonset.template.generation"
_NODE = "node.kubernetes.io/"
_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


async def reconcile(cluster: ClusterView, owner: Json) -> float | None:
    """Makes pods where they are missing, ends those that are out of place, replaces old ones. Raises ApiError."""
    selects = selector(owner)
    if selects is None or is_going(owner):
        return None
    present = cluster.objects("pods", owner["metadata"]["namespace"])
    pods = await claim(cluster, "pods", owner, present, selects)
    history = await revisions.revisions_of(cluster, owner)
    revision = await revisions.newest(cluster, owner, history, revisions.HASH)
    look = _Look(cluster, owner, pods, labels_of(revision)[revisions.HASH])
    failure = await look.place()
    if failure is None and (owner["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
        failure = await look.replace_old()
    await write_status(cluster, SETS, owner, look.status())
    used = {revision["metadata"]["name"]}
    used |= {f"{owner['metadata']['name']}-{labels_of(pod).get(revisions.HASH)}" for pod in pods}
    await revisions.forget_old(cluster, history, used, owner["spec"].get("revisionHistoryLimit", 10))
    if failure is not None:
        raise failure
    return next_available(pods, look.least, cluster.now()) if look.least else None


def node_of(pod: Json) -> str:
    """The node that a pod of a DaemonSet is on, or is made for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field["key"] == "metadata.name":
                return str(field["values"][0])
    return ""


class _Look:
    """One look at a set: which nodes take a pod, and which pods they have, the oldest first."""

    def __init__(self, cluster: ClusterView, owner: Json, pods: Sequence[Json], digest: str) -> None:
        self.cluster, self.owner, self.digest = cluster, owner, digest
        self.least = owner["spec"].get("minReadySeconds") or 0
        self.nodes = {node["metadata"]["name"]: node for node in cluster.objects("nodes")}
        model = self._pod("")
        self.wanted = {
            name for name, node in self.nodes.items() if _fits(model, node) and not untolerated(model, node)
        }
        self.kept = self.wanted | {
            name
            for name, node in self.nodes.items()
            if _fits(model, node) and not untolerated(model, node, (NO_EXECUTE,))
        }
        self.pods: dict[str, list[Json]] = {}
        for pod in sorted(
            pods, key=lambda each: (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"])
        ):
            self.pods.setdefault(node_of(pod), []).append(pod)

    async def place(self) -> ApiError | None:
        """Makes and ends pods, one for each node; what kept some from being made."""
        missing, surge = [], self._limits()[0]
        for name in self.nodes:
            here = self.pods.get(name, [])
            for pod in here:
                ended = has_ended(pod) and not is_going(pod)
                if ended or (name not in self.kept and not is_going(pod)):
                    await self.cluster.delete("pods", pod)
            staying = [pod for pod in here if not is_going(pod) and not has_ended(pod)]
            if name in self.wanted and not here:
                missing.append(self._pod(name))
            if name in self.kept and not surge:
                for pod in staying[1:]:
                    await self.cluster.delete("pods", pod)
        return (await create_pods(self.cluster, missing))[1]

    async def replace_old(self) -> ApiError | None:
        """Replaces pods of former templates, so many at a time as may be missing or too much."""
        surge, unavailable = self._limits()
        now = self.cluster.now()
        made, used = [], 0
        old_available: list[Json] = []
        for name in sorted(self.wanted):
            here = [pod for pod in self.pods.get(name, []) if not has_ended(pod)]
            new = next((pod for pod in here if self._is_new(pod) and not is_going(pod)), None)
            old = next((pod for pod in here if not self._is_new(pod)), None)
            new_is_there = new is not None and is_available(new, self.least, now)
            if surge:
                if old is None or is_going(old):
                    used += new is not None and not new_is_there and old is not None
                elif new is None:
                    if not is_available(old, self.least, now) or used < surge:
                        made.append(self._pod(name))
                        used += 1
                elif new_is_there:
                    await self.cluster.delete("pods", old)
                else:
                    used += 1
            elif old is None or is_going(old):
                used += not new_is_there
            elif not is_available(old, self.least, now):
                used += 1
                await self.cluster.delete("pods", old)
            else:
                old_available.append(old)
        for pod in old_available[: max(unavailable - used, 0)]:
            await self.cluster.delete("pods", pod)
        return (await create_pods(self.cluster, made))[1]

    def _limits(self) -> tuple[int, int]:
        rolling = (self.owner["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
        surge = share(rolling.get("maxSurge"), len(self.wanted), up=True)
        unavailable = share(rolling.get("maxUnavailable", 1), len(self.wanted), up=True)
        return surge, unavailable if surge or unavailable else 1

    def _is_new(self, pod: Json) -> bool:
        return labels_of(pod).get(revisions.HASH) == self.digest

    def _pod(self, node: str) -> Json:
        """The pod for a node: it is bound there by its affinity."""
        pod = pod_of(self.owner, self.owner["spec"]["template"])
        spec = pod["spec"]
        notes = self.owner["metadata"].get("annotations") or {}
        generation = notes.get(GENERATION_NOTE, "1")
        pod["metadata"]["labels"] = {
            **labels_of(pod),
            revisions.HASH: self.digest,
            GENERATION: str(generation),
        }
        added = [{"key": _NODE + key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]
        if spec.get("hostNetwork"):
            added.append({"key": f"{_NODE}network-unavailable", "operator": "Exists", "effect": "NoSchedule"})
        given = spec.get("tolerations") or []
        spec["tolerations"] = [*given, *(each for each in added if each not in given)]
        if node:
            _bind(spec, node)
        return pod

    def status(self) -> Json:
        """The numbers of pods in and out of place, after this look."""
        now = self.cluster.now()
        numbers = dict.fromkeys(
            ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady"), 0
        )
        numbers |= {"updatedNumberScheduled": 0, "numberAvailable": 0}
        live = {
            pod["metadata"]["name"]: pod
            for pod in self.cluster.objects("pods", self.owner["metadata"]["namespace"])
        }
        for name in self.nodes:
            here = [
                live[pod["metadata"]["name"]]
                for pod in self.pods.get(name, [])
                if pod["metadata"]["name"] in live
            ]
            if name not in self.wanted:
                numbers["numberMisscheduled"] += bool(here)
                continue
            numbers["desiredNumberScheduled"] += 1
            if not here:
                continue
            numbers["currentNumberScheduled"] += 1
            first = min(here, key=lambda pod: (not is_ready(pod), not self._is_new(pod)))
            if is_ready(first):
                numbers["numberReady"] += 1
                numbers["numberAvailable"] += is_available(first, self.least, now)
            numbers["updatedNumberScheduled"] += any(self._is_new(pod) for pod in here)
        missing = numbers["desiredNumberScheduled"] - numbers["numberAvailable"]
        numbers["numberUnavailable"] = missing
        always = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
        kept = {key: value for key, value in numbers.items() if value or key in always}
        return {**kept, "observedGeneration": self.owner["metadata"].get("generation", 0)}


def _fits(pod: Json, node: Json) -> bool:
    wanted = pod["spec"].get("nodeName")
    return (not wanted or wanted == node["metadata"]["name"]) and asks_for(pod, node)


def _bind(spec: Json, node: str) -> None:
    """Adds to every term of the affinity that the node is the one."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = spec["affinity"] = deepcopy(spec.get("affinity") or {})
    wanted = affinity.setdefault("nodeAffinity", {})
    required = wanted.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [{**term, "matchFields": [field]} for term in terms]


def _every_set(cluster: ClusterView, node: Json) -> Iterator[tuple[str, str]]:
    del node
    for owner in cluster.objects(SETS):
        yield owner["metadata"]["namespace"], owner["metadata"]["name"]


WORKLOAD = Workload(
    SETS, reconcile, (owner_or_selecting(SETS, "DaemonSet", "pods"), Follows("nodes", _every_set))
)
