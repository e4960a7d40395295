"""What a program wrote and its caches do not have yet: so that it reads its own writes. No I/O.

A written object counts while the cache is at an older version than the answer, and is dropped as soon as the cache is
there. Versions can be compared since kube-apiserver keeps them in etcd's order, and as text of digits; others are not
compared, and what was written under them is not shown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.endpoint import Request
from apimachinery.meta.resources import Resource

Key: TypeAlias = tuple[str, str]
KEPT_SECONDS: Final = 600.0
MANY: Final = 1000


@dataclass(frozen=True, slots=True)
class Entry:
    """One write: the object as the server answered it, or None and the uid of what was deleted."""

    version: str
    object: Any
    uid: str
    at: float


class _Details(msgspec.Struct):
    uid: str = ""


class _Deleted(msgspec.Struct):
    details: _Details = msgspec.field(default_factory=_Details)


_read: Final = msgspec.json.Decoder(_Deleted).decode


class WrittenObjects:
    """The last write of each object, by resource; safe to share between threads."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._entries: dict[tuple[str, str], dict[Key, Entry]] = {}
        self._now = now

    def follow(self, resource: Resource) -> None:
        """Keeps writes of a resource from now on; those of others are not kept."""
        with self._lock:
            self._entries.setdefault((resource.group, resource.plural), {})

    def note(self, request: Request, body: bytes, value: Any) -> None:
        """Takes note of a write and its answer: the hook of ``Client.noting``."""
        path, _, query = request.path.partition("?")
        address = _address(path)
        if address is None or "dryRun=" in query:
            return
        resource, namespace, name, subresource = address
        if subresource not in ("", "status"):
            return
        if request.method == "DELETE":
            if value is None and name:
                self._keep(resource, (namespace, name), Entry("", None, _uid(body), self._now()))
            return
        version = resource_version_of(value)
        if version.isdigit():
            key = (namespace_of(value) or "", name_of(value))
            self._keep(resource, key, Entry(version, value, "", self._now()))

    def of(self, resource: Resource) -> dict[Key, Entry]:
        """The writes of a resource."""
        with self._lock:
            return dict(self._entries.get((resource.group, resource.plural), ()))

    def drop(self, resource: Resource, keys: Iterable[Key]) -> None:
        """Forgets writes that the cache has."""
        with self._lock:
            entries = self._entries.get((resource.group, resource.plural), {})
            for key in keys:
                entries.pop(key, None)

    def _keep(self, resource: tuple[str, str], key: Key, entry: Entry) -> None:
        with self._lock:
            entries = self._entries.get(resource)
            if entries is None:
                return
            known = entries.get(key)
            if known is not None and known.object is not None and entry.object is not None:
                if not newer(entry.version, known.version):
                    return
            entries[key] = entry
            if len(entries) > MANY and entry.at - next(iter(entries.values())).at > KEPT_SECONDS:
                self._entries[resource] = {
                    k: e for k, e in entries.items() if entry.at - e.at <= KEPT_SECONDS
                }


def newer(version: str, than: str) -> bool:
    """Whether a version is after another; False where they cannot be compared."""
    return version.isdigit() and than.isdigit() and int(version) > int(than)


def _uid(body: bytes) -> str:
    try:
        return _read(body).details.uid
    except msgspec.DecodeError:
        return ""


def _address(path: str) -> tuple[tuple[str, str], str, str, str] | None:
    """(group, plural), namespace, name and subresource of the path of an object or a collection."""
    parts = path.strip("/").split("/")
    skip = {"api": 2, "apis": 3}.get(parts[0])
    if skip is None or len(parts) <= skip:
        return None
    group, rest = (parts[1] if skip == 3 else ""), parts[skip:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    rest += ["", ""]
    return (group, rest[0]), namespace, rest[1], rest[2]
