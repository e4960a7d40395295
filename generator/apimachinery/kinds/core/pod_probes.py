"""Probes of containers and the hooks around their lives: what is done, and how often."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json, items, struct
from apimachinery.meta.field_errors import forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_SCHEMES = ("HTTP", "HTTPS")


def probes(container: Json, path: str) -> Errors:
    """The probes of a container that keeps running; readiness comes and goes, so it may take several successes."""
    for key in _PROBES:
        probe = container.get(key)
        if not isinstance(probe, dict):
            continue
        place = f"{path}.{key}"
        yield from _handler(probe, place)
        for count in _COUNTS:
            if (number := probe.get(count)) is not None:
                yield from checks.minimum(number, f"{place}.{count}")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None:
            yield from checks.more_than(grace, f"{place}.terminationGracePeriodSeconds")
        if key == "readinessProbe":
            if grace is not None:
                detail = "must not be set for readinessProbes"
                yield invalid_value(f"{place}.terminationGracePeriodSeconds", grace, detail)
        elif probe.get("successThreshold", 1) != 1:
            yield invalid_value(f"{place}.successThreshold", probe["successThreshold"], "must be 1")


def hooks(container: Json, path: str, grace: Any) -> Errors:
    """What a container does after its start and before its end; ``grace``: the seconds that its pod has for it."""
    lifecycle = struct(container, "lifecycle")
    if lifecycle is None:
        return
    for key in ("postStart", "preStop"):
        hook = lifecycle.get(key)
        if isinstance(hook, dict):
            yield from _handler(hook, f"{path}.lifecycle.{key}", grace)


def _handler(value: Json, path: str, grace: Any = None) -> Errors:
    """A probe or hook does exactly one thing; only the first that it names is looked at."""
    chosen = [key for key in _HANDLERS if value.get(key) is not None]
    if not chosen:
        yield required_error(path, "must specify a handler type")
        return
    kind, action = chosen[0], struct(value, chosen[0]) or {}
    place = f"{path}.{kind}"
    if kind == "exec":
        if not action.get("command"):
            yield required_error(f"{place}.command")
    elif kind == "httpGet":
        yield from _http_get(action, place)
    elif kind == "tcpSocket":
        yield from checks.port_or_name(action.get("port"), f"{place}.port")
    elif kind == "grpc":
        yield from checks.between(action.get("port") or 0, f"{place}.port", 1, 65535)
    elif grace is not None and not 0 <= (action.get("seconds") or 0) <= grace:
        detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        yield invalid_value(place, action.get("seconds") or 0, detail)
    for extra in chosen[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")


def _http_get(value: Json, path: str) -> Errors:
    if not value.get("path"):
        yield required_error(f"{path}.path")
    yield from checks.port_or_name(value.get("port"), f"{path}.port")
    scheme = value.get("scheme") or ""
    if scheme not in _SCHEMES:
        yield not_supported(f"{path}.scheme", scheme, _SCHEMES)
    for header in items(value, "httpHeaders"):
        yield from checks.each_fault(header.get("name") or "", f"{path}.httpHeaders", "http-header")
