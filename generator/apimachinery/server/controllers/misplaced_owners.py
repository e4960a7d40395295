"""Events about objects that name an owner of another namespace: such an owner does not count, and nobody is told
otherwise. An object of the cluster is in no namespace, so that all that namespaces have are elsewhere for it.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form
from apimachinery.server.request.options import WriteOptions
from apimachinery.server.request.target import WriteTarget
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.storage.interface import StorageError

COMPONENT = "garbage-collector-controller"
MANAGER = "kube-controller-manager"
REASON = "OwnerRefInvalidNamespace"
MOST = 1_000
"""So many wait to be written; what is noted past that is not: an event is never worth another's time."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A dependent and the owner that it names."""

    served: Served
    namespace: str
    name: str
    uid: str
    owner_version: str
    owner_kind: str
    owner_name: str
    owner_uid: str


class MisplacedOwners:
    """Writes the events."""

    def __init__(self, catalog: Catalog, writer: Writer) -> None:
        self._catalog = catalog
        self._writer = writer
        self._due: dict[tuple[str, str], Misplaced] = {}

    def note(self, found: Misplaced) -> None:
        """Takes one to be reported."""
        if len(self._due) < MOST:
            self._due[found.uid, found.owner_uid] = found

    async def report(self) -> None:
        """Writes what is due; what cannot be written is left out."""
        due, self._due = self._due, {}
        served = self._catalog.find("", "v1", "events")
        if served is None:
            return
        for found in due.values():
            event = _event(found)
            target = WriteTarget(served, event["metadata"]["namespace"], "", WriteOptions(manager=MANAGER))
            finish_form(event, served)
            with contextlib.suppress(ApiError, StorageError):
                await self._writer.create(target, event)


def _event(found: Misplaced) -> dict[str, Any]:
    moment, namespace = now(), found.namespace
    owner = (
        f"[{found.owner_version}/{found.owner_kind}, namespace: {namespace}, "
        f"name: {found.owner_name}, uid: {found.owner_uid}]"
    )
    involved = {
        "kind": found.served.kind,
        "apiVersion": found.served.api_version,
        "namespace": namespace,
        "name": found.name,
        "uid": found.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{found.name}.{time.time_ns():x}", "namespace": namespace or "default"},
        "involvedObject": {key: value for key, value in involved.items() if value},
        "reason": REASON,
        "message": f'ownerRef {owner} does not exist in namespace "{namespace}"',
        "source": {"component": COMPONENT},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
        "type": "Warning",
        "eventTime": None,
        "reportingComponent": COMPONENT,
        "reportingInstance": "",
    }
