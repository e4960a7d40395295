"""Stored objects as admission plugins read them: decoded once, and nobody's to change."""

from __future__ import annotations

from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import unreadable
from apimachinery.storage.interface import Record, UnreadableRecord
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import decode


class Objects:
    """The objects of one resource as they are now, at the version they are stored at. What is asked for and cannot be
    read is a 500: it may be what forbids the request."""

    def __init__(self, cache: WatchCache, prefix: str) -> None:
        """``prefix`` begins their keys: ``/GROUP/RESOURCE/``, the core group being ``core``."""
        self._cache = cache
        self._records = cache.resource(prefix)
        self._prefix = prefix

    def get(self, name: str, namespace: str = "") -> Json | None:
        """The object of that name; None where there is none. Raises ApiError 500."""
        key = f"{self._prefix}{namespace}/{name}" if namespace else f"{self._prefix}{name}"
        record = self._records.get(key)
        if record is None:
            check_readable(self._cache, key)
            return None
        return content(record)

    @property
    def stamp(self) -> int | None:
        """The revision of their last change; None where some cannot be read, which is for each reader to be told."""
        return None if self._cache.hides else self._records.stamp(self._prefix)

    def every(self, namespace: str = "") -> list[Json]:
        """All of a namespace, or of the resource, by name. Raises ApiError 500."""
        if not len(self._records) and not self._cache.hides:
            return []
        scope = f"{self._prefix}{namespace}/" if namespace else self._prefix
        check_readable(self._cache, scope)
        return [content(record) for record in self._records.snapshot(scope).records]


def check_readable(cache: WatchCache, scope: str) -> None:
    """Raises ApiError 500 where something of a scope cannot be read: nothing may be decided without it."""
    try:
        cache.check_readable(scope)
    except UnreadableRecord as fault:
        raise unreadable(str(fault)) from None


def content(record: Record) -> Json:
    """A record's object, kept with it."""
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    found: Json | None = memo.get("object")
    if found is None:
        found = memo["object"] = decode(record.value)
    return found
