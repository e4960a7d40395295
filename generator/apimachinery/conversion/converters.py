"""Conversions that rule files name where rules cannot decide; each has a way to the hub and one back.

Autoscalers follow kube-apiserver's own way: what autoscaling/v1 has no field for waits in annotations, in the
form that v1 had for it once, so that old and new clients read the same.
"""

from __future__ import annotations

import json
from typing import Any

from apimachinery.kinds.fields import (
    Json,
    copied,
    created,
    items,
    lookup,
    struct,
)

_PREFIX = "autoscaling.alpha.kubernetes.io/"
METRICS, CURRENT_METRICS = _PREFIX + "metrics", _PREFIX + "current-metrics"
BEHAVIOR, CONDITIONS = _PREFIX + "behavior", _PREFIX + "conditions"

_KINDS = ("Object", "Pods", "Resource", "ContainerResource", "External")
_EXACT_FIELDS = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
    "derivedAttributes",
)


def horizontal_pod_autoscaler_to_hub(obj: Json) -> None:
    """autoscaling/v1 → v2: the CPU target becomes a metric after those that the annotations hold."""
    spec, status = created(obj, "spec"), created(obj, "status")
    if spec is None or status is None:
        return
    metrics = [
        _metric_from_v1(metric) for metric in _annotation(obj, METRICS, list) if isinstance(metric, dict)
    ]
    target = spec.pop("targetCPUUtilizationPercentage", None)
    if target is not None:
        metrics.append(_cpu("target", {"type": "Utilization", "averageUtilization": target}))
    if metrics:
        spec["metrics"] = metrics
    behavior = _annotation(obj, BEHAVIOR, dict)
    if behavior:
        spec["behavior"] = _lowered(behavior)
    used = status.pop("currentCPUUtilizationPercentage", None)
    current = [
        _status_from_v1(item) for item in _annotation(obj, CURRENT_METRICS, list) if isinstance(item, dict)
    ]
    if current:
        status["currentMetrics"] = current
    elif used is not None:
        status["currentMetrics"] = [_cpu("current", {"averageUtilization": used})]
    conditions = _annotation(obj, CONDITIONS, list)
    if conditions:
        status["conditions"] = conditions
    _drop_annotations(obj)


def horizontal_pod_autoscaler_to_spoke(obj: Json) -> None:
    """autoscaling/v2 → v1: one CPU utilization has a field, everything else goes into annotations."""
    spec, status = created(obj, "spec"), created(obj, "status")
    if spec is None or status is None:
        return
    _drop_annotations(obj)
    others = []
    for metric in items({"metrics": spec.pop("metrics", None)}, "metrics"):
        target = lookup(metric, "resource", "target", "averageUtilization")
        if (
            metric.get("type") == "Resource"
            and lookup(metric, "resource", "name") == "cpu"
            and target is not None
        ):
            spec.setdefault("targetCPUUtilizationPercentage", target)
        else:
            others.append(_metric_to_v1(metric))
    current = list(items({"current": status.pop("currentMetrics", None)}, "current"))
    for metric in current:
        used = lookup(metric, "resource", "current", "averageUtilization")
        if (
            metric.get("type") == "Resource"
            and lookup(metric, "resource", "name") == "cpu"
            and used is not None
        ):
            status.setdefault("currentCPUUtilizationPercentage", used)
    behavior, conditions = spec.pop("behavior", None), status.pop("conditions", None)
    _annotate(obj, METRICS, others)
    _annotate(obj, CURRENT_METRICS, [_status_to_v1(metric) for metric in current])
    if isinstance(behavior, dict):
        _annotate(obj, BEHAVIOR, _raised(behavior))
    if isinstance(conditions, list):
        _annotate(obj, CONDITIONS, [_condition(item) for item in conditions if isinstance(item, dict)])


def _cpu(key: str, value: Json) -> Json:
    return {"type": "Resource", "resource": {"name": "cpu", key: value}}


def _field(kind: str) -> str:
    return kind[:1].lower() + kind[1:]


