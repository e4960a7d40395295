"""Checks of ingresses, network policies and endpoint slices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apimachinery.kinds import checks, formats
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.services import host_name
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    of_missing,
    struct,
)
from apimachinery.kinds.gates import enabled
from apimachinery.meta import addresses, names
from apimachinery.meta.field_errors import forbidden, invalid_value, too_long
from apimachinery.meta.field_errors import required as required_error

_WILDCARD_HOST = re.compile(r"\*(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_PATH_PARTS = ("//", "/./", "/../", "%2f", "%2F")
_PATH_ENDS = ("/..", "/.")


@of_missing
def ingress_backends(value: Any, path: str) -> Errors:
    """An ingress leads somewhere: a default backend or rules."""
    spec = value if isinstance(value, dict) else {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid_value(path, spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from ingress_backend(spec["defaultBackend"], f"{path}.defaultBackend")


@of_missing
def ingress_backend(value: Any, path: str) -> Errors:
    """A backend is a service with a port, or a resource."""
    backend = value if isinstance(value, dict) else {}
    service, resource = struct(backend, "service"), struct(backend, "resource")
    if resource is not None and service is not None:
        yield invalid_value(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference(resource, f"{path}.resource")
    elif service is not None:
        yield from _service_backend(service, path)
    else:
        yield invalid_value(path, "", "resource or service backend is required")


def path_backend(value: Json, path: str) -> Errors:
    """The backend of a path; of one without a type nothing more is asked."""
    if value.get("pathType") is not None:
        yield from ingress_backend(value.get("backend"), f"{path}.backend")


def _reference(value: Json, path: str) -> Errors:
    """A group, a kind and a name."""
    if value.get("apiGroup") is not None:
        yield from checks.each_fault(value["apiGroup"], f"{path}.apiGroup", "dns-subdomain")
    yield from checks.name(value.get("kind"), f"{path}.kind", "path-segment")
    yield from checks.name(value.get("name"), f"{path}.name", "path-segment")


def _service_backend(service: Json, path: str) -> Errors:
    form = "dns-label" if enabled("RelaxedServiceNameValidation") else "dns-1035-label"
    yield from checks.name(service.get("name"), f"{path}.service.name", form)
    port = struct(service, "port") or {}
    if port.get("name") and port.get("number"):
        yield invalid_value(path, "", "cannot set both port name & port number")
    elif port.get("name"):
        yield from checks.string_format(port["name"], f"{path}.service.port.name", "port-name")
    elif port.get("number"):
        yield from checks.port(port["number"], f"{path}.service.port.number")
    else:
        yield required_error(path, "port name or number is required")


_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    r"regex used for validation is '\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def rule_host(value: Any, path: str) -> Errors:
    """The host of an ingress rule: no address."""
    if value and not formats.ip_faults(value):
        yield invalid_value(path, value, "must be a DNS name, not an IP address")
    elif value:
        yield from host(value, path)


def host(value: Any, path: str) -> Errors:
    """A DNS name, of which the first label may be a star."""
    if "*" not in (value or ""):
        yield from checks.each_fault(value, path, "dns-subdomain")
    elif not _WILDCARD_HOST.fullmatch(value):
        yield invalid_value(path, value, _WILDCARD_TEXT)


def ingress_path(value: Json, path: str) -> Errors:
    """The path of an ingress rule, as its type wants it."""
    kind, text = value.get("pathType"), value.get("path") or ""
    if kind in ("Exact", "Prefix"):
        if not text.startswith("/"):
            yield invalid_value(f"{path}.path", text, "must be an absolute path")
        # Proxies read these differently: a path could reach what another rule guards.
        for part in _PATH_PARTS:
            if part in text:
                yield invalid_value(f"{path}.path", text, f"must not contain '{part}'")
        for end in _PATH_ENDS:
            if text.endswith(end):
                yield invalid_value(f"{path}.path", text, f"cannot end with '{end}'")
    elif kind == "ImplementationSpecific" and text and not text.startswith("/"):
        yield invalid_value(f"{path}.path", text, "must be an absolute path")


def ingress_paths(value: Any, path: str, old: Any = None) -> Errors:
    """The paths of all rules. A stored ingress with a wrong one may have others."""
    if any(any(ingress_path(each, "")) for _, each in _paths(old, "")):
        return
    for place, each in _paths(value, path):
        yield from ingress_path(each, place)


def _paths(spec: Any, path: str) -> Iterator[tuple[str, Json]]:
    for index, rule in numbered(spec if isinstance(spec, dict) else {}, "rules"):
        for number, each in numbered(struct(rule, "http") or {}, "paths"):
            yield f"{path}.rules[{index}].http.paths[{number}]", each


def wrong_ingress_class(value: Json, path: str) -> Errors:
    """The class in the spec and that in the annotation, which came before it, are one."""
    del path
    old_name, name = "kubernetes.io/ingress.class", lookup(value, "spec", "ingressClassName")
    annotation = (lookup(value, "metadata", "annotations") or {}).get(old_name)
    if annotation is not None and name is not None and annotation != name:
        detail = "must match `ingressClassName` when both are specified"
        yield invalid_value(f"annotations.{old_name}", annotation, detail)


def secret_names(value: Any, path: str, old: Any = None) -> Errors:
    """The secrets of an ingress's certificates. A stored ingress with a wrong one may have others."""
    before = [each.get("secretName") or "" for each in items({"tls": old}, "tls")]
    if any(name and names.dns1123_subdomain_faults(name) for name in before):
        return
    for index, each in numbered({"tls": value}, "tls"):
        yield from checks.string_format(
            each.get("secretName"), f"{path}[{index}].secretName", "dns-subdomain"
        )


