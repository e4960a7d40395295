"""Quotas and limit ranges: how much of what a namespace, a pod or a container may have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from apimachinery.kinds.amounts import is_huge_page
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.pod_resources import (
    amount,
    container_name,
    is_extended,
    standard_name,
)
from apimachinery.kinds.fields import Json, numbered, of_missing, struct
from apimachinery.meta import names
from apimachinery.meta.field_errors import duplicate, forbidden, invalid_value
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.quantity import Quantity, parse_quantity

_OF_PODS = frozenset(
    {"cpu", "memory", "limits.cpu", "limits.memory", "pods", "requests.cpu", "requests.memory"}
)
_OF_CLAIMS = frozenset({"persistentvolumeclaims", "requests.storage"})
_COUNTED = {
    "BestEffort": frozenset({"pods"}),
    "CrossNamespacePodAffinity": _OF_PODS,
    "NotBestEffort": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "Terminating": _OF_PODS,
    "VolumeAttributesClass": _OF_CLAIMS,
}
"""By scope, what a quota that has it can count."""
_PLAIN_SCOPES = frozenset(_COUNTED) - {"PriorityClass", "VolumeAttributesClass"}
_CONFLICTS = (("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating"))
_NAMES = (
    _OF_PODS
    | _OF_CLAIMS
    | {"ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "resourcequotas"}
    | {"services", "replicationcontrollers", "secrets", "configmaps", "services.nodeports"}
    | {"services.loadbalancers"}
)
_UNFIT = "unsupported scope applied to resource"
_ONLY_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def quota(value: Json, path: str) -> Errors:
    """What a quota counts, of what, and what its status says about it."""
    del path
    spec, status = struct(value, "spec") or {}, struct(value, "status") or {}
    hard = struct(spec, "hard") or {}
    yield from _counts(hard, "spec.hard")
    yield from _scopes(spec.get("scopes") or [], hard)
    yield from _selector(struct(spec, "scopeSelector"), hard)
    yield from _counts(struct(status, "hard") or {}, "status.hard")
    yield from _counts(struct(status, "used") or {}, "status.used")


def quota_status(value: Json, path: str, old: Json) -> Errors:
    """The status of a quota counts what there may be and what there is."""
    del path, old
    status = struct(value, "status") or {}
    for key in ("hard", "used"):
        yield from _counts(struct(status, key) or {}, f"status.{key}")


def _is_known(name: str) -> bool:
    return name in _NAMES or is_huge_page(name) or name.startswith("requests.hugepages-")


def _counts(hard: Json, path: str) -> Errors:
    for name, value in hard.items():
        place = f"{path}[{name}]"
        yield from standard_name(name, place)
        if "/" not in name and not _is_known(name):
            yield invalid_value(place, name, "must be a standard resource for quota")
        yield from amount(name, value, place)


@of_missing
def kept_scopes(value: Any, path: str, old: Any) -> Errors:
    """The scopes of a quota stay; in which order, and how often each is named, is nobody's business."""
    if set(value or ()) != set(old or ()):
        yield invalid_value(path, value, "field is immutable")


def _scopes(scopes: list[str], hard: Json) -> Errors:
    place = "spec.scopes"
    for scope in scopes:
        if scope not in _COUNTED:
            yield invalid_value(place, scopes, "unsupported scope")
        yield from (invalid_value(place, scopes, _UNFIT) for _ in _not_counted(scope, hard))
    for pair in _CONFLICTS:
        if set(pair) <= set(scopes):
            yield invalid_value(place, scopes, "conflicting scopes")


def _not_counted(scope: str, hard: Json) -> list[str]:
    counted = _COUNTED.get(scope)
    return [] if counted is None else [name for name in hard if _is_known(name) and name not in counted]


