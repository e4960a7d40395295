"""Checks of the status that a kubelet or a controller writes for a pod."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apimachinery.kinds import checks, formats, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import addresses
from apimachinery.meta.field_errors import (
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    too_long,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder
from apimachinery.meta.quantity import parse_quantity

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_HEALTH = ("Healthy", "Unhealthy", "Unknown")
_MAX_ID = 2**31 - 1


def pod_status(value: Json, path: str, old: Json) -> Errors:
    """A write of a pod's status."""
    del path
    status, before = struct(value, "status") or {}, struct(old, "status") or {}
    spec, old_spec = struct(value, "spec") or {}, struct(old, "spec") or {}
    yield from _conditions(status)
    if (spec.get("nodeName") or "") != (old_spec.get("nodeName") or ""):
        yield forbidden("status.nodeName", "may not be changed directly")
    yield from _nominated(status, before, old_spec)
    if (status.get("observedGeneration") or 0) < 0:
        yield invalid_value(
            "status.observedGeneration", status["observedGeneration"], "must be a non-negative integer"
        )
    if (status.get("qosClass") or "") != (before.get("qosClass") or ""):
        yield invalid_value("status.qosClass", status.get("qosClass") or "", "field is immutable")
    yield from _transitions(status, before, old_spec)
    yield from _claims(status, spec)
    yield from _extended_claim(struct(status, "extendedResourceClaimStatus"), spec)
    yield from _allocatable_claims(status, spec)
    yield from _addresses(status, before, "podIPs")
    yield from _host_addresses(status, before)
    yield from _container_statuses(status, spec)


def _conditions(status: Json) -> Errors:
    for index, condition in numbered(status, "conditions"):
        place = f"status.conditions[{index}]"
        generation = condition.get("observedGeneration") or 0
        if generation < 0:
            yield invalid_value(f"{place}.observedGeneration", generation, "must be a non-negative integer")
        kind = condition.get("type") or ""
        if kind not in _SYSTEM_CONDITIONS:
            yield from checks.each_fault(kind, f"{place}.Type", "qualified-name")


def _nominated(status: Json, before: Json, old_spec: Json) -> Errors:
    name = status.get("nominatedNodeName") or ""
    if not name or name == (before.get("nominatedNodeName") or ""):
        return
    yield from checks.string_format(name, "status.nominatedNodeName", "dns-subdomain")
    if old_spec.get("nodeName") and gates.enabled("ClearingNominatedNodeNameAfterBinding"):
        yield forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")


def _transitions(status: Json, before: Json, spec: Json) -> Errors:
    """A container that has ended stays so unless it may be started again."""
    for name, containers in zip(_STATUSES, ("containers", "initContainers", ""), strict=True):
        if not before.get(name) or (containers and _all_may_restart(spec)):
            continue
        now = {each.get("name"): each for each in reversed(list(items(status, name)))}
        for index, last in numbered(before, name):
            ended = lookup(last, "state", "terminated")
            new = now.get(last.get("name"))
            if ended is None or new is None or lookup(new, "state", "terminated") is not None:
                continue
            container = next(
                (each for each in items(spec, containers) if each.get("name") == last.get("name")), None
            )
            if container is None or not restarts(container, spec, ended.get("exitCode") or 0):
                yield forbidden(
                    f"status.{name}[{index}].state", "may not be transitioned to non-terminated state"
                )


def _all_may_restart(spec: Json) -> bool:
    if not gates.enabled("RestartAllContainersOnContainerExits"):
        return False
    return any(
        rule.get("action") == "RestartAllContainers"
        for kind in ("containers", "initContainers")
        for container in items(spec, kind)
        for rule in items(container, "restartPolicyRules")
    )


def restarts(container: Json, spec: Json, code: int) -> bool:
    """Whether a container that ended with ``code`` is started again: by its rules, its policy, the pod's policy."""
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in items(container, "restartPolicyRules"):
            exits = struct(rule, "exitCodes")
            if exits is None:
                continue
            if (code in (exits.get("values") or ())) == (exits.get("operator") == "In"):
                if rule.get("action") in ("Restart", "RestartAllContainers"):
                    return True
                break
    policy = policy or spec.get("restartPolicy")
    return {"Never": False, "OnFailure": code != 0}.get(str(policy), True)


