"""Stored objects as admission plugins read them: decoded once, and nobody's to change."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.storage.interface import Record
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode


class Objects:
    """The objects of one resource as they are now, at the version they are stored at."""

    def __init__(self, cache: WatchCache, prefix: str) -> None:
        """``prefix`` begins their keys: ``/GROUP/RESOURCE/``, the core group being ``core``."""
        self._records = cache.resource(prefix)
        self._prefix = prefix

    def get(self, name: str, namespace: str = "") -> Json | None:
        """The object of that name; None where there is none."""
        key = f"{self._prefix}{namespace}/{name}" if namespace else f"{self._prefix}{name}"
        record = self._records.get(key)
        return None if record is None else content(record)

    def every(self, namespace: str = "") -> list[Json]:
        """All of a namespace, or of the resource, by name."""
        if not len(self._records):
            return []
        scope = f"{self._prefix}{namespace}/" if namespace else self._prefix
        return [content(record) for record in self._records.snapshot(scope).records]


def content(record: Record) -> Json:
    """A record's object, kept with it."""
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    found: Json | None = memo.get("object")
    if found is None:
        found = memo["object"] = decode(record.value)
    return found
