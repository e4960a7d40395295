"""Kinds known only at run time: found by asking the server, called like any other."""

from __future__ import annotations

import asyncio
import re
import runpy
from pathlib import Path

import pytest

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config
from apimachinery.client.errors import BadRequest, NotFound
from apimachinery.client.resource import DynamicResource
from kubernetes_api.client import Client


def test_a_kind_is_found_by_its_name(config: Config) -> None:
    with Client(config) as client:
        things = DynamicResource.of(client, "v1", "ConfigMap")
        things.create({"metadata": {"name": "a"}, "data": {"k": "v"}})
        assert things.get("a")["data"] == {"k": "v"}
        assert [item["metadata"]["name"] for item in things.list()] == ["a"]
        nodes = DynamicResource.of(client, "v1", "Node")
        nodes.create({"metadata": {"name": config.namespace}}, namespace="ignored")
        assert nodes.get(config.namespace)["metadata"].get("namespace") is None
        assert DynamicResource.of(client, "backup.kubewright.dev/v1", "Restore") is not None


def test_an_unknown_kind_or_version_is_not_found(config: Config) -> None:
    with Client(config) as client:
        with pytest.raises(
            NotFound, match=r"^policy/v1 has no kind Pod; the server serves PodDisruptionBudget$"
        ):
            DynamicResource.of(client, "policy/v1", "Pod")
        with pytest.raises(NotFound):
            DynamicResource.of(client, "nowhere.example/v1", "Pod")


def test_the_same_awaited(config: Config) -> None:
    async def story() -> None:
        async with AsyncClient(config) as client:
            things = await AsyncDynamicResource.of(client, "v1", "ConfigMap")
            await things.create({"metadata": {"name": "a"}})
            assert (await things.get("a"))["metadata"]["name"] == "a"

    asyncio.run(story())


def test_a_call_that_would_address_more_than_it_names_is_refused_here(config: Config) -> None:
    with Client(config) as client:
        things = DynamicResource.of(client, "v1", "ConfigMap")
        things.create({"metadata": {"name": "stays"}})
        with pytest.raises(BadRequest, match="resource name may not be empty"):
            things.delete("")
        with pytest.raises(BadRequest, match="resource name may not be empty"):
            things.replace({"metadata": {}})
        with pytest.raises(BadRequest, match="configmaps are namespaced: this call needs one namespace"):
            things.delete("stays", namespace="")
        with pytest.raises(BadRequest, match="configmaps are namespaced: this call needs one namespace"):
            things.delete_collection(namespace="")
        for name in ("../../nodes", "a%2fb", "..", "."):
            with pytest.raises(BadRequest, match="cannot be part of a URL path"):
                things.delete(name)
        assert things.get("stays")


def test_the_examples_of_the_documentation_run(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Calls, then an informer of an open client. What needs a pod that runs is in test_everyday and test_comparison."""
    text = (Path(__file__).parents[2] / "docs/client.md").read_text()
    monkeypatch.setattr(Config, "load", lambda *_: config)
    with Client(config) as client:
        blocks = [each for each in re.findall(r"```python\n(.*?)```", text, re.S) if "web-0" not in each]
        for number, example in enumerate(blocks[:2]):
            script = tmp_path / f"example{number}.py"
            script.write_text(example)
            runpy.run_path(str(script), init_globals={"client": client})
