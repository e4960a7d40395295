"""One object that does not fit its model is left out and reported; the rest goes on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import msgspec
import pytest
from tests.client.test_wire import MAPS

from apimachinery.client import async_resource, resource
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.calls import RawEvent, typed_codec
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.errors import UnreadableObject
from apimachinery.client.reflector import InitialEvents, ReflectorOptions
from apimachinery.typed.object import Object, Part
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer


class Colours(Part, kw_only=True):
    colour: Literal["red", "green"]


class Light(Object, kw_only=True):
    """A ConfigMap, read more strictly than the server keeps it."""

    API_VERSION = "v1"
    KIND = "ConfigMap"

    api_version: str = "v1"
    kind: str = "ConfigMap"
    metadata: ObjectMeta | None = None
    data: Colours


class Lights(
    resource.NamespacedReadable[Light],
    resource.NamespacedWatchable[Light],
    resource.NamespacedEditable[Light, Light],
):
    RESOURCE = MAPS
    MODEL = Light


class AsyncLights(
    async_resource.AsyncNamespacedReadable[Light], async_resource.AsyncNamespacedWatchable[Light]
):
    RESOURCE = MAPS
    MODEL = Light


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.005)


@pytest.fixture
def put(server: ApiServer, namespace: str) -> Callable[[str, str], Any]:
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    def write(name: str, colour: str) -> Any:
        body = {"metadata": {"name": name}, "data": {"colour": colour}}
        configuration = {"apiVersion": "v1", "kind": "ConfigMap", **body}
        target = f"{path}/{name}?fieldManager=t&force=true"
        return server.request("PATCH", target, configuration, "application/apply-patch+yaml")

    for number, colour in enumerate(("red", "blue", "green")):
        write(f"m{number}", colour)
    return write


def test_a_list_leaves_it_out_and_says_so(config: Config, put: Any, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[UnreadableObject] = []
    with Client(config, on_unreadable=heard.append) as client:
        lights = Lights(client)
        assert [light.metadata.name for light in lights.list() if light.metadata] == ["m0", "m2"]
        page = lights.list().page()
        assert [error.key for error in page.unreadable] == [(config.namespace, "m1")]
        assert client.unreadable_count == len(heard) == 2
        assert msgspec.json.decode(heard[0].raw)["data"] == {"colour": "blue"}
        assert "m1 is left out" in caplog.text
        assert "data.colour" in caplog.text
        with pytest.raises(UnreadableObject, match=r"data\.colour"):
            lights.get("m1")


def test_a_watch_goes_on(config: Config, put: Any) -> None:
    with Client(config) as client:
        watch = Lights(client).watch(initial_events=True)
        seen = []
        with watch:
            for event in watch:
                if event.initial_events_end:
                    break
                seen.append(event.object.metadata.name)  # type: ignore[union-attr]
        assert seen == ["m0", "m2"]
        assert client.unreadable_count == 1


@pytest.mark.parametrize("streaming", [False, True])
def test_an_informer_goes_on(config: Config, put: Any, streaming: bool) -> None:
    told: list[tuple[str, Any]] = []
    with Client(config) as client:
        informer = Lights(client).informer(options=ReflectorOptions(streaming=streaming))
        informer.add_handler(lambda change: told.append((change.kind, change.object.metadata.name)))  # type: ignore[union-attr]
        with informer:
            informer.wait_until_synced(60)
            key = (config.namespace, "m1")
            assert [*informer.unreadable] == [key]
            put("m1", "red")  # it can be read now
            until(lambda: informer.store.get("m1", namespace=config.namespace))
            assert not informer.unreadable
            put("m0", "blue")  # it can be read no more
            until(lambda: informer.unreadable)
            put("m2", "red")
            until(lambda: len(told) >= 5)
        assert sorted(told[:2]) == [("ADDED", "m0"), ("ADDED", "m2")]
        assert told[2:] == [("ADDED", "m1"), ("DELETED", "m0"), ("MODIFIED", "m2")]
        assert client.unreadable_count == 2


@pytest.mark.parametrize("streaming", [False, True])
def test_an_informer_goes_on_in_tasks(config: Config, put: Any, streaming: bool) -> None:
    async def story() -> None:
        async with AsyncClient(config) as client, asyncio.timeout(60):
            informer = AsyncLights(client).informer(options=ReflectorOptions(streaming=streaming))
            async with informer:
                await informer.wait_until_synced(60)
                assert [*informer.unreadable] == [(config.namespace, "m1")]
                put("m0", "blue")
                while len(informer.unreadable) < 2:
                    await asyncio.sleep(0.005)
                assert [light.metadata.name for light in informer.store if light.metadata] == ["m2"]

    asyncio.run(story())


def test_changes_between_the_initial_events_are_taken() -> None:
    def raw(name: str, colour: str) -> msgspec.Raw:
        body = {"metadata": {"name": name, "namespace": "n"}, "data": {"colour": colour}}
        return msgspec.Raw(msgspec.json.encode(body))

    events = [
        RawEvent("ADDED", raw("a", "red"), "1"),
        RawEvent("ADDED", raw("b", "red"), "1"),
        RawEvent("ADDED", raw("c", "blue"), "1"),
        RawEvent("ADDED", raw("d", "blue"), "1"),
        RawEvent("DELETED", raw("a", "red"), "2"),
        RawEvent("MODIFIED", raw("b", "blue"), "3"),
        RawEvent("MODIFIED", raw("c", "green"), "4"),
        RawEvent("DELETED", raw("d", "blue"), "5"),
    ]
    initial = InitialEvents(typed_codec(Light))
    for event in events:
        initial.take(event)
    items, version, unreadable = initial.state("6")
    assert [light.metadata.name for light in items if light.metadata] == ["c"]
    assert [error.name for error in unreadable] == ["b"]
    assert version == "6"


def test_a_hook_that_fails_ends_nothing(config: Config, put: Any, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: UnreadableObject) -> None:
        raise RuntimeError("mine")

    with Client(replace(config), on_unreadable=fail) as client:
        assert len([*Lights(client).list()]) == 2
    assert "on_unreadable failed" in caplog.text