def _said(**fields: Any) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def _metric_from_v1(metric: Json) -> Json:
    kind = metric.get("type")
    source = struct(metric, _field(str(kind))) if kind in _KINDS else None
    if source is None:
        return copied(metric)  # type: ignore[no-any-return]
    new: Json
    if kind in ("Resource", "ContainerResource"):
        new = _said(name=source.get("name"), container=source.get("container"))
        use, value = source.get("targetAverageUtilization"), source.get("targetAverageValue")
        new["target"] = _said(
            type="Utilization" if use is not None else "AverageValue",
            averageUtilization=use,
            averageValue=value,
        )
    else:
        new = {"metric": _said(name=source.get("metricName"), selector=source.get(_selector(str(kind))))}
        average = source.get("averageValue" if kind == "Object" else "targetAverageValue")
        value = source.get("targetValue") if average is None else None
        new["target"] = _said(
            type="Value" if average is None else "AverageValue", value=value, averageValue=average
        )
        if kind == "Object":
            new["describedObject"] = source.get("target")
    return {"type": kind, _field(str(kind)): new}


def _metric_to_v1(metric: Json) -> Json:
    kind = metric.get("type")
    source = struct(metric, _field(str(kind))) if kind in _KINDS else None
    if source is None:
        return _said(type=kind)
    name, selector = lookup(source, "metric", "name"), lookup(source, "metric", "selector")
    value, average = lookup(source, "target", "value"), lookup(source, "target", "averageValue")
    use = lookup(source, "target", "averageUtilization")
    new: Json
    match kind:
        case "Resource":
            new = _said(name=source.get("name"), targetAverageUtilization=use, targetAverageValue=average)
        case "ContainerResource":
            new = _said(name=source.get("name"), targetAverageUtilization=use, targetAverageValue=average)
            new["container"] = source.get("container", "")
        case "Pods":
            new = _said(metricName=name, targetAverageValue=average, selector=selector)
        case "Object":
            new = _said(target=_reference(source.get("describedObject")), metricName=name)
            new |= _said(
                targetValue=value if value is not None else "0", selector=selector, averageValue=average
            )
        case _:
            new = _said(
                metricName=name, metricSelector=selector, targetValue=value, targetAverageValue=average
            )
    return {"type": kind, _field(str(kind)): new}


def _status_from_v1(metric: Json) -> Json:
    kind = metric.get("type")
    source = struct(metric, _field(str(kind))) if kind in _KINDS else None
    if source is None:
        return copied(metric)  # type: ignore[no-any-return]
    new: Json
    if kind in ("Resource", "ContainerResource"):
        new = _said(name=source.get("name"), container=source.get("container"))
        use, value = source.get("currentAverageUtilization"), source.get("currentAverageValue")
        new["current"] = _said(averageUtilization=use, averageValue=value)
    else:
        new = {"metric": _said(name=source.get("metricName"), selector=source.get(_selector(str(kind))))}
        average = source.get("averageValue" if kind == "Object" else "currentAverageValue")
        new["current"] = _said(value=source.get("currentValue"), averageValue=average)
        if kind == "Object":
            new["describedObject"] = source.get("target")
    return {"type": kind, _field(str(kind)): new}


def _status_to_v1(metric: Json) -> Json:
    kind = metric.get("type")
    source = struct(metric, _field(str(kind))) if kind in _KINDS else None
    if source is None:
        return _said(type=kind)
    name, selector = lookup(source, "metric", "name"), lookup(source, "metric", "selector")
    value, average = lookup(source, "current", "value"), lookup(source, "current", "averageValue")
    use = lookup(source, "current", "averageUtilization")
    needed = average if average is not None else "0"  # Go's struct has no pointer to it there
    new: Json
    match kind:
        case "Resource":
            new = _said(name=source.get("name"), currentAverageUtilization=use, currentAverageValue=needed)
        case "ContainerResource":
            new = _said(name=source.get("name"), currentAverageUtilization=use, currentAverageValue=needed)
            new["container"] = source.get("container", "")
        case "Pods":
            new = _said(metricName=name, currentAverageValue=needed, selector=selector)
        case "Object":
            new = _said(target=_reference(source.get("describedObject")), metricName=name)
            new |= _said(
                currentValue=value if value is not None else "0", selector=selector, averageValue=average
            )
        case _:
            new = _said(metricName=name, metricSelector=selector)
            new |= _said(currentValue=value if value is not None else "0", currentAverageValue=average)
    return {"type": kind, _field(str(kind)): new}


def _selector(kind: str) -> str:
    return "metricSelector" if kind == "External" else "selector"


