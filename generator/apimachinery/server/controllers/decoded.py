"""Objects of the watch cache, decoded once for all controllers that look at them. What it gives must not be changed."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.storage.interface import Event, Record
from apimachinery.storage.watch_cache import ResourceCache, WatchCache

VERSIONS = {"autoscaling": "v2"}
"""Of groups whose newest version is not v1."""


class DecodedObjects:
    """Resources by ``PLURAL`` or ``PLURAL.GROUP``; one that is not served is empty."""

    def __init__(self, catalog: Catalog, cache: WatchCache) -> None:
        self._catalog = catalog
        self._cache = cache
        self._resources: dict[str, DecodedResource | None] = {}

    def resource(self, name: str) -> DecodedResource | None:
        """One of them; None where it is not served."""
        if name not in self._resources:
            plural, _, group = name.partition(".")
            served = self._catalog.find(group, VERSIONS.get(group, "v1"), plural)
            made = None if served is None else DecodedResource(served, self._cache.resource(served.prefix))
            self._resources[name] = made
        return self._resources[name]


class DecodedResource:
    """The objects of one resource."""

    def __init__(self, served: Served, cache: ResourceCache) -> None:
        self.served = served
        self._cache = cache
        self._decoded: dict[str, tuple[Record, Json]] = {}
        cache.listen(served.prefix, self._forget)

    def _forget(self, event: Event) -> None:
        if event.deleted:
            self._decoded.pop(event.record.key, None)

    def get(self, namespace: str, name: str) -> Json | None:
        """An object, None where there is none."""
        record = self._cache.get(self.served.key(namespace, name))
        return None if record is None else self.of(record)

    def all(self, namespace: str = "") -> list[Json]:
        """The objects of a namespace, or all, by key."""
        return [self.of(record) for record in self._cache.snapshot(self.served.scope(namespace)).records]

    def of(self, record: Record) -> Json:
        """The object of a record."""
        held = self._decoded.get(record.key)
        if held is not None and held[0] is record:
            return held[1]
        obj = self.served.read(record)
        if self._cache.get(record.key) is record:
            self._decoded[record.key] = record, obj
        return obj

    def changed(self, event: Event) -> list[Json]:
        """The object of an event as it was and as it is."""
        records = (event.previous, None if event.deleted else event.record)
        return [self.of(record) for record in records if record is not None]
