"""The cells of autoscalers: what each metric is and what it should be."""

from __future__ import annotations

from apimachinery.kinds.cell import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    at,
    get,
    text_at,
)
from apimachinery.meta.json import Json

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_SHOWN = 2


def _reference(autoscaler: Json) -> str:
    target = get(autoscaler, "spec.scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _targets(autoscaler: Json) -> str:
    spec, status = autoscaler.get("spec") or {}, autoscaler.get("status") or {}
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    share = spec.get("targetCPUUtilizationPercentage")
    if not metrics and share is not None:
        found = status.get("currentCPUUtilizationPercentage")
        return f"cpu: {UNKNOWN if found is None else f'{found}%'}/{share}%"
    shown = [
        _metric(metric, current[index] if index < len(current) else {})
        for index, metric in enumerate(metrics[:_SHOWN])
    ]
    more = f" + {len(metrics) - _SHOWN} more..." if len(metrics) > _SHOWN else ""
    return ", ".join(shown) + more if shown else NONE


def _metric(metric: Json, status: Json) -> str:
    """One metric: what is, of what should be."""
    kind = str(metric.get("type"))
    if kind not in _SOURCES:
        return "<unknown type>"
    source = metric.get(_SOURCES[kind]) or {}
    target = source.get("target") or {}
    found = get(status, f"{_SOURCES[kind]}.current") or {}
    average = target.get("averageValue")
    if kind in ("Resource", "ContainerResource"):
        name = source.get("name", "")
        if average is not None:
            return f"{name}: {found.get('averageValue', UNKNOWN)}/{average}"
        share, wanted = found.get("averageUtilization"), target.get("averageUtilization")
        now = UNKNOWN if share is None else f"{share}%"
        return f"{name}: {now}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if kind == "Pods":
        return f"{found.get('averageValue', UNKNOWN)}/{average}"
    if average is not None:
        return f"{found.get('averageValue', UNKNOWN)}/{average} (avg)"
    return f"{found.get('value', UNKNOWN)}/{target.get('value', '')}"


AUTOSCALER: dict[str, Cell] = {
    "Reference": _reference,
    "Targets": _targets,
    "MinPods": text_at("spec.minReplicas", UNSET),
    "MaxPods": at("spec.maxReplicas", 0),
    "Replicas": at("status.currentReplicas", 0),
}
