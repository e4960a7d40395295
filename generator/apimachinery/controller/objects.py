"""What reconcile functions do with objects again and again, for threads.

Made of ``async_objects`` by ``make golden``: edit that one.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from apimachinery.client import calls
from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.calls import PatchType, typed_codec
from apimachinery.client.connection import Client
from apimachinery.client.errors import AlreadyExists, ApiError, Conflict, Gone, NotFound, TransportError
from apimachinery.client.resource import (
    NamespacedCreatable,
    NamespacedEditable,
    NamespacedPurgeable,
    NamespacedReadable,
    NamespacedStatusWritable,
    NamespacedWatchable,
)
from apimachinery.controller.kinds import (
    as_json,
    finalizers_of,
    is_deleting,
    meta_of,
    owned_configuration,
    resource_of,
    shown,
)
from apimachinery.queue.running import sleep
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
R = TypeVar("R")

CONFLICT_TRIES = 5
FIRST_WAIT = 0.01


class KindApi(
    NamespacedReadable[O],
    NamespacedWatchable[O],
    NamespacedCreatable[O],
    NamespacedEditable[O, Any],
    NamespacedPurgeable[O],
    NamespacedStatusWritable[O, Any],
    Generic[O],
):
    """The verbs of any kind, by its model class; ``namespace`` is ignored where the kind has none."""

    def __init__(self, client: Client, model: type[O]) -> None:
        super().__init__(client, resource=resource_of(model), codec=typed_codec(model))


def retry_on_conflict(function: Callable[[], R], tries: int = CONFLICT_TRIES) -> R:
    """Calls ``function``, which reads, changes and writes, again while its write meets a newer object.

    Raises the last ``Conflict``.
    """
    for attempt in range(1, tries):
        try:
            return function()
        except Conflict:
            sleep(FIRST_WAIT * 2**attempt)
    return function()


def create_or_update(client: Client, obj: O, change: Callable[[O], None]) -> O:
    """Makes an object that ``change`` has nothing to change in: creates it, or reads it and writes it back.

    ``obj`` names it and is what is created (after ``change``); nothing is written where nothing changes.
    """
    api = KindApi(client, type(obj))

    def once() -> O:
        try:
            found = api.get(name_of(obj), namespace=namespace_of(obj))
        except NotFound:
            made = copy.deepcopy(obj)
            change(made)
            try:
                return api.create(made)
            except AlreadyExists as error:  # somebody was faster: read theirs
                raise Conflict(error.code, error.reason, error.message) from None
        before = as_json(found)
        change(found)
        return found if as_json(found) == before else api.replace(found)

    return retry_on_conflict(once)


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


def wait_for(
    client: Client,
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
    api = KindApi(client, model)
    ends = time.monotonic() + timeout
    last: O | None = None
    while (left := ends - time.monotonic()) > 0:
        page = api.list(namespace=namespace, field_selector=f"metadata.name={name}").page()
        last = page.items[0] if page.items else None
        if condition(last):
            return last
        watch = api.watch(
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            resource_version=page.resource_version,
            timeout_seconds=max(1, int(left) + 1),
            silence=max(0.01, left),
        )
        try:
            for event in watch:
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
            watch.close()
    seen = (
        f"{shown(last)} at version {meta_of(last).resource_version}" if last is not None else "no such object"
    )
    raise TimeoutError(f"{model.KIND} {name}: not as expected within {timeout:g} s; last seen: {seen}")


def _may_break(error: Exception) -> bool:
    return isinstance(error, Gone | TransportError) or (isinstance(error, ApiError) and error.code >= 500)
