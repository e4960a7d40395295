"""What objects count for in a ResourceQuota, and which objects a quota is about.

Amounts are exact (``Quantity`` values as fractions with the kind of suffix they are written with), by the names that
quotas give them. The rules are those of kube-apiserver's evaluators: pods, services and claims have their own,
everything else is counted as ``count/RESOURCE.GROUP``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from apimachinery.kinds.amounts import is_huge_page
from apimachinery.kinds.core.pod_resources import is_extended, of_pod
from apimachinery.kinds.defaulters import qos_class
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    struct,
)
from apimachinery.meta.clock import utc
from apimachinery.meta.quantity import Quantity, canonical, parse_quantity

Amounts = dict[str, Quantity]
PODS, SERVICES, CLAIMS = ("", "pods"), ("", "services"), ("", "persistentvolumeclaims")
DEVICE_CLAIMS = ("resource.k8s.io", "resourceclaims")
ONE = Quantity(Fraction(1), "decimal")
ALL_DEVICES = 32
"""What a request for all devices counts for: a claim is given no more."""
_PLAIN = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})
"""Core resources that quotas also count by their plain name."""
_OF_CLASS = ".storageclass.storage.k8s.io/"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_COMPUTED = frozenset({"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"})
"""What every container must say of itself where a quota counts it."""


def amounts(given: Mapping[str, Any] | None) -> Amounts:
    """Amounts of a quota's ``hard`` or ``used``."""
    return {name: parse_quantity(canonical(text)) for name, text in (given or {}).items()}


def shown(given: Amounts) -> str:
    """Amounts as messages show them."""
    return ",".join(f"{name}={given[name]}" for name in sorted(given))


def spelled(given: Amounts) -> dict[str, str]:
    """Amounts as objects hold them."""
    return {name: str(amount) for name, amount in given.items()}


def added(one: Quantity | None, other: Quantity) -> Quantity:
    """The sum of two amounts, written as the first that is not 0."""
    if one is None or not one.value:
        return other
    return Quantity(one.value + other.value, one.form)


def less(one: Quantity, other: Quantity | None) -> Quantity:
    """What is left, 0 at least."""
    return Quantity(max(one.value - other.value, Fraction(0)), one.form) if other is not None else one


def counts(group: str, plural: str) -> str:
    """The name by which quotas count a resource."""
    return f"count/{plural}.{group}" if group else f"count/{plural}"


def counted_in(resource: tuple[str, str], names: Iterable[str]) -> set[str]:
    """Which names of a quota are about a resource, (group, plural)."""
    group, plural = resource
    found = set()
    for name in names:
        if (
            name == counts(group, plural)
            or (resource == PODS and _is_of_pods(name))
            or (resource == SERVICES and name in ("services", "services.nodeports", "services.loadbalancers"))
            or (resource == CLAIMS and _is_of_claims(name))
            or (resource == DEVICE_CLAIMS and name.endswith(_DEVICES))
            or (not group and plural in _PLAIN and name == plural)
        ):
            found.add(name)
    return found


def resource_of(name: str) -> tuple[str, str] | None:
    """The resource, (group, plural), that a name of a quota is about."""
    if name.startswith("count/"):
        plural, _, group = name.removeprefix("count/").partition(".")
        return group, plural
    for resource in (PODS, SERVICES, CLAIMS, DEVICE_CLAIMS):
        if counted_in(resource, (name,)):
            return resource
    return ("", name) if name in _PLAIN else None


def _is_of_pods(name: str) -> bool:
    inner = name.removeprefix("requests.")
    return (
        name in _COMPUTED
        or name in ("pods", "ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage")
        or is_huge_page(inner)
        or (inner != name and is_extended(inner))
    )


def _is_of_claims(name: str) -> bool:
    return name in ("persistentvolumeclaims", "requests.storage") or _OF_CLASS in name


def usage(resource: tuple[str, str], obj: Json) -> Amounts:
    """What an object counts for."""
    found: Amounts = {counts(*resource): ONE}
    if resource == PODS:
        if not _is_over(obj):
            found |= _of_pod(obj.get("spec") or {})
    elif resource == SERVICES:
        found |= _of_service(obj.get("spec") or {})
    elif resource == CLAIMS:
        found |= _of_claim(obj)
    elif resource == DEVICE_CLAIMS:
        found |= _of_devices(obj.get("spec") or {})
    elif not resource[0] and resource[1] in _PLAIN:
        found[resource[1]] = ONE
    return found


def _is_over(pod: Json) -> bool:
    """Whether a pod uses nothing any more: it has ended, or its node should have ended it by now."""
    if lookup(pod, "status", "phase") in ("Failed", "Succeeded"):
        return True
    metadata = pod.get("metadata") or {}
    deleted, grace = metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")
    if not deleted or grace is None:
        return False
    try:
        until = datetime.fromisoformat(str(deleted)) + timedelta(seconds=int(grace))
    except (OverflowError, TypeError, ValueError):
        return False
    return utc() > until


def _of_pod(spec: Json) -> Amounts:
    found: Amounts = {"pods": ONE}
    requests = of_pod(spec, "requests")
    limits = of_pod(spec, "limits")
    for name, text in (spec.get("overhead") or {}).items():
        amount = parse_quantity(canonical(text))
        requests[name] = added(requests.get(name), amount)
        if name in limits:
            limits[name] = added(limits[name], amount)
    found |= _computed(requests, limits)
    return found


