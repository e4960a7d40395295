"""Checks of ingresses, network policies and endpoint slices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apimachinery.meta import addresses, names
from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value
from apimachinery.meta.field_errors import required as required_error
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, struct

Errors = Iterator[FieldError]

_WILDCARD_HOST = re.compile(r"\*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_PATH_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_PATH_ENDS = ("/..", "/.")


def ingress_backends(value: Any, path: str) -> Errors:
    """An ingress leads somewhere: a default backend or rules."""
    spec = value if isinstance(value, dict) else {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid_value(path, [], "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from ingress_backend(spec["defaultBackend"], f"{path}.defaultBackend")


def ingress_backend(value: Any, path: str) -> Errors:
    """A backend is a service with a port, or a resource."""
    backend = value if isinstance(value, dict) else {}
    service, resource = struct(backend, "service"), struct(backend, "resource")
    if resource is not None and service is not None:
        yield invalid_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        for key in ("kind", "name"):
            if not resource.get(key):
                yield required_error(f"{path}.resource.{key}")
    elif service is not None:
        yield from _service_backend(service, f"{path}.service")
    else:
        yield required_error(path, "either `service` or `resource` must be specified")


def _service_backend(service: Json, path: str) -> Errors:
    name = service.get("name")
    if not name:
        yield required_error(f"{path}.name")
    else:
        yield from checks.string_format(name, f"{path}.name", "dns-1035-label")
    port = struct(service, "port") or {}
    if port.get("name") and port.get("number"):
        yield invalid_value(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from checks.string_format(port["name"], f"{path}.port.name", "port-name")
    elif port.get("number"):
        yield from checks.port(port["number"], f"{path}.port.number")
    else:
        yield required_error(path, "port name or number is required")


def rule_host(value: Any, path: str) -> Errors:
    """The host of an ingress rule: a DNS name, of which the first label may be a star; no address."""
    if not isinstance(value, str) or not value:
        return
    if not addresses.legacy_ip_faults(value):
        yield invalid_value(path, value, "must be a DNS name, not an IP address")
        return
    if "*" in value:
        if not _WILDCARD_HOST.fullmatch(value):
            yield invalid_value(path, value, _WILDCARD_TEXT)
    else:
        yield from checks.string_format(value, path, "dns-subdomain")


_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def host(value: Any, path: str) -> Errors:
    """Hosts of a certificate."""
    for index, name in enumerate(value if isinstance(value, list) else ()):
        if isinstance(name, str):
            if "*" in name:
                if not _WILDCARD_HOST.fullmatch(name):
                    yield invalid_value(f"{path}[{index}]", name, _WILDCARD_TEXT)
            else:
                for detail in names.dns1123_subdomain_faults(name):
                    yield invalid_value(f"{path}[{index}]", name, detail)


def ingress_path(value: Json, path: str) -> Errors:
    """The path of an ingress rule, as its type wants it."""
    kind, text = value.get("pathType"), value.get("path") or ""
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            yield invalid_value(f"{path}.path", text, "must be an absolute path")
        for part in _PATH_PARTS:
            if part in text:
                yield invalid_value(f"{path}.path", text, f"must not contain '{part}'")
        for end in _PATH_ENDS:
            if text.endswith(end):
                yield invalid_value(f"{path}.path", text, f"cannot end with '{end}'")
    elif kind == "ImplementationSpecific" and text and not text.startswith("/"):
        yield invalid_value(f"{path}.path", text, "must be an absolute path")


def controller_name(value: Any, path: str) -> Errors:
    """The controller of an ingress class: a domain and a path."""
    if not isinstance(value, str) or not value:
        return
    domain, slash, rest = value.partition("/")
    if not slash or not rest:
        yield invalid_value(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    for detail in names.dns1123_subdomain_faults(domain):
        yield invalid_value(path, domain, detail)
    if len(value) > 250:
        yield invalid_value(path, value, "must be no more than 250 characters")


def end_port(value: Json, path: str) -> Errors:
    """A range of ports begins with a number and ends after it."""
    end, begin = value.get("endPort"), value.get("port")
    if end is None:
        return
    if begin is None:
        yield required_error(f"{path}.endPort", "must specify `port`")
    elif isinstance(begin, str):
        yield invalid_value(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
    elif isinstance(end, int) and end < begin:
        yield invalid_value(f"{path}.endPort", end, "must be greater than or equal to `port`")
    else:
        yield from checks.port(end, f"{path}.endPort")


def one_peer(value: Json, path: str) -> Errors:
    """A peer is selected by labels or by addresses."""
    selected = value.get("podSelector") is not None or value.get("namespaceSelector") is not None
    if selected and value.get("ipBlock") is not None:
        yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not selected and value.get("ipBlock") is None:
        yield required_error(path, "must specify a peer")
