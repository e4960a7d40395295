"""Conditions of a status: ``meta.SetStatusCondition`` and ``meta.FindStatusCondition``, for any class of conditions.

A condition's time is when its status changed last, so it stays while the status does, whatever else is written: else
every look would be a change, and every change another look.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from apimachinery.controller.kinds import meta_of
from apimachinery.typed.object import Object, Part

C = TypeVar("C", bound=Part)


def find_condition(conditions: Sequence[C] | None, condition_type: str) -> C | None:
    """The condition of a type, or None."""
    found: Any
    for found in conditions or ():
        if found.type == condition_type:
            return found  # type: ignore[no-any-return]
    return None


def has_condition(conditions: Sequence[Part] | None, condition_type: str, status: str = "True") -> bool:
    """Whether there is a condition of that type and status."""
    found: Any = find_condition(conditions, condition_type)
    return found is not None and found.status == status


def set_condition(conditions: Sequence[C] | None, condition: C, *, of: Object | None = None) -> list[C]:
    """The conditions with ``condition`` in place of the one of its type, or after the others; nothing is changed in
    place.

    ``last_transition_time`` is that of the old one while the status is the same; else the given one, or now.
    ``observed_generation`` is that of the object ``of``, where none is given.
    """
    made: Any = copy.copy(condition)
    old: Any = find_condition(conditions, made.type)
    if old is not None and old.status == made.status and old.last_transition_time is not None:
        made.last_transition_time = old.last_transition_time
    elif made.last_transition_time is None:
        made.last_transition_time = datetime.now(UTC).replace(microsecond=0)
    if of is not None and made.observed_generation is None:
        made.observed_generation = meta_of(of).generation
    if old is None:
        return [*(conditions or ()), made]
    return [made if each is old else each for each in conditions or ()]