def _selector(selector: Json | None, hard: Json) -> Errors:
    place, seen = "spec.scopeSelector.matchExpressions", set()
    for _, requirement in numbered(selector or {}, "matchExpressions"):
        scope, operator = requirement.get("scopeName") or "", requirement.get("operator") or ""
        values = requirement.get("values")
        seen.add(scope)
        if scope not in _COUNTED:
            yield invalid_value(f"{place}.scopeName", scope, "unsupported scope")
        yield from (invalid_value(place, selector, _UNFIT) for _ in _not_counted(scope, hard))
        if scope in _PLAIN_SCOPES and operator != "Exists":
            yield invalid_value(f"{place}.operator", operator, _ONLY_EXISTS)
        if operator in ("In", "NotIn"):
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required_error(f"{place}.values", detail)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                yield invalid_value(f"{place}.values", values, detail)
        else:
            yield invalid_value(f"{place}.operator", operator, "not a valid selector operator")
    for pair in _CONFLICTS:
        if set(pair) <= seen:
            yield invalid_value("spec.scopeSelector", selector, "conflicting scopes")


def limits(value: Any, path: str) -> Errors:
    """Each type of a limit range once; within one, minimum ≤ default request ≤ default ≤ maximum."""
    seen = set()
    for index, limit in numbered({"limits": value}, "limits"):
        place, kind = f"{path}[{index}]", limit.get("type") or ""
        faults = names.qualified_name_faults(kind)
        for detail in faults:
            yield invalid_value(f"{place}.type", kind, detail)
        if not faults and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            yield invalid_value(f"{place}.type", kind, "must be a standard limit type or fully qualified")
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.add(kind)
        yield from _limit(limit, place, kind)


_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")


def _limit(limit: Json, path: str, kind: str) -> Errors:
    check = container_name if kind in ("Pod", "Container") else standard_name
    given: dict[str, dict[str, Quantity]] = {}
    for key in _LIMITS:
        amounts = struct(limit, key) or {}
        if kind == "Pod" and key.startswith("default"):
            if amounts:
                yield forbidden(f"{path}.{key}", "may not be specified when `type` is 'Pod'")
            continue
        for name, text in amounts.items():
            yield from check(name, f"{path}.{key}[{name}]")
            try:
                given.setdefault(name, {})[key] = parse_quantity(str(text))
            except ValueError:
                continue
    if kind == "PersistentVolumeClaim":
        if not given.get("storage", {}).keys() & {"min", "max"}:
            detail = "either minimum or maximum storage value is required, but neither was provided"
            yield required_error(f"{path}.limits", detail)
    for name, amounts in given.items():
        yield from _in_order(name, amounts, path)
        yield from _ratio(name, amounts, path)


_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""What must not be more than what; at which place a fault is reported, and which of the values it shows."""


def _in_order(name: str, amounts: dict[str, Quantity], path: str) -> Errors:
    for low, high, place, shown, text in _ORDER:
        if low in amounts and high in amounts and amounts[low].value > amounts[high].value:
            detail = text.format(amounts[low], amounts[high])
            yield invalid_value(f"{path}.{place}[{name}]", str(amounts[shown]), detail)
    chosen, asked = amounts.get("default"), amounts.get("defaultRequest")
    if chosen is not None and asked is not None and chosen.value != asked.value:
        if is_huge_page(name) or is_extended(name):
            detail = f"default value {chosen} must equal to defaultRequest value {asked} in {name}"
            yield invalid_value(f"{path}.defaultRequest[{name}]", str(asked), detail)


def _ratio(name: str, amounts: dict[str, Quantity], path: str) -> Errors:
    ratio, least, most = (amounts.get(key) for key in ("maxLimitRequestRatio", "min", "max"))
    if ratio is None:
        return
    place = f"{path}.maxLimitRequestRatio[{name}]"
    if ratio.value < 1:
        yield invalid_value(place, str(ratio), f"ratio {ratio} is less than 1")
    if least is not None and most is not None and least.value:
        highest = Fraction(most.value / least.value)
        if ratio.value > highest:
            detail = f"ratio {ratio} is greater than max/min = {float(highest):f}"
            yield invalid_value(place, str(ratio), detail)
