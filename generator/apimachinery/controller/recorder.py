# Made from async_recorder.py by build/plain.py: edit that one.
"""Events about objects (``kubectl describe`` shows them), aggregated, for threads."""

from __future__ import annotations

import logging
import socket
import uuid
from datetime import UTC, datetime
from typing import Any

from apimachinery.client.access import name_of, namespace_of, resource_version_of, uid_of
from apimachinery.client.config import ConfigError
from apimachinery.client.connection import Client
from apimachinery.client.errors import ApiError, NotFound, TransportError
from apimachinery.client.resource import DynamicResource
from apimachinery.controller.event_series import EventKind, EventSeries, Occurrence, Series
from apimachinery.controller.kinds import shown
from apimachinery.meta.resources import Resource
from apimachinery.queue.clock import SYSTEM_CLOCK, Clock
from apimachinery.typed.object import Object

EVENTS = Resource(
    group="", version="v1", kind="Event", plural="events", singular="event", namespaced=True, verbs=()
)

_log = logging.getLogger("kubewright.controller")


class Recorder:
    """Writes events as ``component``. What cannot be written is logged: an event is never worth an error."""

    def __init__(self, client: Client, component: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._api = DynamicResource(client, EVENTS)
        self._component = component
        self._series = EventSeries(clock)

    def event(self, obj: Object, kind: EventKind, reason: str, message: str) -> None:
        """Says of an object that something happened: ``reason`` is one word in CamelCase, ``message`` a sentence."""
        series = self._series.take(Occurrence(uid_of(obj) or name_of(obj), kind, reason, message))
        if series is None:
            _log.debug("event of %s left out, it has too many: %s %s", shown(obj), reason, message)
            return
        try:
            self._write(obj, kind, reason, series)
        except (ApiError, TransportError, ConfigError) as error:
            _log.warning("event %s of %s was not written: %s", reason, shown(obj), error)

    def _write(self, obj: Object, kind: EventKind, reason: str, series: Series) -> None:
        namespace = namespace_of(obj) or "default"
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if series.name:
            changed = {"count": series.count, "lastTimestamp": now, "message": series.message}
            try:
                self._api.patch(series.name, changed, namespace=namespace)
                return
            except NotFound:  # events are deleted after an hour
                series.count = 1
        name = f"{name_of(obj)}.{uuid.uuid4().hex[:16]}"
        reference: dict[str, Any] = {
            "apiVersion": obj.API_VERSION,
            "kind": obj.KIND,
            "name": name_of(obj),
            "uid": uid_of(obj),
            "resourceVersion": resource_version_of(obj),
        }
        if namespace_of(obj):
            reference["namespace"] = namespace_of(obj)
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "type": kind,
            "reason": reason,
            "message": series.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": socket.gethostname(),
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": series.count,
        }
        self._api.create(body, namespace=namespace)
        series.name = name
