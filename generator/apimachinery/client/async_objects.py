"""What programs do with objects of any kind, awaited: wait, apply whole files, try again after conflicts.

``objects``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

from apimachinery.client.access import name_of, namespace_of, resource_version_of
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import (
    AsyncDynamicResource,
    AsyncNamespacedCreatable,
    AsyncNamespacedEditable,
    AsyncNamespacedPurgeable,
    AsyncNamespacedReadable,
    AsyncNamespacedStatusWritable,
    AsyncNamespacedWatchable,
)
from apimachinery.client.awaiting import parse_test
from apimachinery.client.calls import typed_codec
from apimachinery.client.discovery import find_kind, served
from apimachinery.client.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Gone,
    NotFound,
    TransportError,
)
from apimachinery.client.kinds import as_json, resource_of, shown
from apimachinery.meta.resources import Resource
from apimachinery.queue.async_running import async_sleep
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object
T = TypeVar("T")
R = TypeVar("R")

CONFLICT_TRIES: Final = 5
FIRST_WAIT: Final = 0.01
DEFINED_SECONDS: Final = 15.0
"""How long a kind may take to be served whose definition was applied just before."""


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
    Raises ``Conflict`` where others come between every time.
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
    return cast("O | None", await async_watch_until(api, name, condition, namespace, timeout))


async def async_watch_until(
    api: AsyncKindApi[Any] | AsyncDynamicResource,
    name: str,
    condition: Callable[[Any], bool],
    namespace: str | None,
    timeout: float,
) -> Any:
    """As ``async_wait_for``, through the verbs of a resource."""
    ends = time.monotonic() + timeout
    last: Any = None
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
    seen = f"{shown(last)} at version {resource_version_of(last)}" if last is not None else "no such object"
    kind = api._resource.kind
    raise TimeoutError(f"{kind} {name}: not as expected within {timeout:g} s; last seen: {seen}")


def _may_break(error: Exception) -> bool:
    return isinstance(error, Gone | TransportError) or (isinstance(error, ApiError) and error.code >= 500)


async def async_wait(client: AsyncClient, obj: T, until: str | Callable[[T], bool], timeout: float) -> T:
    """Waits for an object of any kind; see ``Client.wait``."""
    api: Any
    if isinstance(obj, Object):
        api = AsyncKindApi(client, type(obj))
    else:
        api = AsyncDynamicResource(client, await _resource_of_json(client, obj, {}))
    test = parse_test(until) if isinstance(until, str) else _there(until)
    found = await async_watch_until(api, name_of(obj), test, namespace_of(obj), timeout)
    return obj if found is None else cast("T", found)


def _there(test: Callable[[T], bool]) -> Callable[[T | None], bool]:
    return lambda obj: obj is not None and test(obj)


async def async_apply_all(
    client: AsyncClient, objects: Iterable[Any], *, field_manager: str, force: bool, namespace: str | None
) -> list[dict[str, Any]]:
    """Applies objects of many kinds; see ``Client.apply_all``."""
    known: dict[tuple[str, str], Resource] = {}
    made = []
    for obj in objects:
        body = as_json(obj)
        if isinstance(obj, Object):
            body = {"apiVersion": obj.API_VERSION, "kind": obj.KIND, **body}
        resource = await _resource_of_json(client, body, known)
        api = AsyncDynamicResource(client, resource)
        where = namespace_of(body) or namespace
        made.append(await api.apply(body, field_manager=field_manager, force=force, namespace=where))
        if resource.kind == "CustomResourceDefinition":
            known = {}
    return made


async def _resource_of_json(
    client: AsyncClient, obj: Any, known: dict[tuple[str, str], Resource]
) -> Resource:
    """Which resource serves an object. One whose definition was applied just before is waited for."""
    api_version, kind = (obj.get("apiVersion"), obj.get("kind")) if isinstance(obj, Mapping) else ("", "")
    if not api_version or not kind:
        raise BadRequest(400, "BadRequest", f"{shown(obj)} has no apiVersion or no kind", has_details=False)
    ends = time.monotonic() + DEFINED_SECONDS
    while (api_version, kind) not in known:
        try:
            known[api_version, kind] = find_kind(await client.run(served(api_version)), api_version, kind)
        except NotFound:
            if not await _is_defined(client, api_version, kind) or time.monotonic() > ends:
                raise
            await async_sleep(0.05)
    return known[api_version, kind]


async def _is_defined(client: AsyncClient, api_version: str, kind: str) -> bool:
    group, _, version = api_version.partition("/")
    api = AsyncDynamicResource(client, DEFINITIONS)
    try:
        async for definition in api.list():
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) == (group, kind):
                return any(each["name"] == version and each["served"] for each in spec["versions"])
    except ApiError:  # who may not read definitions hears that the kind is not there
        return False
    return False


DEFINITIONS: Final = Resource(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    singular="customresourcedefinition",
    namespaced=False,
    verbs=(),
)


async def async_apply_file(client: AsyncClient, path: str | Path, **options: Any) -> list[dict[str, Any]]:
    """Applies the objects of a file or folder; see ``Client.apply_file``."""
    from apimachinery.wire import yaml
    from apimachinery.wire.json import DecodeFault

    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(each for each in place.rglob("*") if each.suffix in (".yaml", ".yml", ".json"))
    objects: list[Any] = []
    for file in files:
        try:
            read = yaml.decode_all(file.read_bytes())
        except DecodeFault as fault:
            raise BadRequest(400, "BadRequest", f"{file}: {fault}", has_details=False) from None
        for number, document in enumerate(read, 1):
            if not isinstance(document, dict):
                text = f"{file}: document {number} is no object"
                raise BadRequest(400, "BadRequest", text, has_details=False)
            listed = str(document.get("kind") or "").endswith("List") and "items" in document
            objects += document["items"] or () if listed else [document]
    return await async_apply_all(client, objects, **options)
