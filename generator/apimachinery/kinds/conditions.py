"""Conditions of a status: their types, statuses and reasons."""

from __future__ import annotations

import re
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json, numbered, struct
from apimachinery.meta.field_errors import duplicate, invalid_value, not_supported, too_long
from apimachinery.meta.field_errors import required as required_error

_STATUSES = ("False", "True", "Unknown")
# Python's ``re`` is safe here: the pattern is ours and linear.
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_NO_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON.pattern}')"
)


def conditions(holder: Json, path: str) -> Errors:
    """The conditions of a status, one of each type. ``path`` is that of the list."""
    seen = set()
    for index, condition in numbered(holder, "conditions"):
        place, kind = f"{path}[{index}]", condition.get("type") or ""
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.add(kind)
        yield from checks.each_fault(kind, f"{place}.type", "qualified-name")
        if condition.get("status") not in _STATUSES:
            yield not_supported(f"{place}.status", condition.get("status") or "", _STATUSES)
        generation = condition.get("observedGeneration") or 0
        if generation < 0:
            yield invalid_value(
                f"{place}.observedGeneration", generation, "must be greater than or equal to zero"
            )
        if not condition.get("lastTransitionTime"):
            yield required_error(f"{place}.lastTransitionTime")
        yield from _reason(condition.get("reason") or "", f"{place}.reason")
        if len((condition.get("message") or "").encode()) > 32768:
            yield too_long(f"{place}.message", 32768)


def disruptions(value: Any, path: str, old: Any) -> Errors:
    """The status of a disruption budget: conditions, and counts of pods."""
    del old
    status = value if isinstance(value, dict) else {}
    yield from conditions(status, f"{path}.conditions")
    for key in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        yield from checks.minimum(status.get(key), f"{path}.{key}")


def policy_status(value: Any, path: str, old: Any) -> Errors:
    """The status of an admission policy: conditions, and what checking types warned of."""
    del old
    status = value if isinstance(value, dict) else {}
    yield from conditions(status, f"{path}.conditions")
    for index, warning in numbered(struct(status, "typeChecking") or {}, "expressionWarnings"):
        place = f"{path}.typeChecking.expressionWarnings[{index}]"
        yield from checks.required(warning.get("warning"), f"{place}.warning")
        yield from checks.required(warning.get("fieldRef"), f"{place}.fieldRef")


def _reason(reason: str, path: str) -> Errors:
    if not reason:
        yield required_error(path)
        return
    if not _REASON.fullmatch(reason):
        yield invalid_value(path, reason, _NO_REASON)
    if len(reason) > 1024:
        yield too_long(path, 1024)
