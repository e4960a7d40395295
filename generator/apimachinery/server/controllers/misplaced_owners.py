"""Events about objects that name an owner of another namespace: such an owner does not count, and nobody is told
otherwise. An object of the cluster is in no namespace, so that all that namespaces have are elsewhere for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.server.controllers.event_writer import EventWriter, Involved
from apimachinery.server.write.writes import Writer

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
        self._events = EventWriter(catalog, writer, COMPONENT, MANAGER)
        self._due: dict[tuple[str, str], Misplaced] = {}

    def note(self, found: Misplaced) -> None:
        """Takes one to be reported."""
        if len(self._due) < MOST:
            self._due[found.uid, found.owner_uid] = found

    async def report(self) -> None:
        """Writes what is due."""
        due, self._due = self._due, {}
        for found in due.values():
            served, namespace = found.served, found.namespace
            owner = (
                f"[{found.owner_version}/{found.owner_kind}, namespace: {namespace}, "
                f"name: {found.owner_name}, uid: {found.owner_uid}]"
            )
            message = f'ownerRef {owner} does not exist in namespace "{namespace}"'
            about = Involved(served.api_version, served.kind, namespace, found.name, found.uid)
            await self._events.write(about, REASON, message, warning=True)
