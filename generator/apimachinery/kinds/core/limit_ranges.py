"""What LimitRanges mean for pods and claims: defaults for containers that ask for nothing, and bounds.

Rules of the LimitRanger plugin as kube-apiserver applies them: bounds on containers and init containers one by one,
on pods as the sum of theirs, on claims by what they request. Resources come by name.
"""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.kinds.core.pod_resources import of_pod
from apimachinery.kinds.fields import Json, items, lookup
from apimachinery.meta.quantity import Quantity, canonical, parse_quantity

ANNOTATION = "kubernetes.io/limit-ranger"
Amounts = dict[str, Quantity]
_NO_LIMITS: Amounts = {}


def fill_in(spec: Json, limit_range: Json) -> list[str]:
    """Gives a pod's containers the defaults of a LimitRange; returns what was set, as the pod's annotation says it."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for limit in items(limit_range.get("spec") or {}, "limits"):
        if limit.get("type") == "Container":
            requests.update(limit.get("defaultRequest") or {})
            limits.update(limit.get("default") or {})
    told = []
    for key, word in (("containers", "container"), ("initContainers", "init container")):
        for container in items(spec, key):
            resources = container.get("resources")
            if not isinstance(resources, dict):
                resources = container["resources"] = {}
            for kind, defaults in (("requests", requests), ("limits", limits)):
                given = resources.get(kind) or {}
                added = sorted(defaults.keys() - given.keys())
                if added:
                    resources[kind] = {**given, **{name: defaults[name] for name in added}}
                    told.append(f"{', '.join(added)} {kind[:-1]} for {word} {container.get('name')}")
    return told


def pod_faults(spec: Json, limit_range: Json) -> Iterator[str]:
    """Where a pod is out of bounds."""
    for limit in items(limit_range.get("spec") or {}, "limits"):
        kind = limit.get("type")
        if kind == "Container":
            for key in ("containers", "initContainers"):
                for container in items(spec, key):
                    resources = container.get("resources") or {}
                    yield from _faults(
                        limit,
                        "Container",
                        amounts(resources.get("requests")),
                        amounts(resources.get("limits")),
                    )
        elif kind == "Pod":
            yield from _faults(limit, "Pod", of_pod(spec, "requests"), of_pod(spec, "limits"))


def claim_faults(spec: Json, limit_range: Json) -> Iterator[str]:
    """Where a claim is out of bounds."""
    requests = amounts(lookup(spec, "resources", "requests"))
    for limit in items(limit_range.get("spec") or {}, "limits"):
        if limit.get("type") == "PersistentVolumeClaim":
            for name, bound in sorted(amounts(limit.get("min")).items()):
                yield from _minimum(name, bound, "PersistentVolumeClaim", requests, _NO_LIMITS)
            for name, bound in sorted(amounts(limit.get("max")).items()):
                told = f"maximum {name} usage per PersistentVolumeClaim is {bound}"
                request = requests.get(name)
                if request is None:
                    yield f"{told}.  No request is specified"
                elif request.value > bound.value:
                    yield f"{told}, but request is {request}"


def _faults(limit: Json, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted(amounts(limit.get("min")).items()):
        yield from _minimum(name, bound, kind, requests, limits)
    for name, bound in sorted(amounts(limit.get("max")).items()):
        yield from _maximum(name, bound, kind, requests, limits)
    for name, bound in sorted(amounts(limit.get("maxLimitRequestRatio")).items()):
        yield from _ratio(name, bound, kind, requests, limits)


def _minimum(name: str, bound: Quantity, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    told = f"minimum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None:
        yield f"{told}.  No request is specified"
    elif request.value < bound.value:
        yield f"{told}, but request is {request}"
    elif limit is not None and limit.value < bound.value:
        yield f"{told}, but limit is {limit}"


def _maximum(name: str, bound: Quantity, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    told = f"maximum {name} usage per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if limit is None:
        yield f"{told}.  No limit is specified"
    elif limit.value > bound.value:
        yield f"{told}, but limit is {limit}"
    elif request is not None and request.value > bound.value:
        yield f"{told}, but request is {request}"


def _ratio(name: str, bound: Quantity, kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    told = f"{name} max limit to request ratio per {kind} is {bound}"
    request, limit = requests.get(name), limits.get(name)
    if request is None or not request.value:
        yield f"{told}, but no request is specified or request is 0"
    elif limit is None or not limit.value:
        yield f"{told}, but no limit is specified or limit is 0"
    elif (observed := limit.value / request.value) > bound.value:
        yield f"{told}, but provided ratio is {float(observed):f}"


def amounts(given: Json | None) -> Amounts:
    """Amounts by resource; those that are no quantities are left out."""
    found = {}
    for name, text in (given or {}).items():
        try:
            found[name] = parse_quantity(canonical(text))
        except ValueError:
            continue
    return found