def _claims(status: Json, spec: Json) -> Errors:
    known, seen = {each.get("name") for each in items(spec, "resourceClaims")}, set()
    for index, claim in numbered(status, "resourceClaimStatuses"):
        place, name = f"status.resourceClaimStatuses[{index}]", claim.get("name") or ""
        if name not in known:
            yield invalid_value(
                f"{place}.name", name, "must match the name of an entry in `spec.resourceClaims`"
            )
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        if claim.get("resourceClaimName") is not None:
            yield from checks.each_fault(
                claim["resourceClaimName"], f"{place}.resourceClaimName", "dns-subdomain"
            )


def _extended_claim(status: Json | None, spec: Json) -> Errors:
    if status is None:
        return
    path = "status.extendedResourceClaimStatus"
    containers = {
        each.get("name"): each for kind in ("initContainers", "containers") for each in items(spec, kind)
    }
    if not status.get("requestMappings"):
        yield required_error(f"{path}.requestMappings", "at least one request mapping is required")
    seen = set()
    for index, mapping in numbered(status, "requestMappings"):
        place = f"{path}.requestMappings[{index}]"
        container, resource = mapping.get("containerName") or "", mapping.get("resourceName") or ""
        request = mapping.get("requestName") or ""
        if container not in containers:
            yield invalid_value(
                f"{place}.containerName",
                container,
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            )
        elif resource not in (lookup(containers[container], "resources", "requests") or {}):
            yield invalid_value(
                f"{place}.resourceName",
                resource,
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests",
            )
        yield from checks.each_fault(request, f"{path}.requestName", "dns-label")
        if (container, resource, request) in seen:
            yield duplicate(f"{place}.containerName", container)
            yield duplicate(f"{place}.resourceName", resource)
            yield duplicate(f"{place}.requestName", request)
        seen.add((container, resource, request))
    yield from checks.name(status.get("resourceClaimName"), f"{path}.resourceClaimName", "dns-subdomain")


def _allocatable_claims(status: Json, spec: Json) -> Errors:
    named = {each.get("resourceClaimName") for each in items(spec, "resourceClaims")}
    named |= {each.get("resourceClaimName") for each in items(status, "resourceClaimStatuses")}
    for index, claim in numbered(status, "nodeAllocatableResourceClaimStatuses"):
        place = f"status.nodeAllocatableResourceClaimStatuses[{index}]"
        name = claim.get("resourceClaimName") or ""
        if not name:
            yield required_error(f"{place}.resourceClaimName", "must not be empty")
        if name not in named:
            yield invalid_value(f"{place}.resourceClaimName", name, "no mapping found in pod reference")
        if not claim.get("containers"):
            yield required_error(f"{place}.containers", "must not be empty")
        if not claim.get("resources"):
            yield required_error(f"{place}.resources", "must not be empty")
        for resource, amount in sorted((struct(claim, "resources") or {}).items()):
            key = f"{place}.resources[{resource}]"
            if "/" in resource and "kubernetes.io/" not in resource:
                yield invalid_value(key, resource, "must be a node allocatable resource name")
            if parse_quantity(str(amount)).value < 0:
                yield invalid_value(key, str(parse_quantity(str(amount))), "must be non-negative")


def _addresses(status: Json, before: Json, key: str) -> Errors:
    given = [each.get("ip") or "" for each in items(status, key)]
    kept = {each.get("ip") for each in items(before, key)}
    for index, text in enumerate(given):
        for detail in formats.ip_faults(text) if text not in kept else ():
            yield invalid_value(f"status.{key}[{index}]", text, detail)
    if len(given) > 1:
        parsed = [addresses.parse_ip(text) for text in given]
        bad = next((index for index, each in enumerate(parsed) if each is None), None)
        if bad is not None:
            detail = f'failed to check for dual stack with error:invalid ip[{bad}]: "{given[bad]}"'
            yield checks.internal_error(f"status.{key}", detail)
        families = {each.address.version for each in parsed if each is not None}
        if bad is not None or len(families) < 2 or len(given) > 2:
            shown = InOrder([{"IP": text} for text in given])
            yield invalid_value(f"status.{key}", shown, "may specify no more than one IP for each IP family")


