"""PodDisruptionBudgets: how many pods may be evicted now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apimachinery.meta.json import Json
from apimachinery.meta.selectors import selector_of

from .conditions import with_condition
from .interface import ClusterView, Follows, Workload, write_status
from .moments import seconds_of, sooner, text_of
from .owners import controller_of, is_going, labels_of
from .pods import is_ready
from .rollouts import share

BUDGETS = "poddisruptionbudgets.policy"
DELETION_SECONDS = 120.0
"""How long an evicted pod may be there still before it counts as healthy again."""
_SCALES = {
    "ReplicationController": "replicationcontrollers",
    "ReplicaSet": "replicasets.apps",
    "StatefulSet": "statefulsets.apps",
    "Deployment": "deployments.apps",
}


class UnknownScale(Exception):
    """A budget counts pods whose controller has no size; the text is that of the condition."""


async def reconcile(cluster: ClusterView, budget: Json) -> float | None:
    """Writes the status of a budget. Raises ApiError."""
    if is_going(budget):
        return None
    spec, now = budget["spec"], cluster.now()
    given = spec.get("selector")
    chosen = None if given is None else selector_of(given)
    present = cluster.objects("pods", budget["metadata"]["namespace"])
    pods = [pod for pod in present if chosen is not None and chosen.matches(labels_of(pod))]
    old = budget.get("status") or {}
    disrupted, wait = _disrupted(old.get("disruptedPods") or {}, pods, now)
    healthy = sum(
        is_ready(pod) and not is_going(pod) and pod["metadata"]["name"] not in disrupted for pod in pods
    )
    status: Json = {"observedGeneration": budget["metadata"].get("generation", 0), "currentHealthy": healthy}
    if disrupted:
        status["disruptedPods"] = disrupted
    try:
        expected, desired = _numbers(cluster, spec, pods)
    except UnknownScale as fault:
        kept = {key: old.get(key, 0) for key in ("currentHealthy", "desiredHealthy", "expectedPods")}
        status |= {**kept, "disruptionsAllowed": 0}
        made = _condition("False", "SyncFailed", str(fault), status, now)
    else:
        allowed = max(healthy - desired, 0) if expected else 0
        status |= {"desiredHealthy": desired, "expectedPods": expected, "disruptionsAllowed": allowed}
        reason = "SufficientPods" if allowed else "InsufficientPods"
        made = _condition("True" if allowed else "False", reason, "", status, now)
    status["conditions"] = with_condition(old.get("conditions"), made)
    await write_status(cluster, BUDGETS, budget, status)
    return wait


def _condition(value: str, reason: str, message: str, status: Json, now: float) -> Json:
    return {
        "type": "DisruptionAllowed",
        "status": value,
        "observedGeneration": status["observedGeneration"],
        "lastTransitionTime": text_of(now),
        "reason": reason,
        "message": message,
    }


def _disrupted(noted: Json, pods: Sequence[Json], now: float) -> tuple[Json, float | None]:
    """The pods that were evicted and are still there, and when the next of them is forgotten."""
    kept, wait = {}, None
    by_name = {pod["metadata"]["name"]: pod for pod in pods}
    for name, moment in noted.items():
        pod = by_name.get(name)
        left = seconds_of(moment) + DELETION_SECONDS - now
        if pod is not None and not is_going(pod) and left > 0:
            kept[name] = moment
            wait = sooner(wait, left)
    return kept, wait


def _numbers(cluster: ClusterView, spec: Json, pods: Sequence[Json]) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    if (unavailable := spec.get("maxUnavailable")) is not None:
        expected = _expected(cluster, pods)
        return expected, max(expected - share(unavailable, expected, up=True), 0)
    least = spec.get("minAvailable", 1)
    if isinstance(least, int):
        return len(pods), least
    expected = _expected(cluster, pods)
    return expected, share(least, expected, up=True)


def _expected(cluster: ClusterView, pods: Sequence[Json]) -> int:
    """The sizes of the controllers of pods, each once. Raises UnknownScale."""
    sizes: dict[str, int] = {}
    for pod in pods:
        reference = controller_of(pod)
        if reference is None:
            continue
        owner = _top(cluster, pod["metadata"]["namespace"], reference)
        if owner is None:
            raise UnknownScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')
        sizes[owner["metadata"]["uid"]] = owner["spec"].get("replicas", 1)
    return sum(sizes.values())


def _top(cluster: ClusterView, namespace: str, reference: Json) -> Json | None:
    """What a pod's controller is controlled by: a Deployment, for a ReplicaSet."""
    resource = _SCALES.get(reference["kind"])
    owner = None if resource is None else cluster.get(resource, namespace, reference["name"])
    if owner is None or owner["metadata"]["uid"] != reference["uid"]:
        return None
    above = controller_of(owner)
    if reference["kind"] == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
        return _top(cluster, namespace, above)
    return owner


def _of_pod(cluster: ClusterView, pod: Json) -> Iterator[tuple[str, str]]:
    for budget in cluster.objects(BUDGETS, pod["metadata"]["namespace"]):
        given = budget["spec"].get("selector")
        if given is not None and selector_of(given).matches(labels_of(pod)):
            yield budget["metadata"]["namespace"], budget["metadata"]["name"]


def _of_owner(cluster: ClusterView, owner: Json) -> Iterator[tuple[str, str]]:
    """A workload that is scaled: the budgets of its namespace."""
    for budget in cluster.objects(BUDGETS, owner["metadata"]["namespace"]):
        yield budget["metadata"]["namespace"], budget["metadata"]["name"]


WORKLOAD = Workload(
    BUDGETS,
    reconcile,
    (Follows("pods", _of_pod), *(Follows(resource, _of_owner) for resource in _SCALES.values())),
)