def _computed(requests: Amounts, limits: Amounts) -> Amounts:
    found: Amounts = {}
    for name, amount in requests.items():
        if name in ("cpu", "memory", "ephemeral-storage") or is_huge_page(name):
            found[name] = found[f"requests.{name}"] = amount
        elif is_extended(name):
            found[f"requests.{name}"] = amount
    for name, amount in limits.items():
        if name in ("cpu", "memory", "ephemeral-storage"):
            found[f"limits.{name}"] = amount
    return found


def _of_service(spec: Json) -> Amounts:
    found: Amounts = {"services": ONE}
    ports = list(items(spec, "ports"))
    if spec.get("type") == "LoadBalancer":
        found["services.loadbalancers"] = ONE
        if spec.get("allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
    elif spec.get("type") != "NodePort":
        return found
    found["services.nodeports"] = Quantity(Fraction(len(ports)), "decimal")
    return found


def _of_devices(spec: Json) -> Amounts:
    """Devices by class: of alternatives as many as the one with most of a class would take."""
    found: Amounts = {}
    for request in items(spec.get("devices") or {}, "requests"):
        most: dict[str, int] = {}
        for each in [*items(request, "firstAvailable"), request.get("exactly")]:
            if isinstance(each, dict) and (name := each.get("deviceClassName")):
                count = ALL_DEVICES if each.get("allocationMode") == "All" else int(each.get("count") or 1)
                most[name] = max(most.get(name, 0), count)
        for name, count in most.items():
            key = f"{name}{_DEVICES}"
            found[key] = added(found.get(key), Quantity(Fraction(count), "decimal"))
    return found


def _of_claim(claim: Json) -> Amounts:
    found: Amounts = {"persistentvolumeclaims": ONE}
    spec = claim.get("spec") or {}
    storage = lookup(spec, "resources", "requests", "storage")
    annotations = lookup(claim, "metadata", "annotations") or {}
    name = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName")
    if name:
        found[f"{name}{_OF_CLASS}persistentvolumeclaims"] = ONE
    if storage is not None:
        amount = parse_quantity(canonical(storage))
        allocated = lookup(claim, "status", "allocatedResources", "storage")
        if allocated is not None:
            # A claim that grows counts for what it may have got already.
            other = parse_quantity(canonical(allocated))
            amount = other if other.value > amount.value else amount
        found["requests.storage"] = amount
        if name:
            found[f"{name}{_OF_CLASS}requests.storage"] = amount
    return found


def missing(resource: tuple[str, str], obj: Json, names: Iterable[str]) -> str:
    """What containers do not say that a quota with these names must know; ``""`` where they say it all."""
    if resource != PODS:
        return ""
    spec = obj.get("spec") or {}
    wanted = {*names} & _COMPUTED
    of_whole = struct(spec, "resources") or {}
    wanted -= _stated(of_whole).keys()
    lacking: dict[str, set[str]] = {}
    for key in ("containers", "initContainers"):
        for container in items(spec, key):
            for name in wanted - _stated(container.get("resources") or {}).keys():
                lacking.setdefault(name, set()).add(str(container.get("name")))
    told = [f"{name} for: {','.join(sorted(lacking[name]))}" for name in sorted(lacking)]
    return f"must specify {'; '.join(told)}" if told else ""


def _stated(resources: Json) -> Amounts:
    return _computed(amounts(resources.get("requests")), amounts(resources.get("limits")))


def is_about(resource: tuple[str, str], spec: Json, obj: Json) -> bool:
    """Whether a quota's scopes take an object in."""
    scopes: list[Json] = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    scopes += items(struct(spec, "scopeSelector") or {}, "matchExpressions")
    if not scopes:
        return True
    if resource == PODS:
        return all(_in_scope_of_pods(scope, obj) for scope in scopes)
    if resource == CLAIMS:
        return all(_in_scope_of_claims(scope, obj) for scope in scopes)
    return False


def _in_scope_of_pods(scope: Json, pod: Json) -> bool:
    spec = pod.get("spec") or {}
    match scope.get("scopeName"):
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return qos_class(spec) == "BestEffort"
        case "NotBestEffort":
            return qos_class(spec) != "BestEffort"
        case "CrossNamespacePodAffinity":
            return _crosses(spec)
        case "PriorityClass":
            return _selects(scope, spec.get("priorityClassName"))
    return False


def _in_scope_of_claims(scope: Json, claim: Json) -> bool:
    if scope.get("scopeName") != "VolumeAttributesClass":
        return False
    return _selects(scope, lookup(claim, "spec", "volumeAttributesClassName"))


def _selects(scope: Json, name: object) -> bool:
    values = scope.get("values") or ()
    match scope.get("operator"):
        case "In":
            return name in values
        case "NotIn":
            return name not in values
        case "DoesNotExist":
            return not name
    return bool(name)


def _crosses(spec: Json) -> bool:
    """Whether where a pod runs depends on pods of other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = struct(spec, "affinity", kind) or {}
        terms = list(items(affinity, "requiredDuringSchedulingIgnoredDuringExecution"))
        terms += [
            struct(each, "podAffinityTerm") or {}
            for each in items(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
        ]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False
