"""Checks of autoscalers."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.pod_resources import container_name
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.kinds.gates import enabled
from apimachinery.meta.field_errors import forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_SOURCES = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_OF_RESOURCES = ("Resource", "ContainerResource")
_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_NONE_TO_SCALE_BY = "must specify at least one Object or External metric to support scaling to zero replicas"


def replicas(value: Json, path: str, old: Json | None = None) -> Errors:
    """How many replicas there may be; none at all only for a gate, or where it was so before."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old or {}, "spec") or {}
    least, most = spec.get("minReplicas"), spec.get("maxReplicas") or 0
    lowest = 0 if enabled("HPAScaleToZero") or before.get("minReplicas") == 0 else 1
    yield from checks.minimum(least, "spec.minReplicas", lowest)
    if not most:
        yield required_error("spec.maxReplicas", "must be set and greater than 0")
    else:
        yield from checks.minimum(most, "spec.maxReplicas", 1)
    if least is not None and most < least:
        yield invalid_value("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = struct(spec, "scaleTargetRef") or {}
    was = struct(before, "scaleTargetRef")
    yield from _kind_and_name(target, "spec.scaleTargetRef")
    if was is None or any(was.get(key) != target.get(key) for key in ("kind", "apiVersion")):
        plain = target.get("kind") == "ReplicationController"
        yield from _version(target, "spec.scaleTargetRef", plain=plain)


def resource_replicas(value: Json, path: str, old: Json | None = None) -> Errors:
    """The same of the version that scales by the load of processors alone, which is none when there are no replicas."""
    yield from replicas(value, path, old)
    annotations = lookup(value, "metadata", "annotations") or {}
    if lookup(value, "spec", "minReplicas") == 0 and _METRICS not in annotations:
        yield forbidden("spec.metrics", _NONE_TO_SCALE_BY)


def _kind_and_name(ref: Json, path: str) -> Errors:
    yield from checks.name(ref.get("kind"), f"{path}.kind", "path-segment")
    yield from checks.name(ref.get("name"), f"{path}.name", "path-segment")


def _version(ref: Json, path: str, *, plain: bool) -> Errors:
    """The version in a reference names a group too, unless ``plain``."""
    text = ref.get("apiVersion") or ""
    if text.count("/") > 1:
        yield invalid_value(f"{path}.apiVersion", text, f"unexpected GroupVersion string: {text}")
    elif not plain and not text.rpartition("/")[0]:
        yield invalid_value(f"{path}.apiVersion", text, "apiVersion must specify API group")


def autoscaler(value: Json, path: str, old: Json | None = None) -> Errors:
    """An autoscaler, next to the stored one where there is one."""
    yield from replicas(value, path, old)
    spec, before = struct(value, "spec") or {}, struct(old or {}, "spec") or {}
    described = [lookup(each, "object", "describedObject") or {} for each in items(before, "metrics")]
    lenient = any(list(_version(each, "", plain=True)) for each in described)
    for index, metric in numbered(spec, "metrics"):
        yield from _metric(metric, f"spec.metrics[{index}]", lenient=lenient)
    if spec.get("minReplicas") == 0:
        if all(each.get("type") not in ("Object", "External") for each in items(spec, "metrics")):
            yield forbidden("spec.metrics", _NONE_TO_SCALE_BY)


def _metric(metric: Json, path: str, *, lenient: bool) -> Errors:
    """A metric has the source its type names, and that source a target."""
    kind = metric.get("type") or ""
    if not kind:
        yield required_error(f"{path}.type", "must specify a metric source type")
    if kind not in _SOURCES:
        # kube-apiserver says so when it looks at the type, and again when it looks for its source.
        yield not_supported(f"{path}.type", kind, sorted(_SOURCES))
        yield not_supported(f"{path}.type", kind, sorted(_SOURCES))
    given = [name for name, field in _SOURCES.items() if struct(metric, field) is not None]
    if given:
        # Of several sources the first is looked into; the others are too many.
        yield from _source(given[0], metric[_SOURCES[given[0]]], f"{path}.{_SOURCES[given[0]]}", lenient)
    if kind in _SOURCES and kind not in given:
        detail = "must populate information for the given metric source"
        yield required_error(f"{path}.{_SOURCES[kind]}", detail)
    for name in given if len(given) > 1 else ():
        if name != kind:
            yield forbidden(f"{path}.{_SOURCES[name]}", "must populate the given metric source only")


def _source(kind: str, source: Json, path: str, lenient: bool) -> Errors:
    if kind in _OF_RESOURCES:
        yield from _resource(kind, source, path)
    else:
        if kind == "Object":
            described = struct(source, "describedObject") or {}
            yield from _kind_and_name(described, f"{path}.describedObject")
            if not lenient:
                yield from _version(described, f"{path}.describedObject", plain=True)
        name = lookup(source, "metric", "name")
        if name:
            yield from checks.each_fault(name, f"{path}.metric.name", "path-segment")
        else:
            yield required_error(f"{path}.metric.name", "must specify a metric name")
    target, place = struct(source, "target") or {}, f"{path}.target"
    yield from _target(target, place)
    average, share = target.get("averageValue") is not None, target.get("averageUtilization") is not None
    plain = target.get("value") is not None
    if kind in _OF_RESOURCES:
        if not average and not share:
            detail = "must set either a target raw value or a target utilization"
            yield required_error(f"{place}.averageUtilization", detail)
        if average and share:
            detail = "may not set both a target raw value and a target utilization"
            yield forbidden(f"{place}.averageValue", detail)
    elif kind == "Pods" and not average:
        yield required_error(f"{place}.averageValue", "must specify a positive target averageValue")
    elif kind == "Object" and not plain and not average:
        yield required_error(f"{place}.averageValue", "must set either a target value or averageValue")
    elif kind == "External" and not plain and not average:
        detail = "must set either a target value for metric or a per-pod target"
        yield required_error(f"{place}.averageValue", detail)
    elif kind == "External" and plain and average:
        yield forbidden(f"{place}.value", "may not set both a target value for metric and a per-pod target")


def _resource(kind: str, source: Json, path: str) -> Errors:
    name = source.get("name")
    if not name:
        yield required_error(f"{path}.name", "must specify a resource name")
    if kind == "Resource":
        return
    if name:
        yield from container_name(name, f"{path}.name")
    if source.get("container"):
        yield from checks.each_fault(source["container"], f"{path}.container", "dns-label")
    else:
        yield required_error(f"{path}.container", "must specify a container")


def average(value: Any, path: str) -> Errors:
    """The share of the old version; the fault is where the newer one has it."""
    del path
    yield from checks.more_than(value, "spec.metrics[0].resource.target.averageUtilization")


def _target(target: Json, path: str) -> Errors:
    kind = target.get("type") or ""
    if not kind:
        yield required_error(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid_value(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for key in ("value", "averageValue"):
        if target.get(key) is not None:
            yield from _positive(target[key], f"{path}.{key}")
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        yield invalid_value(f"{path}.averageUtilization", share, "must be greater than 0")


def _positive(value: Any, path: str) -> Errors:
    for fault in checks.quantity_above_zero(value, path):
        yield invalid_value(path, fault.bad_value, "must be positive")


def count(value: Any, path: str, old: Any) -> Errors:
    """A number of replicas in a status is not negative, whatever it was before."""
    del old
    yield from checks.minimum(value, path)


_OF_STATUS = ("autoscaling.alpha.kubernetes.io/conditions", "autoscaling.alpha.kubernetes.io/current-metrics")


def without_status_annotations(obj: Json) -> None:
    """Drops the annotations in which autoscaling/v1 keeps the status: a new object has none."""
    keep_status_annotations(obj, {"metadata": {}})


def keep_status_annotations(new: Json, old: Json) -> None:
    """Keeps those annotations as they are."""
    kept, before = new["metadata"].get("annotations") or {}, old["metadata"].get("annotations") or {}
    if not any(name in kept or name in before for name in _OF_STATUS):
        return
    annotations = {name: value for name, value in kept.items() if name not in _OF_STATUS}
    annotations |= {name: value for name, value in before.items() if name in _OF_STATUS}
    new["metadata"]["annotations"] = annotations
    if not annotations:
        del new["metadata"]["annotations"]
