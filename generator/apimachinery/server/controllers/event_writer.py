"""Events that the server's own controllers write, as those of a cluster do: at once or not at all, since an event is
never worth another's time."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.clock import now
from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import StorageError


@dataclass(frozen=True, slots=True)
class Involved:
    """The object that an event is about; empty where it is of the cluster, or its uid is not known."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


class EventWriter:
    """Writes events as ``component`` says them, for the field manager ``manager``."""

    def __init__(self, catalog: Catalog, writer: Writer, component: str, manager: str) -> None:
        self._catalog, self._writer = catalog, writer
        self._component, self._manager = component, manager

    async def write(self, about: Involved, reason: str, message: str, *, warning: bool = False) -> None:
        """Writes one; what cannot be written is left out."""
        served = self._catalog.find("", "v1", "events")
        if served is None:
            return
        event = self._event(about, reason, message, "Warning" if warning else "Normal")
        target = WriteTarget(served, event["metadata"]["namespace"], "", WriteOptions(manager=self._manager))
        finish_form(event, served)
        with contextlib.suppress(ApiError, StorageError):
            await self._writer.create(target, event)

    def _event(self, about: Involved, reason: str, message: str, sort: str) -> dict[str, Any]:
        moment = now()
        involved = {
            "kind": about.kind,
            "apiVersion": about.api_version,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{about.name}.{time.time_ns():x}",
                "namespace": about.namespace or "default",
            },
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": sort,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": "",
        }
