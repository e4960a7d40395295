"""What controllers report of the pods they run: counts that contradict neither each other nor earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json
from apimachinery.meta.field_errors import invalid_value


def within_replicas(value: Any, path: str, fields: Sequence[str], ready: str = "readyReplicas") -> Errors:
    """No count is above all replicas, and no more are available than ``ready``; one that is missing is none."""
    status: Json = value or {}
    replicas = status.get("replicas") or 0
    for key in fields:
        if (status.get(key) or 0) > replicas:
            detail = "cannot be greater than status.replicas"
            yield invalid_value(f"{path}.{key}", status.get(key) or 0, detail)
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        yield invalid_value(f"{path}.availableReplicas", available, f"cannot be greater than {ready}")


def not_less(value: Any, path: str, old: Any) -> Errors:
    """A count only grows."""
    if isinstance(old, int) and (value or 0) < old:
        yield invalid_value(path, value or 0, "cannot be decremented")
