"""Policies of jobs: which failures count, and which indexes make a success."""

from __future__ import annotations

import re
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    struct,
)
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    invalid_value,
    not_supported,
    too_long,
    too_many,
)
from apimachinery.meta.field_errors import required as required_error

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")

_INDEX = re.compile(r"[+-]?[0-9]+")


def _quoted(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(chr(34) + each + chr(34) for each in values)}]"


def _one_of(value: Any, path: str, allowed: tuple[str, ...]) -> Errors:
    if not value:
        yield required_error(path, _quoted(allowed))
    elif value not in allowed:
        yield not_supported(path, value, allowed)


def failure_policy(policy: Any, path: str, spec: Json) -> Errors:
    """Which failures of pods count, by exit codes or conditions."""
    if not isinstance(policy, dict):
        return
    path, rules = f"{path}.rules", list(items(policy, "rules"))
    if len(rules) > 20:
        yield too_many(path, len(rules), 20)
    pod = struct(spec, "template", "spec") or {}
    containers = {each.get("name") for kind in ("containers", "initContainers") for each in items(pod, kind)}
    for index, rule in enumerate(rules):
        place, action = f"{path}[{index}]", rule.get("action")
        if action == "FailIndex":
            if spec.get("backoffLimitPerIndex") is None:
                detail = "requires the backoffLimitPerIndex to be set"
                yield invalid_value(f"{place}.action", action, detail)
        else:
            yield from _one_of(action, f"{place}.action", _ACTIONS)
        codes, conditions = struct(rule, "onExitCodes"), list(items(rule, "onPodConditions"))
        if codes is not None:
            yield from _exit_codes(codes, f"{place}.onExitCodes", containers)
        if len(conditions) > 20:
            yield too_many(f"{place}.onPodConditions", len(conditions), 20)
        for number, pattern in enumerate(conditions):
            at = f"{place}.onPodConditions[{number}]"
            yield from checks.each_fault(pattern.get("type") or "", f"{at}.type", "qualified-name")
            yield from _one_of(pattern.get("status"), f"{at}.status", ("False", "True", "Unknown"))
        if codes is not None and conditions:
            detail = "specifying both OnExitCodes and OnPodConditions is not supported"
            yield FieldError(Reason.INVALID, place, detail)
        if codes is None and not conditions:
            detail = "specifying one of OnExitCodes and OnPodConditions is required"
            yield FieldError(Reason.INVALID, place, detail)


def _exit_codes(codes: Json, path: str, containers: set[Any]) -> Errors:
    operator, values, name = codes.get("operator"), codes.get("values") or [], codes.get("containerName")
    yield from _one_of(operator, f"{path}.operator", ("In", "NotIn"))
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield invalid_value(f"{path}.containerName", name, detail)
    if not values:
        yield invalid_value(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > 255:
        yield too_many(f"{path}.values", len(values), 255)
    for index, code in enumerate(values):
        if operator == "In" and code == 0:
            yield invalid_value(f"{path}.values[{index}]", code, "must not be 0 for the In operator")
        if code in values[:index]:
            yield duplicate(f"{path}.values[{index}]", code)
    if values != sorted(values):
        yield invalid_value(f"{path}.values", values, "must be ordered")


def success_policy(policy: Any, path: str, wanted: int | None) -> Errors:
    """Which indexes, or how many of them, make a job succeed."""
    if not isinstance(policy, dict):
        return
    path, rules, completions = f"{path}.rules", list(items(policy, "rules")), wanted or 0
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield required_error(path, detail)
    if len(rules) > 20:
        yield too_many(path, len(rules), 20)
    for index, rule in enumerate(rules):
        place, count, indexes = f"{path}[{index}]", rule.get("succeededCount"), rule.get("succeededIndexes")
        if count is None and indexes is None:
            detail = "at least one of succeededCount or succeededIndexes must be specified"
            yield required_error(place, detail)
        total = 0
        if indexes is not None:
            if len(indexes) > 64 * 1024:
                yield too_long(f"{place}.succeededIndexes", 64 * 1024)
            try:
                total = count_indexes(indexes, completions)
            except ValueError as fault:
                detail = f"error parsing succeededIndexes: {fault}"
                yield invalid_value(f"{place}.succeededIndexes", indexes, detail)
        if count is None:
            continue
        at = f"{place}.succeededCount"
        yield from checks.minimum(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            yield invalid_value(at, count, detail)
        if indexes is not None and count > total:
            detail = (
                f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes "
                "field)"
            )
            yield invalid_value(at, count, detail)


def interval(text: str, completions: int) -> tuple[int, int]:
    """The first and last index of ``3`` or ``3-7``. Raises ValueError in Kubernetes' words."""
    parts = text.split("-")
    if len(parts) > 2:
        raise ValueError(
            f'the fragment "{text}" violates the requirement that an index interval can have at most two parts '
            "separated by '-'"
        )
    bounds: list[int] = []
    for part in parts:
        if not _INDEX.fullmatch(part) or not -(2**63) <= int(part[:32]) < 2**63:
            raise ValueError(f'cannot convert string to integer for index: "{part}"')
        if int(part) >= completions:
            raise ValueError(f'too large index: "{part}"')
        bounds.append(int(part))
    if len(bounds) == 2 and bounds[0] >= bounds[1]:
        raise ValueError(f"non-increasing order, previous: {bounds[0]}, current: {bounds[1]}")
    return bounds[0], bounds[-1]


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text such as ``0-3,7`` names. Raises ``ValueError`` in Kubernetes' words."""
    total, last = 0, None
    for part in text.split(",") if text else ():
        first, end = interval(part, completions)
        if last is not None and last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total
