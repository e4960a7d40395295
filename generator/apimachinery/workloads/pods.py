"""Pods as controllers look at them: whether they are ready, made of a template, and which of several go first."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from copy import deepcopy

from apimachinery.meta.json import Json

from .conditions import find, holds
from .moments import seconds_of
from .owners import is_going, reference_to

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def phase(pod: Json) -> str:
    """``Pending`` where it has none yet."""
    return (pod.get("status") or {}).get("phase") or "Pending"


def has_ended(pod: Json) -> bool:
    """Whether its containers ended for good."""
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Json) -> bool:
    """Whether it runs, or is going to."""
    return not has_ended(pod) and not is_going(pod)


def is_ready(pod: Json) -> bool:
    """Whether it says that it is ready."""
    return holds((pod.get("status") or {}).get("conditions"), "Ready")


def ready_since(pod: Json) -> float:
    """When it became ready; 0 where it is not."""
    condition = find((pod.get("status") or {}).get("conditions"), "Ready")
    if condition is None or condition["status"] != "True":
        return 0.0
    return seconds_of(condition.get("lastTransitionTime"))


def is_available(pod: Json, least_seconds: int, now: float) -> bool:
    """Whether it has been ready for so long."""
    if not is_ready(pod):
        return False
    since = ready_since(pod)
    return not least_seconds or (since > 0 and since + least_seconds <= now)


def next_available(pods: Iterable[Json], least_seconds: int, now: float) -> float | None:
    """In how many seconds the next of them is available."""
    waits = [ready_since(pod) + least_seconds - now for pod in pods if is_ready(pod)]
    return min((wait for wait in waits if wait > 0), default=None)


def template_hash(template: Json, collisions: int = 0) -> str:
    """A short name of a template, in letters that names may have. It is not Kubernetes' own: that is made of how Go
    prints the template."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":")) + (
        f"/{collisions}" if collisions else ""
    )
    number = int.from_bytes(hashlib.blake2s(text.encode(), digest_size=8).digest())
    letters = []
    for _ in range(10):
        number, letter = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "".join(letters)


def pod_of(owner: Json, template: Json) -> Json:
    """A pod of an owner's template, which gets a name of its own."""
    meta = template.get("metadata") or {}
    name = owner["metadata"]["name"]
    metadata: Json = {
        "generateName": f"{name}-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [reference_to(owner)],
    }
    for key in ("labels", "annotations", "finalizers"):
        if meta.get(key):
            metadata[key] = deepcopy(meta[key])
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": deepcopy(template.get("spec") or {}),
    }


_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def first_to_go(pods: Sequence[Json], related: Sequence[Json], now: float) -> list[Json]:
    """Pods in the order in which they are deleted: those that are missed least first. ``related`` are all pods of the
    same purpose; of a node with more of them one goes sooner."""
    crowds = Counter((pod["spec"].get("nodeName") or "") for pod in related if is_active(pod))

    def rank(pod: Json) -> tuple[object, ...]:
        status = pod.get("status") or {}
        node = pod["spec"].get("nodeName") or ""
        ready = is_ready(pod)
        restarts = max(
            (each.get("restartCount", 0) for each in status.get("containerStatuses") or ()), default=0
        )
        return (
            bool(node),
            _PHASES.get(phase(pod), 2),
            ready,
            _cost(pod),
            -crowds[node],
            _age_class(now - ready_since(pod)) if ready else 0,
            -restarts,
            _age_class(now - seconds_of(pod["metadata"].get("creationTimestamp"))),
            pod["metadata"]["uid"],
        )

    return sorted(pods, key=rank)


def _age_class(seconds: float) -> int:
    """Ages that differ by less than a factor of ten or so count as the same: whoever is older is left to chance."""
    return int(math.log10(seconds)) if seconds >= 1 else 0


def _cost(pod: Json) -> int:
    try:
        return int((pod["metadata"].get("annotations") or {}).get(DELETION_COST, 0))
    except ValueError:
        return 0
