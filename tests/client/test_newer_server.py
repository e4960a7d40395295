"""A server that knows more than the SDK: what is read, changed in one field and written back keeps all the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.client import async_resource, resource
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.meta.resources import Resource
from apimachinery.typed.object import Object, Part
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.testing import ApiServer

NEWER_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "colour": {"type": "string"},
                "shade": {"type": "string", "nullable": True},
                "parts": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": {"type": "string"},
                            "weight": {"type": "number"},
                            "origin": {"type": "string"},
                        },
                    },
                },
                "options": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        }
    },
}


class WidgetPart(Part, kw_only=True):
    name: str
    weight: float | None = None


class WidgetSpec(Part, kw_only=True):
    size: int
    parts: list[WidgetPart] | None = None


class Widget(Object, kw_only=True):
    """As an SDK of an older release knows it: without colour, shade, options and the origin of parts."""

    API_VERSION = "newer.example.com/v1"
    KIND = "Widget"

    api_version: str = "newer.example.com/v1"
    kind: str = "Widget"
    metadata: ObjectMeta | None = None
    spec: WidgetSpec


WIDGETS = Resource(
    group="newer.example.com",
    version="v1",
    kind="Widget",
    plural="widgets",
    singular="widget",
    namespaced=True,
    verbs=(),
)


class Widgets(resource.NamespacedReadable[Widget], resource.NamespacedEditable[Widget, Widget]):
    RESOURCE = WIDGETS
    MODEL = Widget


class AsyncWidgets(
    async_resource.AsyncNamespacedReadable[Widget], async_resource.AsyncNamespacedEditable[Widget, Widget]
):
    RESOURCE = WIDGETS
    MODEL = Widget


STORED: dict[str, Any] = {
    "apiVersion": "newer.example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "w"},
    "spec": {
        "size": 1,
        "colour": "red",
        "shade": None,
        "parts": [{"name": "lid", "weight": 2, "origin": "here"}, {"name": "box", "origin": "there"}],
        "options": {"deep": [{"null": None}], "ratio": 1.0},
    },
}


@pytest.fixture
def widgets(server: ApiServer, config: Config) -> Iterator[Config]:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.newer.example.com"},
        "spec": {
            "group": "newer.example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": NEWER_SCHEMA}}
            ],
        },
    }
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    server.request("POST", path, crd)
    server._wait_until_served(crd)
    with Client(config) as client:
        resource.DynamicResource.of(client, "newer.example.com/v1", "Widget").create(STORED)
    yield config
    server.request("DELETE", f"{path}/widgets.newer.example.com")


def change(widget: Widget) -> None:
    """A new size, a new part before the others, the last one gone."""
    widget.spec.size = 5
    assert widget.spec.parts is not None
    widget.spec.parts.insert(0, WidgetPart(name="knob"))
    widget.spec.parts.pop()


def check(config: Config) -> None:
    with Client(config) as client:
        found = resource.DynamicResource(client, WIDGETS).get("w")
    wanted = {**STORED["spec"], "size": 5}
    wanted["parts"] = [{"name": "knob"}, {"name": "lid", "weight": 2, "origin": "here"}]
    assert found["spec"] == wanted
    assert list(found["spec"]) == list(STORED["spec"])


def test_replace_keeps_what_the_model_does_not_know(widgets: Config) -> None:
    with Client(widgets) as client:
        api = Widgets(client)
        widget = api.get("w")
        change(widget)
        api.replace(widget)
    check(widgets)


def test_so_do_objects_of_lists_and_the_async_client(widgets: Config) -> None:
    async def story() -> None:
        async with AsyncClient(widgets) as client:
            api = AsyncWidgets(client)
            async for widget in api.list():
                change(widget)
                await api.replace(widget)

    asyncio.run(story())
    check(widgets)
