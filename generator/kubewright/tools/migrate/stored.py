"""Objects that are stored at versions of custom kinds which are not stored any more: a server writes an object as the
storage version when somebody writes it, so each is read and written back, and then the definition's
``status.storedVersions`` says so. A version can only be taken out of a definition when it is not in that list.

It is what a StorageVersionMigration does, on servers of every release and without a controller.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from apimachinery.client.calls import UNSTRUCTURED, Call
from apimachinery.client.endpoint import Request
from apimachinery.client.errors import Conflict, NotFound

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PAGE = 500
Json = dict[str, Any]


class Runs(Protocol):
    """A client."""

    def run(self, call: Call[Any]) -> Any:
        """Sends a call."""


@dataclass(frozen=True, slots=True)
class StoredKind:
    """A definition whose objects may be stored at other versions than ``storage``; ``served`` can be read."""

    name: str
    group: str
    plural: str
    storage: str
    served: str
    old: tuple[str, ...]

    def text(self) -> str:
        """What it says, in a line."""
        return f"{self.name}: objects may be stored as {', '.join(self.old)}; the storage version is {self.storage}"


def stored_kinds(client: Runs) -> list[StoredKind]:
    """The definitions of a cluster with objects to be written again. Raises ApiError, TransportError."""
    found = []
    for crd in _pages(client, CRDS):
        spec, name = crd["spec"], crd["metadata"]["name"]
        storage = next(each["name"] for each in spec["versions"] if each["storage"])
        old = tuple(each for each in crd.get("status", {}).get("storedVersions") or () if each != storage)
        served = [each["name"] for each in spec["versions"] if each["served"]]
        if old and served:
            through = storage if storage in served else served[0]
            found.append(StoredKind(name, spec["group"], spec["names"]["plural"], storage, through, old))
    return found


def write_again(client: Runs, kind: StoredKind) -> int:
    """Writes every object back as it is, then names the storage version alone in the definition's status; gives how
    many objects were written. Raises ApiError, TransportError: the status says what it said then."""
    path = f"/apis/{quote(kind.group)}/{quote(kind.served)}/{quote(kind.plural)}"
    count = 0
    for obj in _pages(client, path):
        count += _write_back(client, kind, obj)
    crd = client.run(_get(f"{CRDS}/{quote(kind.name)}"))
    if [each["name"] for each in crd["spec"]["versions"] if each["storage"]] == [kind.storage]:
        crd["status"]["storedVersions"] = [kind.storage]
        client.run(_put(f"{CRDS}/{quote(kind.name)}/status", crd))
    return count


def _write_back(client: Runs, kind: StoredKind, obj: Json) -> int:
    """Writes an object. Whoever changed it meanwhile has written it as the storage version, whoever deleted it too."""
    metadata = obj["metadata"]
    namespace = f"/namespaces/{quote(metadata['namespace'])}" if metadata.get("namespace") else ""
    root = f"/apis/{quote(kind.group)}/{quote(kind.served)}{namespace}/{quote(kind.plural)}"
    try:
        client.run(_put(f"{root}/{quote(metadata['name'])}", obj))
    except (Conflict, NotFound):
        return 0
    return 1


def _pages(client: Runs, path: str) -> Iterator[Json]:
    """The items of a list, page by page, each with its apiVersion and kind."""
    token = ""
    while True:
        query = urlencode({"limit": _PAGE, **({"continue": token} if token else {})})
        page = client.run(_get(f"{path}?{query}"))
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def _get(path: str) -> Call[Any]:
    return Call(Request("GET", path, {"Accept": "application/json"}), UNSTRUCTURED.decode, repeatable=True)


def _put(path: str, obj: Json) -> Call[Any]:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    body = json.dumps(obj).encode()
    return Call(Request("PUT", path, headers, body), UNSTRUCTURED.decode, repeatable=False)
