"""What reconcile functions do with objects again and again, awaited.

``objects``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

from typing import TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_objects import AsyncKindApi
from apimachinery.client.calls import PatchType
from apimachinery.client.errors import NotFound
from apimachinery.controller.kinds import finalizers_of, is_deleting, owned_configuration
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


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
