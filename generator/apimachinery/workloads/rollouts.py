"""How many pods each ReplicaSet of a Deployment is to have: surge, unavailability, scaling in proportion. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from apimachinery.meta.json import Json

DESIRED, MOST = "deployment.kubernetes.io/desired-replicas", "deployment.kubernetes.io/max-replicas"


def share(value: int | str | None, total: int, *, up: bool) -> int:
    """A number, or a percentage of a total, rounded up or down."""
    if isinstance(value, str):
        percent = value.removesuffix("%")
        # What no request could store: kube-controller-manager takes it for nothing.
        if percent == value or not percent.isdecimal():
            return 0
        exact = Fraction(int(percent) * total, 100)
        return math.ceil(exact) if up else math.floor(exact)
    return int(value or 0)


def replicas(obj: Json) -> int:
    """How many are wanted."""
    return int(obj["spec"].get("replicas", 1))


def is_rolling(deployment: Json) -> bool:
    """Whether its pods are replaced a few at a time."""
    return (deployment["spec"].get("strategy") or {}).get("type") == "RollingUpdate"


def limits(deployment: Json) -> tuple[int, int]:
    """How many pods more than wanted there may be, and how many fewer. Not both 0: nothing could move."""
    if not is_rolling(deployment):
        return 0, 0
    rolling, total = deployment["spec"]["strategy"].get("rollingUpdate") or {}, replicas(deployment)
    surge = share(rolling.get("maxSurge"), total, up=True)
    unavailable = share(rolling.get("maxUnavailable"), total, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, total)


def total(sets: Sequence[Json]) -> int:
    """How many pods several ReplicaSets are to have."""
    return sum(replicas(each) for each in sets)


def counted(sets: Sequence[Json], key: str) -> int:
    """The sum of a number of their statuses."""
    return sum((each.get("status") or {}).get(key, 0) for each in sets)


def newest_size(deployment: Json, new: Json | None, sets: Sequence[Json]) -> int:
    """The size of the newest ReplicaSet in the next step."""
    wanted, present = replicas(deployment), 0 if new is None else replicas(new)
    if not is_rolling(deployment):
        return wanted
    room = wanted + limits(deployment)[0] - total(sets)
    return present if room <= 0 else present + min(room, wanted - present)


def shrunk(deployment: Json, new: Json, old: Sequence[Json]) -> dict[str, int]:
    """The old ReplicaSets that get smaller in the next step, by uid: first by pods that are not healthy, then by as
    many as are available beyond the least."""
    least = replicas(deployment) - limits(deployment)[1]
    unavailable = replicas(new) - (new.get("status") or {}).get("availableReplicas", 0)
    most = total([*old, new]) - least - unavailable
    sizes = {each["metadata"]["uid"]: replicas(each) for each in old}
    if most <= 0:
        return {}
    ordered = sorted(old, key=age)
    for each in ordered:
        uid = each["metadata"]["uid"]
        available = (each.get("status") or {}).get("availableReplicas", 0)
        less = max(min(most, sizes[uid] - available), 0)
        sizes[uid] -= less
        most -= less
    spare = counted([*old, new], "availableReplicas") - least
    for each in ordered:
        uid = each["metadata"]["uid"]
        less = max(min(spare, sizes[uid]), 0)
        sizes[uid] -= less
        spare -= less
    return {
        each["metadata"]["uid"]: sizes[each["metadata"]["uid"]]
        for each in old
        if sizes[each["metadata"]["uid"]] != replicas(each)
    }


def age(each: Json) -> tuple[str, str]:
    """Orders by creation, then name."""
    return each["metadata"].get("creationTimestamp") or "", each["metadata"]["name"]


def in_proportion(deployment: Json, sets: Sequence[Json]) -> dict[str, int]:
    """The sizes of active ReplicaSets, by uid, after a Deployment was scaled in the middle of a rollout."""
    wanted, surge = replicas(deployment), limits(deployment)[0]
    allowed = wanted + surge if wanted > 0 else 0
    missing = allowed - total(sets)
    ordered = sorted(sets, key=age, reverse=missing > 0)
    ordered.sort(key=lambda each: -replicas(each))
    sizes, added = {}, 0
    for each in ordered:
        part = _part(deployment, each, missing, added, allowed) if missing else 0
        sizes[each["metadata"]["uid"]] = replicas(each) + part
        added += part
    if ordered and missing:
        first = ordered[0]["metadata"]["uid"]
        sizes[first] = max(sizes[first] + missing - added, 0)
    return sizes


def _part(deployment: Json, each: Json, missing: int, added: int, allowed: int) -> int:
    if not replicas(each) or missing == added:
        return 0
    left = missing - added
    if not replicas(deployment):
        fraction = -replicas(each)
    else:
        before = (each["metadata"].get("annotations") or {}).get(MOST, "")
        base = (
            int(before)
            if before.isdigit() and int(before)
            else (deployment.get("status") or {}).get("replicas", 0)
        )
        fraction = math.floor(Fraction(replicas(each) * allowed, base or 1) + Fraction(1, 2)) - replicas(each)
    return min(fraction, left) if missing > 0 else max(fraction, left)
