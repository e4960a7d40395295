"""Conditions of workloads: a list with one entry for each type."""

from __future__ import annotations

from collections.abc import Iterable

from apimachinery.meta.json import Json


def find(conditions: Iterable[Json] | None, kind: str) -> Json | None:
    """The condition of a type."""
    return next((each for each in conditions or () if each["type"] == kind), None)


def holds(conditions: Iterable[Json] | None, kind: str) -> bool:
    """Whether a condition is True."""
    found = find(conditions, kind)
    return found is not None and found["status"] == "True"


def without(conditions: Iterable[Json] | None, kind: str) -> list[Json]:
    """The conditions of other types."""
    return [each for each in conditions or () if each["type"] != kind]


def with_condition(conditions: Iterable[Json] | None, made: Json) -> list[Json]:
    """The conditions with a new one, which goes last. One of the same status and reason stays as it is; of the same
    status keeps its time."""
    old = find(conditions, made["type"])
    if old is not None and old["status"] == made["status"]:
        if old.get("reason") == made.get("reason"):
            return list(conditions or ())
        made = {**made, "lastTransitionTime": old.get("lastTransitionTime")}
    return [*without(conditions, made["type"]), made]
