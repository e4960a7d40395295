"""The status of a Deployment: numbers, and the conditions Available, Progressing and ReplicaFailure. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from apimachinery.meta.json import Json

from .conditions import find, with_condition, without
from .moments import seconds_of, text_of
from .rollouts import counted, limits, replicas, total

NUMBERS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")


def condition(kind: str, value: str, reason: str, message: str, now: float) -> Json:
    """A condition as of now."""
    moment = text_of(now)
    return {
        "type": kind,
        "status": value,
        "lastUpdateTime": moment,
        "lastTransitionTime": moment,
        "reason": reason,
        "message": message,
    }


def counted_status(deployment: Json, sets: Sequence[Json], new: Json | None, now: float) -> Json:
    """The numbers, and whether enough pods are available."""
    old = deployment.get("status") or {}
    available = counted(sets, "availableReplicas")
    status: Json = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": counted(sets, "replicas"),
        "updatedReplicas": 0 if new is None else counted([new], "replicas"),
        "readyReplicas": counted(sets, "readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(total(sets) - available, 0),
    }
    status = {key: value for key, value in status.items() if value or key not in NUMBERS}
    if all("terminatingReplicas" in (each.get("status") or {}) for each in sets):
        status["terminatingReplicas"] = counted(sets, "terminatingReplicas")
    if old.get("collisionCount") is not None:
        status["collisionCount"] = old["collisionCount"]
    if available >= replicas(deployment) - limits(deployment)[1]:
        made = condition(
            "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now
        )
    else:
        made = condition(
            "Available",
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
            now,
        )
    status["conditions"] = with_condition(old.get("conditions"), made)
    return status


def observed(obj: Json, status: Json) -> bool:
    """Whether a status is about the spec as it is."""
    return int(status.get("observedGeneration", 0)) >= int(obj["metadata"].get("generation", 0))


def is_complete(deployment: Json, status: Json) -> bool:
    """Whether all pods are new and available."""
    numbers = {int(status.get(key, 0)) for key in ("updatedReplicas", "replicas", "availableReplicas")}
    return numbers == {replicas(deployment)} and observed(deployment, status)


def _moves_on(deployment: Json, status: Json) -> bool:
    """Whether a status says more than the last one did."""
    old = deployment.get("status") or {}

    def grew(key: str) -> bool:
        return bool(status.get(key, 0) > old.get(key, 0))

    def former(numbers: Json) -> int:
        return int(numbers.get("replicas", 0) - numbers.get("updatedReplicas", 0))

    return (
        grew("updatedReplicas")
        or former(status) < former(old)
        or grew("readyReplicas")
        or grew("availableReplicas")
    )


def _timed_out(deployment: Json, status: Json, now: float) -> bool:
    """Whether nothing has moved on for as long as the deadline says."""
    present = find(status["conditions"], "Progressing")
    if present is None or present.get("reason") == "NewReplicaSetAvailable":
        return False
    if present.get("reason") == "ProgressDeadlineExceeded":
        return True
    deadline: int = deployment["spec"]["progressDeadlineSeconds"]
    return seconds_of(present.get("lastUpdateTime")) + deadline <= now


def rollout_status(deployment: Json, sets: Sequence[Json], new: Json | None, now: float) -> Json:
    """The status in a rollout: the numbers, and how it goes."""
    status = counted_status(deployment, sets, new, now)
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    if deadline is None:
        status["conditions"] = without(status["conditions"], "Progressing")
    else:
        _judge(deployment, status, new, now)
    failures = [find((each.get("status") or {}).get("conditions"), "ReplicaFailure") for each in sets]
    failed = next((each for each in failures if each is not None and each["status"] == "True"), None)
    if failed is None:
        status["conditions"] = without(status["conditions"], "ReplicaFailure")
    else:
        made = condition("ReplicaFailure", "True", failed.get("reason", ""), failed.get("message", ""), now)
        made["lastTransitionTime"] = failed.get("lastTransitionTime")
        status["conditions"] = with_condition(status["conditions"], made)
    return status


def _judge(deployment: Json, status: Json, new: Json | None, now: float) -> None:
    """Sets the condition Progressing."""
    present = find(status["conditions"], "Progressing")
    finished = (
        status.get("replicas", 0) == status.get("updatedReplicas", 0)
        and present is not None
        and present.get("reason") == "NewReplicaSetAvailable"
    )
    if finished:
        return
    what = (
        f'Deployment "{deployment["metadata"]["name"]}"'
        if new is None
        else f'ReplicaSet "{new["metadata"]["name"]}"'
    )
    if is_complete(deployment, status):
        made = condition(
            "Progressing", "True", "NewReplicaSetAvailable", f"{what} has successfully progressed.", now
        )
        status["conditions"] = with_condition(status["conditions"], made)
    elif _moves_on(deployment, status):
        made = condition("Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.", now)
        if present is not None and present["status"] == "True":
            made["lastTransitionTime"] = present["lastTransitionTime"]
        # Its time is when something moved on last, also where the reason is the same.
        status["conditions"] = [*without(status["conditions"], "Progressing"), made]
    elif _timed_out(deployment, status, now):
        made = condition(
            "Progressing", "False", "ProgressDeadlineExceeded", f"{what} has timed out progressing.", now
        )
        status["conditions"] = with_condition(status["conditions"], made)


def next_deadline(deployment: Json, now: float) -> float | None:
    """In how many seconds a rollout that stands still is late."""
    deadline, status = deployment["spec"].get("progressDeadlineSeconds"), deployment.get("status") or {}
    present = find(status.get("conditions"), "Progressing")
    if deadline is None or present is None:
        return None
    if present.get("reason") in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded"):
        return None
    late = seconds_of(present.get("lastUpdateTime")) + int(deadline)
    return max(late - now, 0.0) + 1.0
