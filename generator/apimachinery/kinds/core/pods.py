"""Checks of pods that compare several places: volumes and their mounts, ports, handlers, tolerations."""

from __future__ import annotations

import re
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.pod_resources import container_resources
from apimachinery.kinds.fields import (
    Json,
    numbered,
    of_missing,
    struct,
)
from apimachinery.meta.field_errors import duplicate, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SYSCTL_LENGTH = 253
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


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


def sysctls(value: Any, path: str) -> Errors:
    """Kernel parameters have names, of segments between dots or slashes, and no two the same."""
    seen: set[str] = set()
    for index, each in enumerate(value if isinstance(value, list) else ()):
        name = (struct(each) or {}).get("name") or ""
        place = f"{path}[{index}].name"
        if not name:
            yield required_error(place, "")
        elif len(name) > _SYSCTL_LENGTH or _SYSCTL.fullmatch(name) is None:
            detail = f"must have at most {_SYSCTL_LENGTH} characters and match regex ^{_SYSCTL.pattern}$"
            yield invalid_value(place, name, detail)
        elif name in seen:
            yield duplicate(place, name)
        seen.add(name)


def container_names(value: Json, path: str) -> Errors:
    """No two containers of a pod have one name."""
    seen = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for index, container in numbered(value, kind):
            name = container.get("name") or ""
            if (name or kind != "initContainers") and name in seen:
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


def init_host_ports(value: Any, path: str) -> Errors:
    """Init containers run one by one: only ports of one of them must differ."""
    for container in value if isinstance(value, list) else ():
        yield from host_ports([container], path)


def host_network_ports(value: Json, path: str) -> Errors:
    """In the network of the host, ports of containers are ports of the host."""
    if value.get("hostNetwork") is not True:
        return
    for number, container in numbered(value, "containers"):
        for index, port in numbered(container, "ports"):
            if port.get("hostPort") and port["hostPort"] != port.get("containerPort"):
                place = f"{path}.containers[{number}].ports[{index}].hostPort"
                yield invalid_value(
                    place, port["hostPort"], "must match `containerPort` when `hostNetwork` is true"
                )


def own_host_ports(value: Any, path: str) -> Errors:
    """A pod, unlike a template, has said which ports of the host it uses in its network."""
    if not isinstance(value, dict) or value.get("hostNetwork") is not True:
        return
    for number, container in numbered(value, "containers"):
        for index, port in numbered(container, "ports"):
            if not port.get("hostPort") and port.get("containerPort"):
                place = f"{path}.containers[{number}].ports[{index}].hostPort"
                yield invalid_value(place, 0, "must match `containerPort` when `hostNetwork` is true")


def dns_config(value: Any, path: str) -> Errors:
    """Resolvers of a pod: the limits are those of Linux' libc."""
    if not isinstance(value, dict):
        return
    servers, searches = value.get("nameservers") or [], value.get("searches") or []
    if len(servers) > 3:
        yield invalid_value(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from checks.each_fault(server, f"{path}.nameservers[{index}]", "ip")
    if len(searches) > 32:
        yield invalid_value(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        detail = "must not have more than 2048 characters (including spaces) in the search list"
        yield invalid_value(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            place = f"{path}.searches[{index}]"
            yield from checks.each_fault(search.removesuffix("."), place, "dns-subdomain-underscore")
    for index, option in numbered(value, "options"):
        if not option.get("name"):
            yield required_error(f"{path}.options[{index}]", "must not be empty")


def scheduling_gates(value: Any, path: str) -> Errors:
    """What holds a pod back from being scheduled, each once."""
    seen = set()
    for index, gate in enumerate(value if isinstance(value, list) else ()):
        name = gate.get("name") or "" if isinstance(gate, dict) else ""
        yield from checks.each_fault(name, f"{path}[{index}]", "qualified-name")
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.add(name)


def host_aliases(value: Any, path: str) -> Errors:
    """Lines of a pod's hosts file."""
    for index, alias in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(alias, dict):
            continue
        yield from checks.each_fault(alias.get("ip") or "", f"{path}[{index}].ip", "ip")
        for number, name in enumerate(alias.get("hostnames") or ()):
            yield from checks.each_fault(name, f"{path}[{index}].hostnames[{number}]", "dns-subdomain")


def template_metadata(value: Any, path: str) -> Errors:
    """Labels and annotations of a template, which faults name as if they were fields of the template itself."""
    place = path.removesuffix(".metadata")
    if isinstance(value, dict):
        yield from checks.labels(value.get("labels"), f"{place}.labels")
        yield from checks.annotation_map(value.get("annotations"), f"{place}.annotations")


def overhead(value: Any, path: str, shown: str = "") -> Errors:
    """What running a pod takes besides its containers; ``shown`` is the path of the faults where it is another."""
    yield from container_resources({"limits": value} if value else None, shown or path)


def port_names(value: Any, path: str) -> Errors:
    """Ports of a container have different names."""
    yield from checks.unique(value, path, "name")


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
    """A source of many variables is one of two; which item of the list is at fault is not said."""
    path = path.rpartition("[")[0]
    chosen = [key for key in ("configMapRef", "secretRef") if value.get(key) is not None]
    if not chosen:
        yield invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(chosen) > 1:
        yield invalid_value(path, "", "may not have more than one field specified at a time")


@of_missing
def restart_policy_of_template(value: Any, path: str) -> Errors:
    """Pods that a controller replaces always restart their containers."""
    if value != "Always":
        yield not_supported(path, value or "", ("Always",))
