"""Conversions from API versions that are gone, where rules cannot decide. Each has a way to the hub and one back."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds.fields import (
    Json,
    copied,
    created,
    items,
    lookup,
    struct,
)

PRESERVE_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_DEFAULT_SHARES = 30
_HOST, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_OF_EACH_VERSION = ("schema", "subresources", "additionalPrinterColumns")


def selector_from_template_to_hub(obj: Json) -> None:
    """Writes the labels of the template as the selector that was implied."""
    spec = struct(obj, "spec")
    labels = lookup(obj, "spec", "template", "metadata", "labels")
    if spec is not None and spec.get("selector") is None and isinstance(labels, dict) and labels:
        spec["selector"] = {"matchLabels": copied(labels)}


def selector_from_template_to_spoke(obj: Json) -> None:
    """Changes nothing: every version may have a selector."""
    del obj


def one_at_a_time_to_hub(obj: Json) -> None:
    """Rolling updates of extensions/v1beta1 went one pod at a time where nothing else was said."""
    spec = struct(obj, "spec")
    if spec is None or lookup(spec, "strategy", "type") not in (None, "", "RollingUpdate"):
        return
    rolling = created(spec, "strategy", "rollingUpdate")
    if rolling is not None:
        rolling.setdefault("maxSurge", 1)
        rolling.setdefault("maxUnavailable", 1)


def one_at_a_time_to_spoke(obj: Json) -> None:
    """Writes out a quarter of the pods, which apps/v1 means by a missing value."""
    if lookup(obj, "spec", "strategy", "type") in (None, "", "RollingUpdate"):
        rolling = created(obj, "spec", "strategy", "rollingUpdate")
        if rolling is not None:
            rolling.setdefault("maxSurge", "25%")
            rolling.setdefault("maxUnavailable", "25%")


def _backends(obj: Json) -> list[Json]:
    spec = struct(obj, "spec") or {}
    found = [struct(spec, "defaultBackend")]
    for rule in items(spec, "rules"):
        found += [struct(path, "backend") for path in items(struct(rule, "http") or {}, "paths")]
    return [backend for backend in found if backend is not None]


def service_ports_to_hub(obj: Json) -> None:
    """Splits the port of a backend into fields for a number and a name."""
    for backend in _backends(obj):
        port = backend.pop("servicePort", None)
        if port is None or port == "":
            continue
        number = (
            int(port)
            if isinstance(port, str) and port.isascii() and port.isdigit() and len(port) < 6
            else port
        )
        place = created(backend, "service", "port")
        if place is not None:
            place["name" if isinstance(number, str) else "number"] = number


def service_ports_to_spoke(obj: Json) -> None:
    """Joins number and name of a port in one field."""
    for backend in _backends(obj):
        service = struct(backend, "service")
        port = service.pop("port", None) if service is not None else None
        if isinstance(port, dict) and (value := port.get("name") or port.get("number")):
            backend["servicePort"] = value
        if service is not None and not service:
            del backend["service"]


def topology_to_hub(obj: Json) -> None:
    """Moves node and zone of an endpoint to their fields, and the rest of its topology to ``deprecatedTopology``."""
    for endpoint in items(obj, "endpoints"):
        topology = endpoint.pop("topology", None)
        if not isinstance(topology, dict):
            continue
        rest = dict(topology)
        host, zone = rest.pop(_HOST, None), rest.pop(_ZONE, None)
        if host is not None:
            endpoint.setdefault("nodeName", host)
        if zone is not None:
            endpoint.setdefault("zone", zone)
        if rest:
            endpoint["deprecatedTopology"] = rest


def topology_to_spoke(obj: Json) -> None:
    """Node and zone are entries of the topology too."""
    for endpoint in items(obj, "endpoints"):
        topology = endpoint.pop("deprecatedTopology", None)
        topology = dict(topology) if isinstance(topology, dict) else {}
        if endpoint.get("nodeName") is not None:
            topology[_HOST] = endpoint["nodeName"]
        if endpoint.get("zone") is not None:
            topology[_ZONE] = endpoint.pop("zone")
        if topology:
            endpoint["topology"] = topology


def concurrency_shares_to_hub(obj: Json) -> None:
    """0 shares meant the default in the betas, unless an annotation said that 0 is meant."""
    annotations = struct(obj, "metadata", "annotations") or {}
    limited = struct(obj, "spec", "limited")
    if limited is not None and not limited.get("nominalConcurrencyShares"):
        limited["nominalConcurrencyShares"] = 0 if PRESERVE_ZERO in annotations else _DEFAULT_SHARES
    if annotations.pop(PRESERVE_ZERO, None) is not None and not annotations:
        del obj["metadata"]["annotations"]


def concurrency_shares_to_spoke(obj: Json) -> None:
    """0 shares are marked by the annotation; missing ones are the default."""
    limited = struct(obj, "spec", "limited")
    if limited is None:
        return
    key = "assuredConcurrencyShares" if "assuredConcurrencyShares" in limited else "nominalConcurrencyShares"
    shares = limited.get(key)
    if shares is None:
        limited[key] = _DEFAULT_SHARES
    elif shares == 0 and (annotations := created(obj, "metadata", "annotations")) is not None:
        annotations[PRESERVE_ZERO] = ""


def definition_versions_to_hub(obj: Json) -> None:
    """Repeats for each version what a definition said once."""
    spec = struct(obj, "spec")
    if spec is None:
        return
    if not spec.get("scope"):  # generators of that time wrote "", which meant the default
        spec["scope"] = "Namespaced"
    name = spec.pop("version", None)
    if not spec.get("versions") and name:
        spec["versions"] = [{"name": name, "served": True, "storage": True}]
    shared: dict[str, Any] = {
        "schema": spec.pop("validation", None),
        "subresources": spec.pop("subresources", None),
        "additionalPrinterColumns": spec.pop("additionalPrinterColumns", None),
    }
    for version in items(spec, "versions"):
        for key, value in shared.items():
            if value is not None and version.get(key) is None:
                version[key] = copied(value)
        for column in items(version, "additionalPrinterColumns"):
            if "JSONPath" in column:
                column["jsonPath"] = column.pop("JSONPath")


def definition_versions_to_spoke(obj: Json) -> None:
    """Moves what all versions have in common to the spec, as v1beta1 wants it, and names the first version there."""
    spec = struct(obj, "spec")
    if spec is None:
        return
    versions = list(items(spec, "versions"))
    for version in versions:
        for column in items(version, "additionalPrinterColumns"):
            if "jsonPath" in column:
                column["JSONPath"] = column.pop("jsonPath")
    if versions and versions[0].get("name"):
        spec["version"] = versions[0]["name"]
    for key in _OF_EACH_VERSION:
        said = [version.get(key) for version in versions]
        if said and said[0] is not None and all(value == said[0] for value in said):
            spec["validation" if key == "schema" else key] = copied(said[0])
            for version in versions:
                del version[key]
