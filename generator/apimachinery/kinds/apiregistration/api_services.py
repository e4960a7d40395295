"""Checks of API services: group-versions that another server may serve."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import FieldError, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

Errors = Iterator[FieldError]

_STATUSES = ("True", "False", "Unknown")


def api_service(value: Json, path: str) -> Errors:
    """An API service is named after its version and group, and says where it is and how it is trusted."""
    del path
    spec = struct(value, "spec") or {}
    group, version = spec.get("group") or "", spec.get("version") or ""
    name = lookup(value, "metadata", "name") or ""
    if name != f"{version}.{group}":
        yield invalid_value(
            "metadata.name",
            name,
            f'must be `spec.version+"."+spec.group`: {f"{version}.{group}"!r}'.replace("'", '"'),
        )
    if not group and version != "v1":
        yield required_error("spec.group", "only v1 may have an empty group and it better be legacy kube")
    for detail in names.dns1123_subdomain_faults(group) if group else ():
        yield invalid_value("spec.group", group, detail)
    for detail in names.dns1035_label_faults(version):
        yield invalid_value("spec.version", version, detail)
    for key, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
        number = spec.get(key) or 0
        if not 0 < number <= most:
            yield invalid_value(f"spec.{key}", number, f"must be positive and less than {most}")
    service = struct(spec, "service")
    if service is None:
        if spec.get("caBundle"):
            yield invalid_value(
                "spec.caBundle",
                f"{_size(spec['caBundle'])} bytes",
                "local APIServices may not have a caBundle",
            )
        if spec.get("insecureSkipTLSVerify"):
            yield invalid_value(
                "spec.insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify"
            )
        return
    for key in ("namespace", "name"):
        if not service.get(key):
            yield required_error(f"spec.service.{key}")
    port = service.get("port")
    if isinstance(port, int) and not 1 <= port <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid_value("spec.service.port", port, detail)
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        yield invalid_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def _size(encoded: str) -> int:
    """How many bytes base64 holds; 0 for what is none, which decoders refuse."""
    try:
        return len(b64decode(encoded))
    except ValueError:
        return 0


def api_service_status(value: Json, path: str, old: Json) -> Errors:
    """Conditions of an API service are true, false or unknown."""
    del path, old
    for index, condition in numbered(struct(value, "status") or {}, "conditions"):
        if (condition.get("status") or "") not in _STATUSES:
            place = f"status.conditions[{index}].status"
            yield not_supported(place, condition.get("status") or "", _STATUSES)
