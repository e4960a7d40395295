"""Checks of pods that compare several places: volumes and their mounts, ports, handlers, tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.quantity import parse_quantity
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, items, lookup, numbered, struct

Errors = Iterator[FieldError]

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_STANDARD_RESOURCES = frozenset(
    {
        "cpu",
        "memory",
        "ephemeral-storage",
        "storage",
        "requests.cpu",
        "requests.memory",
        "limits.cpu",
        "limits.memory",
    }
)
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SYSCTL_LENGTH = 253
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def volume_names(value: Any, path: str) -> Errors:
    """Volumes have names, which are labels, and no two the same."""
    seen = set()
    for index, volume in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(volume, dict):
            continue
        name, place = volume.get("name"), f"{path}[{index}].name"
        faults = list(checks.name(name, place))
        if not faults and name in seen:
            faults.append(duplicate(place, name))
        yield from faults
        seen.add(name)


def volume_source(value: Json, path: str) -> Errors:
    """A volume has exactly one source."""
    sources = [key for key, source in value.items() if key != "name" and source is not None]
    if not sources:
        yield required_error(path, "must specify a volume type")
    for extra in sources[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 volume type")


def file_mode(value: Any, path: str) -> Errors:
    """The permission bits of a file."""
    if isinstance(value, int) and not 0 <= value <= 0o777:
        yield invalid_value(path, value, _MODE)


def relative_path(value: Any, path: str) -> Errors:
    """A path below a volume: relative, and never upwards."""
    if not isinstance(value, str) or not value:
        return
    if value.startswith("/"):
        yield invalid_value(path, value, "must be a relative path")
    yield from no_backsteps(value, path)


def local_path(value: Any, path: str) -> Errors:
    """A relative path that does not begin with two dots either."""
    yield from relative_path(value, path)
    if isinstance(value, str) and value.startswith("..") and not value.startswith("../") and value != "..":
        yield invalid_value(path, value, "must not start with '..'")


def no_backsteps(value: Any, path: str) -> Errors:
    """A path has no ``..`` in it."""
    if isinstance(value, str) and ".." in value.split("/"):
        yield invalid_value(path, value, "must not contain '..'")


def volume_mounts(value: Json, path: str) -> Errors:
    """The mounts and devices of every container of a pod spec name volumes, and no place twice.

    What a mount lacks by itself is said by the rules of its type.
    """
    volumes = {volume.get("name") for volume in items(value, "volumes")}
    for kind in ("initContainers", "containers"):
        for number, container in numbered(value, kind):
            seen: set[Any] = set()
            for key, target in (("volumeMounts", "mountPath"), ("volumeDevices", "devicePath")):
                for index, mount in numbered(container, key):
                    place = f"{path}.{kind}[{number}].{key}[{index}]"
                    if mount.get("name") and mount["name"] not in volumes:
                        yield checks.not_found(f"{place}.name", mount["name"])
                    where = mount.get(target)
                    if where and where in seen:
                        yield invalid_value(f"{place}.{target}", where, "must be unique")
                    seen.add(where)


def sysctls(value: Any, path: str) -> Errors:
    """Kernel parameters have names, of segments between dots or slashes, and no two the same."""
    seen: set[str] = set()
    for index, each in enumerate(value if isinstance(value, list) else ()):
        name = (struct(each) or {}).get("name") or ""
        place = f"{path}[{index}].name"
        if not name:
            yield required_error(place, "")
        elif len(name) > _SYSCTL_LENGTH or _SYSCTL.fullmatch(name) is None:
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex {_SYSCTL.pattern}"
            yield invalid_value(place, name, detail)
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)


def container_names(value: Json, path: str) -> Errors:
    """No two containers of a pod have one name."""
    seen = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in numbered(value, kind):
            name = container.get("name")
            if name and name in seen:
                yield duplicate(f"{path}.{kind}[{index}].name", name)
            seen.add(name)


def host_ports(value: Any, path: str) -> Errors:
    """No two containers use one port of the host."""
    seen = set()
    for number, container in enumerate(value if isinstance(value, list) else ()):
        for index, port in numbered(container, "ports") if isinstance(container, dict) else ():
            if not port.get("hostPort"):
                continue
            text = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if text in seen:
                yield duplicate(f"{path}[{number}].ports[{index}].hostPort", text)
            seen.add(text)


def host_network_ports(value: Json, path: str) -> Errors:
    """In the network of the host, ports of containers are ports of the host."""
    if value.get("hostNetwork") is not True:
        return
    for kind in ("containers", "initContainers"):
        for number, container in numbered(value, kind):
            for index, port in numbered(container, "ports"):
                if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                    place = f"{path}.{kind}[{number}].ports[{index}].containerPort"
                    yield invalid_value(
                        place,
                        port.get("containerPort", 0),
                        "must match `hostPort` when `hostNetwork` is true",
                    )


def port_names(value: Any, path: str) -> Errors:
    """Ports of a container have different names."""
    yield from checks.unique(value, path, "name")


def handler(value: Json, path: str) -> Errors:
    """A probe or hook does exactly one thing."""
    chosen = [key for key in (*_HANDLERS, "sleep") if value.get(key) is not None]
    if not chosen:
        yield required_error(path, "must specify a handler type")
    for extra in chosen[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")


def lifecycle_hook(value: Any, path: str) -> Errors:
    """A hook, where there is one."""
    if isinstance(value, dict):
        yield from handler(value, path)


def success_threshold_one(value: Any, path: str) -> Errors:
    """Liveness and startup probes succeed the first time."""
    if isinstance(value, int) and value != 1:
        yield invalid_value(path, value, "must be 1")


def env_source(value: Json, path: str) -> Errors:
    """An environment variable has a value or one source of it."""
    source = struct(value, "valueFrom")
    if source is None:
        return
    chosen = [key for key in _ENV_SOURCES if source.get(key) is not None]
    place = f"{path}.valueFrom"
    if not chosen:
        yield invalid_value(
            place,
            "",
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )
    elif value.get("value"):
        yield invalid_value(place, "", "may not be specified when `value` is not empty")
    elif len(chosen) > 1:
        yield invalid_value(place, "", "may not have more than one field specified at a time")


def env_from_source(value: Json, path: str) -> Errors:
    """A source of many variables is one of two."""
    chosen = [key for key in ("configMapRef", "secretRef") if value.get(key) is not None]
    if not chosen:
        yield invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(chosen) > 1:
        yield invalid_value(path, "", "may not have more than one field specified at a time")


def resources(value: Any, path: str) -> Errors:
    """Requests and limits: known names, nothing negative, requests not above limits."""
    if not isinstance(value, dict):
        return
    limits = struct(value, "limits") or {}
    for name in sorted(limits):
        place = f"{path}.limits[{name}]"
        yield from resource_name(name, place)
        yield from checks.quantity(limits[name], place)
    for name, request in sorted((struct(value, "requests") or {}).items()):
        place = f"{path}.requests[{name}]"
        yield from resource_name(name, place)
        yield from checks.quantity(request, place)
        yield from _request_within_limit(name, request, limits.get(name), f"{path}.requests")


def _request_within_limit(name: str, request: Any, limit: Any, path: str) -> Errors:
    if limit is None:
        return
    try:
        wanted, most = parse_quantity(str(request)), parse_quantity(str(limit))
    except ValueError:
        return
    if wanted.value > most.value:
        yield invalid_value(path, str(wanted), f"must be less than or equal to {name} limit of {most}")
    elif "/" in name and "kubernetes.io/" not in name and wanted.value != most.value:
        yield invalid_value(path, str(wanted), f"must be equal to {name} limit of {most}")


def resource_name(value: str, path: str) -> Errors:
    """The name of a resource a container may ask for."""
    faults = list(checks.string_format(value, path, "qualified-name"))
    if faults:
        yield from faults
    elif "/" not in value and value not in _STANDARD_RESOURCES and not value.startswith("hugepages-"):
        yield invalid_value(path, value, "must be a standard resource for containers")


def tolerations(value: Any, path: str) -> Errors:
    """What a pod tolerates."""
    for index, toleration in enumerate(value if isinstance(value, list) else ()):
        if isinstance(toleration, dict):
            yield from _toleration(toleration, f"{path}[{index}]")


def _toleration(value: Json, path: str) -> Errors:
    key, operator, effect = value.get("key"), value.get("operator", ""), value.get("effect", "")
    if key:
        yield from checks.string_format(key, f"{path}.key", "qualified-name")
    elif operator != "Exists":
        yield invalid_value(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if value.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid_value(
            f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"
        )
    if operator in ("", "Equal"):
        yield from checks.string_format(value.get("value"), f"{path}.operator", "label-value")
    elif operator == "Exists":
        if value.get("value"):
            yield invalid_value(
                f"{path}.operator", value["value"], "value must be empty when `operator` is 'Exists'"
            )
    elif operator not in ("Lt", "Gt"):
        yield not_supported(f"{path}.operator", operator, ("Equal", "Exists"))
    if effect and effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", effect, ("NoSchedule", "PreferNoSchedule", "NoExecute"))


def topology_spread(value: Any, path: str) -> Errors:
    """How pods spread: one constraint for each key and action."""
    seen = []
    for index, constraint in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(constraint, dict):
            continue
        pair = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if pair in seen:
            text = f"{{{pair[0]}, {pair[1]}}}"
            yield duplicate(f"{path}[{index}].{{topologyKey, whenUnsatisfiable}}", text)
        seen.append(pair)


def updated_spec(value: Any, path: str, old: Any) -> Errors:
    """What of a pod's spec may change: images, deadline, tolerations that are added, scheduling gates that go."""
    if not isinstance(value, dict) or not isinstance(old, dict):
        return
    mutable = (
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        "schedulingGates",
        "nodeSelector",
    )
    if _masked(value, mutable) != _masked(old, mutable):
        yield forbidden(
            path,
            "pod updates may not change fields other than `spec.containers[*].image`,"
            "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
            "existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
            "previously negative)",
        )
    before, after = old.get("tolerations") or [], value.get("tolerations") or []
    if any(toleration not in after for toleration in before):
        yield forbidden(
            f"{path}.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )


def _masked(spec: Json, mutable: tuple[str, ...]) -> Json:
    masked = {key: value for key, value in spec.items() if key not in mutable}
    for kind in ("containers", "initContainers"):
        if isinstance(masked.get(kind), list):
            masked[kind] = [
                {key: value for key, value in container.items() if key != "image"}
                if isinstance(container, dict)
                else container
                for container in masked[kind]
            ]
    return masked


def restart_policy_of_template(value: Any, path: str) -> Errors:
    """Pods that a controller replaces always restart their containers."""
    if value != "Always":
        yield not_supported(path, value or "", ("Always",))


def schedules_somewhere(value: Any, path: str) -> Errors:
    """A required node affinity has at least one term."""
    if isinstance(value, dict) and not lookup(value, "nodeSelectorTerms"):
        yield required_error(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
