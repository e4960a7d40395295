"""What reconcile functions do with objects again and again, awaited.

``objects``, its plain twin, is made of this file: ``make golden``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import (
    AsyncNamespacedCreatable,
    AsyncNamespacedEditable,
    AsyncNamespacedPurgeable,
    AsyncNamespacedReadable,
    AsyncNamespacedStatusWritable,
    AsyncNamespacedWatchable,
)
from apimachinery.client.calls import PatchType, typed_codec
from apimachinery.client.errors import AlreadyExists, ApiError, Conflict, Gone, NotFound, TransportError
from apimachinery.controller.kinds import (
    as_json,
    finalizers_of,
    is_deleting,
    meta_of,
    owned_configuration,
    resource_of,
    shown,
)
from apimachinery.queue.async_running import async_sleep
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
R = TypeVar("R")

CONFLICT_TRIES = 5
FIRST_WAIT = 0.01


class AsyncKindApi(
    AsyncNamespacedReadable[O],
    AsyncNamespacedWatchable[O],
    AsyncNamespacedCreatable[O],
    AsyncNamespacedEditable[O, Any],
    AsyncNamespacedPurgeable[O],
    AsyncNamespacedStatusWritable[O, Any],
    Generic[O],
):
    """The verbs of any kind, by its model class; ``namespace`` is ignored where the kind has none."""

    def __init__(self, client: AsyncClient, model: type[O]) -> None:
        super().__init__(client, resource=resource_of(model), codec=typed_codec(model))


async def async_retry_on_conflict(function: Callable[[], Awaitable[R]], tries: int = CONFLICT_TRIES) -> R:
    """Calls ``function``, which reads, changes and writes, again while its write meets a newer object.

    Raises the last ``Conflict``.
    """
    for attempt in range(1, tries):
        try:
            return await function()
        except Conflict:
            await async_sleep(FIRST_WAIT * 2**attempt)
    return await function()


async def async_create_or_update(client: AsyncClient, obj: O, change: Callable[[O], None]) -> O:
    """Makes an object that ``change`` has nothing to change in: creates it, or reads it and writes it back.

    ``obj`` names it and is what is created (after ``change``); nothing is written where nothing changes.
    """
    api = AsyncKindApi(client, type(obj))

    async def once() -> O:
        try:
            found = await api.get(name_of(obj), namespace=namespace_of(obj))
        except NotFound:
            made = copy.deepcopy(obj)
            change(made)
            try:
                return await api.create(made)
            except AlreadyExists as error:  # somebody was faster: read theirs
                raise Conflict(error.code, error.reason, error.message) from None
        before = as_json(found)
        change(found)
        return found if as_json(found) == before else await api.replace(found)

    return await async_retry_on_conflict(once)


async def async_apply(
    client: AsyncClient, obj: O, *, field_manager: str, owner: Object | None = None, force: bool = True
) -> O:
    """Server-side apply of what is set in ``obj``, which then belongs to ``owner``.

    Raises ``ApplyConflict`` where others own a field of it and not ``force``; a controller forces, for it
    knows best what its objects should be.
    """
    body = owned_configuration(obj, owner)
    api = AsyncKindApi(client, type(obj))
    return await api.apply(body, field_manager=field_manager, force=force)


async def async_add_finalizer(client: AsyncClient, obj: O, finalizer: str) -> O:
    """Keeps an object from going before ``async_remove_finalizer``. Raises ``Conflict`` where ``obj`` is outdated."""
    finalizers = finalizers_of(obj)
    if finalizer in finalizers or is_deleting(obj):
        return obj
    return await _write_finalizers(client, obj, [*finalizers, finalizer])


async def async_remove_finalizer(client: AsyncClient, obj: O, finalizer: str) -> None:
    """Lets an object go. Harmless where it is gone. Raises ``Conflict`` where ``obj`` is outdated."""
    finalizers = finalizers_of(obj)
    if finalizer not in finalizers:
        return
    try:
        await _write_finalizers(client, obj, [name for name in finalizers if name != finalizer])
    except NotFound:
        return


async def _write_finalizers(client: AsyncClient, obj: O, finalizers: list[str]) -> O:
    # A merge patch replaces the whole list, so it says which version it is of.
    metadata = {"finalizers": finalizers or None, "resourceVersion": resource_version_of(obj)}
    api = AsyncKindApi(client, type(obj))
    return await api.patch(name_of(obj), {"metadata": metadata}, PatchType.MERGE, namespace=namespace_of(obj))


async def async_write_status(client: AsyncClient, obj: O, *, field_manager: str = "") -> O:
    """Writes the status that ``obj`` has now; the rest of it is ignored by the server.

    Raises ``Conflict`` where ``obj`` is outdated.
    """
    api = AsyncKindApi(client, type(obj))
    options = api._write(False, field_manager)
    target = api._target(namespace_of(obj))
    return await client.run(
        calls.update(target, api._codec, name_of(obj), obj, options, subresource="status")
    )


async def async_wait_for(
    client: AsyncClient,
    model: type[O],
    name: str,
    condition: Callable[[O | None], bool],
    *,
    namespace: str | None = None,
    timeout: float = 60.0,
) -> O | None:
    """Waits until ``condition`` holds for an object (None while it is not there), by a watch; gives it as it is then.

    Raises ``TimeoutError`` with what it was last.
    """
    api = AsyncKindApi(client, model)
    ends = time.monotonic() + timeout
    last: O | None = None
    while (left := ends - time.monotonic()) > 0:
        page = await api.list(namespace=namespace, field_selector=f"metadata.name={name}").page()
        last = page.items[0] if page.items else None
        if condition(last):
            return last
        watch = await api.watch(
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            resource_version=page.resource_version,
            timeout_seconds=max(1, int(left) + 1),
            silence=max(0.01, left),
        )
        try:
            async for event in watch:
                if event.object is not None:
                    last = None if event.type == "DELETED" else event.object
                    if condition(last):
                        return last
                if time.monotonic() > ends:
                    break
        except Exception as error:  # a watch that breaks is opened again; the time limit ends it
            if not _may_break(error):
                raise
        finally:
            await watch.close()
    seen = (
        f"{shown(last)} at version {meta_of(last).resource_version}" if last is not None else "no such object"
    )
    raise TimeoutError(f"{model.KIND} {name}: not as expected within {timeout:g} s; last seen: {seen}")


def _may_break(error: Exception) -> bool:
    return isinstance(error, Gone | TransportError) or (isinstance(error, ApiError) and error.code >= 500)
