"""Taints of nodes, and who tolerates them."""

from __future__ import annotations

from collections.abc import Collection

from apimachinery.meta.json import Json

NO_SCHEDULE, NO_EXECUTE, PREFER = "NoSchedule", "NoExecute", "PreferNoSchedule"


def tolerates(toleration: Json, taint: Json) -> bool:
    """Whether one toleration is for a taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(pod: Json, node: Json, effects: Collection[str] = (NO_SCHEDULE, NO_EXECUTE)) -> list[Json]:
    """The taints of a node, of some effects, that a pod does not tolerate."""
    tolerations = pod["spec"].get("tolerations") or ()
    return [
        taint
        for taint in taints(node)
        if taint.get("effect") in effects and not any(tolerates(each, taint) for each in tolerations)
    ]


def taints(node: Json) -> list[Json]:
    """The taints of a node. One that is cordoned has one, also before anybody writes it down."""
    spec = node.get("spec") or {}
    given: list[Json] = list(spec.get("taints") or ())
    if spec.get("unschedulable") and all(each.get("key") != CORDONED["key"] for each in given):
        given.append(CORDONED)
    return given


CORDONED: Json = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}
