"""What containers and pods ask for: names of resources, amounts, requests next to limits."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.amounts import aggregate, is_huge_page, parsed
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.quantity import Quantity

_CONTAINER = frozenset({"cpu", "memory", "ephemeral-storage"})
_COUNTED = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
STANDARD = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "requests.storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        *_COUNTED,
    }
)
"""Resources without a domain."""
_POD_LEVEL = ("cpu", "hugepages-", "memory")


def is_native(name: str) -> bool:
    """Whether a resource is Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Whether a resource is one of somebody's domain, of which a pod may ask."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not names.qualified_name_faults(f"requests.{name}")


def standard_name(name: str, path: str) -> Errors:
    """A qualified name, and one that Kubernetes knows where it has no domain."""
    faults = names.qualified_name_faults(name)
    for detail in faults:
        yield invalid_value(path, name, detail)
    if not faults and "/" not in name and name not in STANDARD and not is_huge_page(name):
        if not name.startswith("requests.hugepages-"):
            yield invalid_value(path, name, "must be a standard resource type or fully qualified")


def container_name(name: str, path: str) -> Errors:
    """The name of a resource that a container may ask for."""
    if name in _CONTAINER:
        return
    yield from standard_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            yield invalid_value(path, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(path, name, "doesn't follow extended resource name standard")


def _pod_name(name: str, path: str) -> Errors:
    faults = list(standard_name(name, path))
    yield from faults
    if not faults and name not in ("cpu", "memory") and not is_huge_page(name):
        yield not_supported(path, name, _POD_LEVEL)


def amount(name: str, value: Any, path: str) -> Errors:
    """Not less than nothing, and a whole number of what cannot be split."""
    quantity = parsed(value)
    if quantity is None:
        return
    if quantity.value.numerator < 0:
        yield invalid_value(path, str(quantity), "must be greater than or equal to 0")
    if quantity.value.denominator != 1 and (name in _COUNTED or is_extended(name)):
        yield invalid_value(path, str(quantity), "must be an integer")


def _divisible(name: str, quantity: Quantity) -> bool:
    page = parsed(name.removeprefix("hugepages-"))
    if page is None or page.value <= 0 or page.value.denominator != 1:
        return False
    return quantity.value % page.value == 0


def container_resources(value: Any, path: str) -> Errors:
    """Requests and limits of a container."""
    if isinstance(value, dict) and value:
        yield from _requirements(value, path, pod=False)


def _requirements(value: Json, path: str, *, pod: bool) -> Errors:
    limits, requests = struct(value, "limits") or {}, struct(value, "requests") or {}
    named = _pod_name if pod else container_name
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name in sorted(amounts):
            place = f"{path}.{key}[{name}]"
            if not (name in _CONTAINER and not pod):
                yield from named(name, place)
            yield from amount(name, amounts[name], place)
            quantity = parsed(amounts[name])
            if is_huge_page(name) and quantity is not None and not _divisible(name, quantity):
                detail = f"{quantity} is not positive integer multiple of {name}"
                yield invalid_value(place, str(quantity), detail)
            if key == "requests":
                yield from _within(name, quantity, limits, path)
    asked = {*limits, *requests}
    if any(map(is_huge_page, asked)) and not asked & {"cpu", "memory"}:
        yield forbidden(path, "HugePages require cpu or memory")


def _within(name: str, request: Quantity | None, limits: Json, path: str) -> Errors:
    overcommit = name in _CONTAINER or (is_native(name) and not is_huge_page(name))
    if name not in limits:
        if not overcommit:
            yield required_error(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    limit = parsed(limits[name])
    if request is None or limit is None or request.value == limit.value:
        return
    if not overcommit:
        yield invalid_value(f"{path}.requests", str(request), f"must be equal to {name} limit of {limit}")
    elif request.value > limit.value:
        yield invalid_value(
            f"{path}.requests", str(request), f"must be less than or equal to {name} limit of {limit}"
        )


def claims(resources: Json, path: str, known: set[str]) -> Errors:
    """The claims of a pod that a container uses, or one request of a claim."""
    seen: set[str] = set()
    for index, claim in numbered(resources, "claims"):
        place, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            yield required_error(place)
            continue
        key = f"{name}/{request}" if request else name
        if name in seen:
            yield duplicate(place, name)
        else:
            if request:
                yield from checks.each_fault(request, f"{place}.request", "dns-label")
            if key in seen:
                yield duplicate(place, key)
            elif not request:
                for other in seen:
                    if other.startswith(f"{name}/"):
                        yield duplicate(place, name)
            seen.add(key)
        if name not in known:
            said = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{said}"
            yield FieldError(Reason.NOT_FOUND, place, detail, name)


def pod_resources(spec: Json, path: str) -> Errors:
    """Requests and limits of a pod as a whole hold those of its containers."""
    resources, place = struct(spec, "resources"), f"{path}.resources"
    if resources is None:
        return
    if lookup(spec, "os", "name") == "windows":
        yield forbidden(place, "may not be set for a windows pod")
        return
    if resources.get("claims") is not None:
        yield forbidden(f"{place}.claims", "claims may not be set for Resources at pod-level")
        known = {claim["name"] for claim in items(spec, "resourceClaims") if claim.get("name")}
        yield from claims(resources, f"{place}.claims", known)
    yield from _requirements(resources, place, pod=True)
    requests, limits = struct(resources, "requests") or {}, struct(resources, "limits") or {}
    for name, total in sorted(aggregate(spec, "requests").items()):
        own = parsed(requests.get(name))
        if own is not None and total.value > own.value:
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            yield invalid_value(f"{place}.requests[{name}]", str(own), detail)
    for name, total in sorted(aggregate(spec, "limits").items()):
        own = parsed(limits.get(name)) if is_huge_page(name) else None
        if own is not None and total.value > own.value:
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            yield invalid_value(f"{place}.limits[{name}]", str(own), detail)
    for index, container in enumerate(items(spec, "containers")):
        for name, text in sorted((lookup(container, "resources", "limits") or {}).items()):
            limit, own = parsed(text), parsed(limits.get(name))
            if limit is not None and own is not None and limit.value > own.value:
                yield invalid_value(
                    f"{place}.containers[{index}][{name}].limits",
                    str(limit),
                    f"must be less than or equal to pod limits of {own}",
                )


def of_pod(spec: Json, key: str) -> dict[str, Quantity]:
    """What a pod asks for (``key`` is requests or limits), by resource: what is said of the pod as a whole counts
    before the sum of its containers."""
    total = aggregate(spec, key)
    for name, text in (lookup(spec, "resources", key) or {}).items():
        quantity = parsed(text)
        if quantity is not None:
            total[name] = quantity
    return total
