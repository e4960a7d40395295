"""Checks of events, which are one kind under two names: core's and that of events.k8s.io.

Theory. What an event must obey depends on the version of the request. Core takes old events, without ``eventTime``,
almost as they come; an event with ``eventTime`` needs to say who did what. events.k8s.io wants the new form and
nothing of the old. Faults are named by core's fields, as kube-apiserver names them, but the reporter, whose field is
``reportingComponent`` in core and ``reportingController`` in events.k8s.io.
"""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import Json, lookup
from apimachinery.meta import names
from apimachinery.meta.field_errors import invalid_value
from apimachinery.meta.field_errors import required as required_error

_UNSET = "needs to be unset"
_KEPT = {
    "regarding": "involvedObject",
    "reason": "reason",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "type": "type",
    "action": "action",
    "related": "related",
    "reportingController": "reportingController",
    "reportingInstance": "reportingInstance",
}


def event(value: Json, path: str) -> Errors:
    """An event of core."""
    del path
    yield from _any_event(value, "involvedObject", "reportingComponent", "message")


def event_update(value: Json, path: str, old: Json) -> Errors:
    """An event of core may change in all ways; it only has to stay valid."""
    del value, path, old
    yield from ()


def new_event(value: Json, path: str) -> Errors:
    """An event of events.k8s.io."""
    del path
    yield from _any_event(value, "regarding", "reportingController", "note")


def new_event_create(value: Json, path: str) -> Errors:
    """What events.k8s.io wants of an event besides: the time, the type, and nothing that is deprecated."""
    del path
    if not value.get("eventTime"):
        yield required_error("eventTime")
    kind = value.get("type", "")
    if kind not in ("Normal", "Warning"):
        yield invalid_value("type", "", f"has invalid value: {kind}")
    for field, name in (
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ):
        if value.get(field):
            yield invalid_value(name, "", _UNSET)
    yield from _series(value)


def new_event_update(value: Json, path: str, old: Json) -> Errors:
    """Of an event of events.k8s.io only the series may change."""
    del path
    if value.get("series") != old.get("series"):
        yield from _series(value)
    for field, name in _KEPT.items():
        if (value.get(field) or None) != (old.get(field) or None):
            yield from checks.immutable(value.get(field), name, old.get(field))
    if value.get("eventTime") != old.get("eventTime"):
        yield invalid_value("eventTime", value.get("eventTime"), "field is immutable")


def _series(value: Json) -> Errors:
    series = value.get("series")
    if isinstance(series, dict):
        if (series.get("count") or 0) < 2:
            yield invalid_value("series.count", "", "should be at least 2")
        if not series.get("lastObservedTime"):
            yield required_error("series.lastObservedTime")


def _any_event(value: Json, regarding: str, reporter: str, note: str) -> Errors:
    namespace = lookup(value, "metadata", "namespace") or ""
    for detail in names.dns1123_subdomain_faults(namespace):
        yield invalid_value("namespace", namespace, detail)
    other = lookup(value, regarding, "namespace") or ""
    if not value.get("eventTime"):
        if namespace != other and not (not other and namespace == "default"):
            yield invalid_value("involvedObject.namespace", other, "does not match event.namespace")
        return
    if not other and namespace not in ("default", "kube-system"):
        yield invalid_value("involvedObject.namespace", other, "does not match event.namespace")
    controller = value.get(reporter) or ""
    if not controller:
        yield required_error(reporter)
    for detail in names.qualified_name_faults(controller):
        yield invalid_value(reporter, controller, detail)
    yield from _text(value, "reportingInstance", "reportingInstance", 128)
    yield from _text(value, "action", "action", 128)
    yield from _text(value, "reason", "reason", 128)
    if len(str(value.get(note) or "").encode("utf-8", "surrogatepass")) > 1024:
        yield invalid_value("message", "", "can have at most 1024 characters")


def _text(value: Json, field: str, name: str, limit: int) -> Errors:
    text: Any = value.get(field) or ""
    if not text:
        yield required_error(name)
    elif len(text.encode("utf-8", "surrogatepass")) > limit:
        yield invalid_value(name, "", f"can have at most {limit} characters")
