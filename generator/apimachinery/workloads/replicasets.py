"""ReplicaSets and ReplicationControllers: so many pods of a template."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json

from .conditions import with_condition, without
from .interface import ClusterView, Workload, write_status
from .moments import text_of
from .owners import claim, controller_of, is_controlled_by, is_going, labels_of, owner_or_selecting, selector
from .pods import first_to_go, has_ended, is_active, is_available, is_ready, next_available, pod_of

BURST = 500
"""How many pods are made or deleted at most in one look."""


async def reconcile(cluster: ClusterView, owner: Json) -> float | None:
    """Makes or deletes pods, and says how many there are. Raises ApiError."""
    resource = "replicasets.apps" if owner["kind"] == "ReplicaSet" else "replicationcontrollers"
    spec, metadata = owner["spec"], owner["metadata"]
    selects = selector(owner)
    present = cluster.objects("pods", metadata["namespace"])
    # Pods that are ending count no more, but are shown in the status.
    ending = [pod for pod in present if is_going(pod) and not has_ended(pod) and is_controlled_by(pod, owner)]
    pods = await claim(cluster, "pods", owner, [pod for pod in present if is_active(pod)], selects)
    failure: ApiError | None = None
    wanted = spec.get("replicas", 1)
    if not is_going(owner) and len(pods) != wanted:
        pods, failure = await _scale(cluster, resource, owner, pods, wanted)
    status = _status(cluster, owner, pods, ending, failure, wanted)
    await write_status(cluster, resource, owner, status)
    # After the status, which says why.
    if failure is not None:
        raise failure
    least = spec.get("minReadySeconds") or 0
    return next_available(pods, least, cluster.now()) if least else None


async def _scale(
    cluster: ClusterView, resource: str, owner: Json, pods: list[Json], wanted: int
) -> tuple[list[Json], ApiError | None]:
    """The pods after some were made or deleted, and what kept more from being made."""
    if len(pods) < wanted:
        made, failure = await create_pods(
            cluster, [pod_of(owner, owner["spec"].get("template") or {})] * (wanted - len(pods))
        )
        return [*pods, *made], failure
    related = _related(cluster, resource, owner)
    # At most BURST in one look, as in kube-controller-manager.
    leaving = first_to_go(pods, related, cluster.now())[: min(len(pods) - wanted, BURST)]
    await asyncio.gather(*(cluster.delete("pods", pod) for pod in leaving))
    gone = {pod["metadata"]["uid"] for pod in leaving}
    return [pod for pod in pods if pod["metadata"]["uid"] not in gone], None


async def create_pods(cluster: ClusterView, pods: Sequence[Json]) -> tuple[list[Json], ApiError | None]:
    """Makes pods: one, then twice as many each time while all go well, so that what refuses one is not asked for all
    of them. Gives those that were made, and the refusal."""
    made: list[Json] = []
    pods, size = pods[:BURST], 1
    while len(made) < len(pods):
        batch = pods[len(made) : len(made) + size]
        answers = await asyncio.gather(
            *(cluster.create("pods", pod) for pod in batch), return_exceptions=True
        )
        made += [answer for answer in answers if isinstance(answer, dict)]
        for answer in answers:
            if isinstance(answer, ApiError):
                return made, answer
            if isinstance(answer, BaseException):
                raise answer
        # Slow start: a refusal costs as many requests as were made well before it.
        size *= 2
    return made, None


def _related(cluster: ClusterView, resource: str, owner: Json) -> list[Json]:
    """The pods of all sets with the same controller: those of a Deployment spread together."""
    namespace, reference = owner["metadata"]["namespace"], controller_of(owner)
    uids = {owner["metadata"]["uid"]}
    if reference is not None:
        uids |= {
            each["metadata"]["uid"]
            for each in cluster.objects(resource, namespace)
            if (controller_of(each) or {}).get("uid") == reference["uid"]
        }
    pods = cluster.objects("pods", namespace)
    return [pod for pod in pods if (controller_of(pod) or {}).get("uid") in uids]


def _status(
    cluster: ClusterView,
    owner: Json,
    pods: Sequence[Json],
    ending: Sequence[Json],
    failure: ApiError | None,
    wanted: int,
) -> Json:
    spec, old = owner["spec"], owner.get("status") or {}
    least = spec.get("minReadySeconds") or 0
    wears = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    status: Json = {
        "replicas": len(pods),
        "fullyLabeledReplicas": _count(wears.items() <= labels_of(pod).items() for pod in pods),
        "readyReplicas": _count(is_ready(pod) for pod in pods),
        "availableReplicas": _count(is_available(pod, least, cluster.now()) for pod in pods),
        "observedGeneration": owner["metadata"].get("generation", 0),
        "conditions": old.get("conditions") or [],
    }
    if owner["kind"] == "ReplicaSet":
        # ReplicationControllers have no such field.
        status["terminatingReplicas"] = len(ending)
    if failure is None:
        status["conditions"] = without(status["conditions"], "ReplicaFailure")
    else:
        made: Json = {
            "type": "ReplicaFailure",
            "status": "True",
            "lastTransitionTime": text_of(cluster.now()),
        }
        made |= {
            "reason": "FailedCreate" if len(pods) < wanted else "FailedDelete",
            "message": failure.message,
        }
        status["conditions"] = with_condition(status["conditions"], made)
    always = ("replicas", "observedGeneration", "terminatingReplicas")
    return {key: value for key, value in status.items() if value or key in always}


def _count(answers: Iterable[bool]) -> int:
    return sum(answers)


REPLICA_SETS = Workload(
    "replicasets.apps", reconcile, (owner_or_selecting("replicasets.apps", "ReplicaSet", "pods"),)
)
REPLICATION_CONTROLLERS = Workload(
    "replicationcontrollers",
    reconcile,
    (owner_or_selecting("replicationcontrollers", "ReplicationController", "pods"),),
)
