# Made from async_objects.py by build/plain.py: edit that one.
"""What reconcile functions do with objects again and again, for threads."""

from __future__ import annotations

from typing import TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.calls import PatchType
from apimachinery.client.connection import Client
from apimachinery.client.errors import NotFound
from apimachinery.client.objects import KindApi
from apimachinery.controller.kinds import finalizers_of, is_deleting, owned_configuration
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


def apply(
    client: Client, obj: O, *, field_manager: str, owner: Object | None = None, force: bool = True
) -> O:
    """Server-side apply of what is set in ``obj``, which then belongs to ``owner``.

    Raises ``ApplyConflict`` where others own a field of it and not ``force``; a controller forces, for it
    knows best what its objects should be.
    """
    body = owned_configuration(obj, owner)
    api = KindApi(client, type(obj))
    return api.apply(body, field_manager=field_manager, force=force)


def add_finalizer(client: Client, obj: O, finalizer: str) -> O:
    """Keeps an object from going before ``remove_finalizer``. Raises ``Conflict`` where ``obj`` is outdated."""
    finalizers = finalizers_of(obj)
    if finalizer in finalizers or is_deleting(obj):
        return obj
    return _write_finalizers(client, obj, [*finalizers, finalizer])


def remove_finalizer(client: Client, obj: O, finalizer: str) -> None:
    """Lets an object go. Harmless where it is gone. Raises ``Conflict`` where ``obj`` is outdated."""
    finalizers = finalizers_of(obj)
    if finalizer not in finalizers:
        return
    try:
        _write_finalizers(client, obj, [name for name in finalizers if name != finalizer])
    except NotFound:
        return


def _write_finalizers(client: Client, obj: O, finalizers: list[str]) -> O:
    # A merge patch replaces the whole list, so it says which version it is of.
    metadata = {"finalizers": finalizers or None, "resourceVersion": resource_version_of(obj)}
    api = KindApi(client, type(obj))
    return api.patch(name_of(obj), {"metadata": metadata}, PatchType.MERGE, namespace=namespace_of(obj))


def write_status(client: Client, obj: O, *, field_manager: str = "") -> O:
    """Writes the status that ``obj`` has now; the rest of it is ignored by the server.

    Raises ``Conflict`` where ``obj`` is outdated.
    """
    api = KindApi(client, type(obj))
    options = api._write(False, field_manager)
    target = api._target(namespace_of(obj))
    return client.run(calls.update(target, api._codec, name_of(obj), obj, options, subresource="status"))
