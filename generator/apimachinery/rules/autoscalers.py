"""Checks of autoscalers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, numbered, struct

Errors = Iterator[FieldError]

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_DAY = 3600


def replicas_in_order(value: Any, path: str) -> Errors:
    """There are not less replicas at most than at least."""
    if not isinstance(value, dict):
        return
    least, most = value.get("minReplicas"), value.get("maxReplicas")
    if isinstance(least, int) and isinstance(most, int) and most < least:
        yield invalid_value(f"{path}.maxReplicas", most, "must be greater than or equal to `minReplicas`")


def metrics(value: Any, path: str) -> Errors:
    """Each metric has the source its type names, and that source a target."""
    for index, metric in numbered({"": value}, ""):
        place = f"{path}[{index}]"
        kind = metric.get("type") or ""
        if not kind:
            yield required_error(f"{place}.type", "must specify a metric source type")
            continue
        if kind not in _SOURCES:
            yield not_supported(f"{place}.type", kind, tuple(_SOURCES))
            continue
        for other, field in _SOURCES.items():
            source = struct(metric, field)
            if other == kind and source is None:
                yield required_error(
                    f"{place}.{field}", "must populate information for the given metric source"
                )
            elif other == kind and source is not None:
                yield from _source(kind, source, f"{place}.{field}")
            elif source is not None:
                yield forbidden(f"{place}.{field}", "must populate the given metric source only")


def _source(kind: str, source: Json, path: str) -> Errors:
    if kind in ("Resource", "ContainerResource"):
        if not source.get("name"):
            yield required_error(f"{path}.name", "must specify a resource name")
        if kind == "ContainerResource" and not source.get("container"):
            yield required_error(f"{path}.container", "must specify a container")
    elif not (struct(source, "metric") or {}).get("name"):
        yield required_error(f"{path}.metric.name", "must specify a metric name")
    target = struct(source, "target") or {}
    place = f"{path}.target"
    if not target.get("type"):
        yield required_error(f"{place}.type", "must specify a metric target type")
    elif target["type"] not in ("Utilization", "Value", "AverageValue"):
        yield invalid_value(
            f"{place}.type", target["type"], "must be either Utilization, Value, or AverageValue"
        )
    yield from checks.more_than(target.get("averageUtilization"), f"{place}.averageUtilization")
    for key in ("value", "averageValue"):
        if target.get(key) is not None:
            yield from _positive(target[key], f"{place}.{key}")
    if not any(target.get(key) is not None for key in ("averageUtilization", "value", "averageValue")):
        text = {
            "Pods": ("averageValue", "must specify a positive target averageValue"),
            "Object": ("averageValue", "must set either a target value or averageValue"),
            "External": ("averageValue", "must set either a target value for metric or a per-pod target"),
        }.get(kind, ("averageUtilization", "must set either a target raw value or a target utilization"))
        yield required_error(f"{place}.{text[0]}", text[1])


def _positive(value: Any, path: str) -> Errors:
    for fault in checks.quantity_above_zero(value, path):
        yield invalid_value(path, fault.bad_value, "must be positive")


def scaling_rules(value: Any, path: str) -> Errors:
    """How fast an autoscaler moves."""
    if not isinstance(value, dict):
        return
    window = value.get("stabilizationWindowSeconds")
    if isinstance(window, int):
        yield from checks.minimum(window, f"{path}.stabilizationWindowSeconds")
        if window > _DAY:
            yield invalid_value(
                f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {_DAY}"
            )
    choice = value.get("selectPolicy")
    if choice is not None and choice not in ("Max", "Min", "Disabled"):
        yield not_supported(f"{path}.selectPolicy", choice, ("Disabled", "Max", "Min"))
    if not value.get("policies"):
        yield required_error(f"{path}.policies", "must specify at least one Policy")
    for index, policy in numbered(value, "policies"):
        place = f"{path}.policies[{index}]"
        if policy.get("type") not in ("Pods", "Percent"):
            yield not_supported(f"{place}.type", policy.get("type") or "", ("Percent", "Pods"))
        yield from checks.more_than(policy.get("value", 0), f"{place}.value")
        seconds = policy.get("periodSeconds", 0)
        yield from checks.more_than(seconds, f"{place}.periodSeconds")
        if isinstance(seconds, int) and seconds > 1800:
            yield invalid_value(f"{place}.periodSeconds", seconds, "must be less than or equal to 1800")
