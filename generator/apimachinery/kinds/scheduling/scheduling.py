"""Checks of priority classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json, lookup
from apimachinery.meta.field_errors import forbidden

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def priority_class(value: Json, path: str) -> Errors:
    """Names that begin with ``system-`` and the numbers above a billion are the system's own."""
    del path
    name, number = lookup(value, "metadata", "name") or "", value.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != number:
            yield forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class"
                if name not in SYSTEM_PRIORITIES
                else "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}",
            )
    elif number > HIGHEST_USER_PRIORITY:
        yield forbidden(
            "value",
            f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}",
        )


def preemption(value: Any, path: str, values: Sequence[str]) -> Errors:
    """Whether pods of a class make others go: said, where it is said."""
    if value is not None:
        yield from checks.must_be_one_of(value, path, values)
