"""Deletion of objects that are stored and cannot be read, for who says that he knows what that breaks.

Nothing of such an object is known but its key, so nothing is asked of admission, no finalizer is waited for and
nobody's dependents are looked at. As with kube-apiserver (AllowUnsafeMalformedObjectDeletion) that needs the right
``unsafe-delete-ignore-read-errors`` besides the right to delete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from apimachinery.http.messages import Request
from apimachinery.meta.errors import conflict, not_found, unreadable
from apimachinery.server.request.target import WriteTarget
from apimachinery.storage.interface import REVISION_MARK, KeyNotFound, RevisionConflict, Value
from apimachinery.storage.watch_cache import WatchCache
from apimachinery.wire.json import encode

VERB = "unsafe-delete-ignore-read-errors"
Authorize = Callable[[Request, str], Awaitable[None]]
"""Whether the sender of a request may also use another verb on what he asks for. Raises ApiError 403."""


class UnreadableDeletion:
    """Deletes what cannot be read."""

    def __init__(self, cache: WatchCache, authorize: Authorize) -> None:
        self._cache = cache
        self._authorize = authorize

    async def delete(self, request: Request, target: WriteTarget) -> None:
        """Raises ApiError 403, 404, 409, and 500 for what the storage itself cannot read."""
        await self._authorize(request, VERB)
        served, key = target.served, target.key
        record = await self._cache.storage.get(key)
        if record is None:
            why = self._cache.unreadable.get(key, "it is gone")
            raise unreadable(
                f"{key}: {why}; give the key that it is encrypted with, or delete it in the storage"
            )
        if target.options.dry_run:
            return
        metadata = {"name": target.name, "namespace": target.namespace, "resourceVersion": REVISION_MARK}
        last = {"kind": served.kind, "apiVersion": served.api_version, "metadata": metadata}
        try:
            await self._cache.storage.delete(key, record.revision, Value.cut(encode(last)))
        except KeyNotFound:
            raise not_found(served.plural, served.group, target.name) from None
        except RevisionConflict:
            raise conflict(served.plural, served.group, target.name) from None
