"""What controllers report of the pods they run: counts that are not negative and do not contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apimachinery.kinds import checks
from apimachinery.kinds.fields import Json, lookup, struct
from apimachinery.meta.field_errors import FieldError, invalid_value

Errors = Iterator[FieldError]

_DAEMONS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def deployment(value: Json, path: str, old: Json) -> Errors:
    """The status of a deployment."""
    del path
    counted = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
    status = struct(value, "status") or {}
    yield from _not_negative(
        status, (*counted, "terminatingReplicas", "observedGeneration", "collisionCount")
    )
    yield from _within(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "readyReplicas")
    yield from _collisions(status, old)


def replica_set(value: Json, path: str, old: Json) -> Errors:
    """The status of a replica set, and of a replication controller."""
    del path, old
    status = struct(value, "status") or {}
    counted = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    yield from _not_negative(status, ("replicas", *counted, "terminatingReplicas", "observedGeneration"))
    yield from _within(status, counted, "readyReplicas")


def stateful_set(value: Json, path: str, old: Json) -> Errors:
    """The status of a stateful set."""
    del path
    counted = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    status = struct(value, "status") or {}
    yield from _not_negative(status, ("replicas", *counted, "observedGeneration", "collisionCount"))
    yield from _within(status, counted, "status.readyReplicas")
    yield from _collisions(status, old)


def daemon_set(value: Json, path: str, old: Json) -> Errors:
    """The status of a daemon set."""
    del path
    status = struct(value, "status") or {}
    yield from _not_negative(status, _DAEMONS)
    yield from _collisions(status, old)


def _not_negative(status: Json, keys: Sequence[str]) -> Errors:
    for key in keys:
        yield from checks.minimum(status.get(key), f"status.{key}")


def _within(status: Json, keys: Sequence[str], ready: str) -> Errors:
    """No count is above all replicas, and no more are available than ``ready``; one that is missing is none."""
    replicas = status.get("replicas") or 0
    for key in keys:
        if (status.get(key) or 0) > replicas:
            detail = "cannot be greater than status.replicas"
            yield invalid_value(f"status.{key}", status.get(key) or 0, detail)
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        yield invalid_value("status.availableReplicas", available, f"cannot be greater than {ready}")


def _collisions(status: Json, old: Json) -> Errors:
    before, now = lookup(old, "status", "collisionCount"), status.get("collisionCount")
    if isinstance(before, int) and (now or 0) < before:
        yield invalid_value("status.collisionCount", now or 0, "cannot be decremented")