def _reference(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return _said(kind=value.get("kind"), name=value.get("name"), apiVersion=value.get("apiVersion"))


def _condition(value: Json) -> Json:
    new = {"type": value.get("type", ""), "status": value.get("status", "")}
    new["lastTransitionTime"] = value.get("lastTransitionTime")
    return new | _said(reason=value.get("reason"), message=value.get("message"))


def _raised(behavior: Json) -> Json:
    """Scaling rules as Go writes a struct without tags: every field, in upper camel case."""
    new: Json = {}
    for key in ("scaleUp", "scaleDown"):
        rules = struct(behavior, key)
        new[key[0].upper() + key[1:]] = rules and {
            "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
            "SelectPolicy": rules.get("selectPolicy"),
            "Policies": [
                {name[0].upper() + name[1:]: policy.get(name) for name in ("type", "value", "periodSeconds")}
                for policy in items(rules, "policies")
            ]
            if rules.get("policies") is not None
            else None,
            "Tolerance": rules.get("tolerance"),
        }
    return new


def _lowered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lowered(item) for key, item in value.items() if item is not None}
    return [_lowered(item) for item in value] if isinstance(value, list) else value


def _annotation(obj: Json, name: str, kind: type[list[Any]] | type[Json]) -> Any:
    """The JSON in an annotation; empty where it is missing or no ``kind``."""
    text = lookup(obj, "metadata", "annotations", name)
    try:
        value = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, kind) else kind()


def _annotate(obj: Json, name: str, value: Any) -> None:
    if value and (annotations := created(obj, "metadata", "annotations")) is not None:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        for char in "<>&\u2028\u2029":
            text = text.replace(char, f"\\u{ord(char):04x}")
        annotations[name] = text


def _drop_annotations(obj: Json) -> None:
    annotations = struct(obj, "metadata", "annotations")
    if annotations is None:
        return
    for name in (METRICS, CURRENT_METRICS, BEHAVIOR, CONDITIONS):
        annotations.pop(name, None)
    if not annotations:
        del obj["metadata"]["annotations"]


def device_requests_to_hub(obj: Json) -> None:
    """resource.k8s.io/v1beta1 → v1: what a request asks for exactly goes below ``exactly``."""
    for request in _requests(obj):
        exactly = {name: request.pop(name) for name in _EXACT_FIELDS if name in request}
        if exactly.get("deviceClassName") == "" and (len(exactly) == 1 or request.get("firstAvailable")):
            del exactly["deviceClassName"]
        if exactly:
            request["exactly"] = exactly


def device_requests_to_spoke(obj: Json) -> None:
    """resource.k8s.io/v1 → v1beta1: the fields of ``exactly`` are the request's own."""
    for request in _requests(obj):
        exactly = request.pop("exactly", None)
        if isinstance(exactly, dict):
            request.update(exactly)


def _requests(obj: Json) -> list[Json]:
    way = ("spec", "spec", "devices") if obj.get("kind") == "ResourceClaimTemplate" else ("spec", "devices")
    devices = struct(obj, *way)
    return list(items(devices, "requests")) if devices is not None else []


def kill_switch_to_hub(obj: Json) -> None:
    """flags.kubewright.dev/v1beta1 → v1: a flag that is killed is not enabled."""
    spec = struct(obj, "spec")
    if spec is not None and spec.pop("killSwitch", None) is True:
        spec["enabled"] = False


def kill_switch_to_spoke(obj: Json) -> None:
    """v1 → v1beta1: nothing is killed; what is not enabled says so itself."""
    del obj


def autoscaler_targets_to_hub(obj: Json) -> None:
    """autoscaling/v2beta1 → v2: the targets of metrics in one object, ``target``."""
    spec, status = struct(obj, "spec"), struct(obj, "status")
    if spec is not None and isinstance(spec.get("metrics"), list):
        spec["metrics"] = [_metric_from_v1(metric) for metric in items(spec, "metrics")]
    if status is not None and isinstance(status.get("currentMetrics"), list):
        status["currentMetrics"] = [_status_from_v1(metric) for metric in items(status, "currentMetrics")]


def autoscaler_targets_to_spoke(obj: Json) -> None:
    """autoscaling/v2 → v2beta1: a field for each way to state a target."""
    spec, status = struct(obj, "spec"), struct(obj, "status")
    if spec is not None and isinstance(spec.get("metrics"), list):
        spec["metrics"] = [_metric_to_v1(metric) for metric in items(spec, "metrics")]
    if status is not None and isinstance(status.get("currentMetrics"), list):
        status["currentMetrics"] = [_status_to_v1(metric) for metric in items(status, "currentMetrics")]