def ingress_status(value: Json, path: str, old: Json) -> Errors:
    """Where an ingress is reached."""
    del path
    place = "status.loadBalancer.ingress"
    kept = {each.get("ip") for each in items(lookup(old, "status", "loadBalancer") or {}, "ingress")}
    for index, each in numbered(lookup(value, "status", "loadBalancer") or {}, "ingress"):
        text = each.get("ip")
        if text and text not in kept:
            yield from checks.each_fault(text, f"{place}[{index}].ip", "ip")
        yield from host_name(each.get("hostname"), f"{place}[{index}].hostname")


_HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def controller(value: Any, path: str) -> Errors:
    """Who serves the ingresses of a class: a domain and a path below it."""
    if value is None:
        return
    if len(value.encode()) > 250:
        yield too_long(path, 250)
    domain, _, rest = value.partition("/")
    if not value:
        yield required_error(path)
    elif not domain or not rest:
        yield invalid_value(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from checks.each_fault(domain, path, "dns-subdomain")
        if not _HTTP_PATH.fullmatch(rest):
            detail = f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')"
            yield invalid_value(path, rest, detail)


@of_missing
def blocks(value: Any, path: str) -> Errors:
    """The blocks that services get addresses from: one, or one of each family."""
    given = lookup(value, "cidrs") or []
    place = f"{path}.cidrs"
    if not given:
        yield required_error(place, "at least one CIDR required")
    elif len(given) > 2:
        yield invalid_value(place, {"CIDRs": given}, "may only hold up to 2 values")
    else:
        for index, text in enumerate(given):
            for detail in addresses.cidr_faults(text):
                yield invalid_value(f"{place}[{index}]", text, detail)
        parsed = [addresses.parse_cidr(text) for text in given]
        families = [each.network.version for each in parsed if each is not None]
        if len(families) == 2 and families[0] == families[1]:
            detail = (
                "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
            )
            yield invalid_value(place, given, detail)


def kept_blocks(value: Any, path: str, old: Any) -> Errors:
    """Blocks stay; a second one may come."""
    given, before = lookup(value, "cidrs") or [], lookup(old, "cidrs") or []
    place, detail = f"{path}.cidrs", "field is immutable"
    if len(given) != len(before) and (len(before), len(given)) != (1, 2):
        yield invalid_value(place, lookup(value, "cidrs"), detail)
        return
    for index, (now, was) in enumerate(zip(given, before, strict=False)):
        if now != was:
            yield invalid_value(f"{place}[{index}]", now, detail)
    if len(given) > len(before):
        yield from blocks(value, path)


def network_policy(value: Any, path: str, old: Any = None) -> Errors:
    """The blocks of addresses of a policy, of which stored ones stay good, and the types of the policy."""
    kept = {text for _, block in _peers(old or {}, "") for text in (block.get("cidr"), *_excepted(block))}
    for place, block in _peers(value or {}, path):
        yield from _block(block, place, kept)
    types = lookup(value, "policyTypes") or []
    if len(types) > 2:
        yield invalid_value(f"{path}.policyTypes", types, "may not specify more than two policyTypes")
        return
    for index, kind in enumerate(types):
        yield from checks.supported(kind, f"{path}.policyTypes[{index}]", ("Ingress", "Egress"))


def _peers(spec: Json, path: str) -> Iterator[tuple[str, Json]]:
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for number, rule in numbered(spec, direction):
            for index, peer in numbered(rule, side):
                block = struct(peer, "ipBlock")
                if block is not None:
                    yield f"{path}.{direction}[{number}].{side}[{index}].ipBlock", block


def _excepted(block: Json) -> list[str]:
    return block.get("except") or []


def _block(block: Json, path: str, kept: set[Any]) -> Errors:
    whole = block.get("cidr")
    if not whole:
        yield required_error(f"{path}.cidr")
        return
    if whole not in kept:
        yield from checks.each_fault(whole, f"{path}.cidr", "cidr")
    outer = addresses.parse_cidr(whole)
    for index, text in enumerate(_excepted(block) if outer is not None else ()):
        place = f"{path}.except[{index}]"
        if text not in kept:
            yield from checks.each_fault(text, place, "cidr")
        inner = addresses.parse_cidr(text)
        if outer is None or inner is None:
            continue
        wide, narrow = outer.network, inner.network
        if (
            wide.version != narrow.version
            or wide.prefixlen >= narrow.prefixlen
            or (narrow.network_address not in wide)
        ):
            yield invalid_value(place, text, "must be a strict subset of `cidr`")


def end_port(value: Json, path: str) -> Errors:
    """A range of ports begins with a number and ends after it."""
    end, begin = value.get("endPort"), value.get("port")
    if end is None:
        return
    if begin is None:
        yield invalid_value(f"{path}.endPort", end, "may not be specified when `port` is not specified")
    elif isinstance(begin, str):
        yield invalid_value(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
    elif isinstance(end, int) and end < begin:
        yield invalid_value(f"{path}.endPort", begin, "must be greater than or equal to `port`")
        yield from checks.between(end, f"{path}.endPort", 1, 65535)
    else:
        yield from checks.between(end, f"{path}.endPort", 1, 65535)


def one_peer(value: Json, path: str) -> Errors:
    """A peer is selected by labels or by addresses."""
    selected = value.get("podSelector") is not None or value.get("namespaceSelector") is not None
    if selected and value.get("ipBlock") is not None:
        yield forbidden(path, "may not specify both ipBlock and another peer")
    elif not selected and value.get("ipBlock") is None:
        yield required_error(path, "must specify a peer")