def _host_addresses(status: Json, before: Json) -> Errors:
    first = next(items(status, "hostIPs"), None)
    if first is None:
        return
    if (first.get("ip") or "") != (status.get("hostIP") or ""):
        yield invalid_value("status.hostIPs[0].ip", first.get("ip") or "", "must be equal to `hostIP`")
    yield from _addresses(status, before, "hostIPs")


def _container_statuses(status: Json, spec: Json) -> Errors:
    system = lookup(spec, "os", "name") or "linux"
    for name in _STATUSES:
        containers = [] if name.startswith("eph") else list(items(spec, name.removesuffix("Statuses") + "s"))
        for index, each in numbered(status, name):
            place = f"status.{name}[{index}]"
            yield from _user(each, place, system)
            if name.startswith("eph"):
                if each.get("allocatedResourcesStatus"):
                    yield forbidden(
                        f"{place}.allocatedResourcesStatus", "must not be specified in container status"
                    )
            else:
                yield from _allocated(each, place, containers)
            for mount_index, mount in numbered(each, "volumeMounts"):
                image = struct(mount, "volumeStatus", "image")
                if image is not None:
                    yield from _image_volume(
                        image, f"{place}.volumeMounts[{mount_index}].volumeStatus.imageVolumeStatus"
                    )


def _user(status: Json, path: str, system: str) -> Errors:
    linux = struct(status, "user", "linux")
    if linux is None:
        return
    if system == "windows":
        yield forbidden(f"{path}.user.linux", "cannot be set for a windows pod")
    elif system == "linux":
        for key in ("uid", "gid"):
            yield from checks.between(linux.get(key), f"{path}.user.linux.{key}", 0, _MAX_ID)
        for index, group in enumerate(linux.get("supplementalGroups") or ()):
            yield from checks.between(group, f"{path}.user.linux.supplementalGroups[{index}]", 0, _MAX_ID)


def _allocated(status: Json, path: str, containers: Sequence[Json]) -> Errors:
    container = next((each for each in containers if each.get("name") == status.get("name")), None)
    for index, resource in numbered(status, "allocatedResourcesStatus"):
        place, name = f"{path}.allocatedResourcesStatus[{index}]", resource.get("name") or ""
        if container is not None:
            yield from _requested(name, f"{place}.name", container)
        seen = set()
        for number, health in numbered(resource, "resources"):
            at = f"{place}.resources[{number}]"
            if (health.get("health") or "") not in _HEALTH:
                yield not_supported(f"{at}.health", health.get("health") or "", _HEALTH)
            message = health.get("message")
            if message == "":
                yield required_error(f"{at}.message", "must be non-empty if specified")
            elif isinstance(message, str) and len(message.encode()) > 1024:
                yield too_long(f"{at}.message", 1024)
            if health.get("resourceID") in seen:
                yield duplicate(f"{at}.resourceID", health.get("resourceID") or "")
            seen.add(health.get("resourceID"))


def _requested(name: Any, path: str, container: Json) -> Errors:
    resources = struct(container, "resources") or {}
    if str(name).startswith("claim:"):
        claims = {
            f"claim:{claim.get('name')}/{claim['request']}"
            if claim.get("request")
            else f"claim:{claim.get('name')}"
            for claim in items(resources, "claims")
        }
        if name not in claims:
            yield invalid_value(
                path,
                name,
                "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
                "'claim:<claimName>' if request is empty",
            )
    elif name not in (resources.get("requests") or {}):
        yield invalid_value(path, name, "must match one of the container's resource requests")


def _image_volume(status: Json, path: str) -> Errors:
    reference = status.get("imageRef") or ""
    if not reference:
        yield required_error(f"{path}.imageRef", "imageRef must not be empty")
    if len(reference.encode()) > 256:
        yield too_long(f"{path}.imageRef", 256)
