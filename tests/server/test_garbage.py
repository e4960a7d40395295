"""Garbage collection of deep trees: each deletion says whose turn is next, no level waits for the collector's pause."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.server.test_api import CM, ask, run

from apimachinery.server.api import Api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.controllers import garbage

LEVELS = 40


async def chain(api: Api) -> None:
    """Config maps, each owned by the one before, which its deletion waits for."""
    owners: list[dict[str, Any]] = []
    for level in range(LEVELS):
        metadata = {"name": f"level-{level}", "ownerReferences": owners}
        _, made, _ = await ask(api, "POST", CM, {"metadata": metadata})
        name, uid = made["metadata"]["name"], made["metadata"]["uid"]
        owners = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": True}
        ]


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_a_deep_tree_goes_without_a_pause_at_each_level(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "SECONDS", 2.0)  # a pause at each level would take more than a minute

    async def story(api: Api) -> None:
        await chain(api)
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy}
        await ask(api, "DELETE", f"{CM}/level-0", body)
        for _ in range(200):
            await asyncio.sleep(0.1)
            _, left, _ = await ask(api, "GET", CM)
            if not [each for each in left["items"] if each["metadata"]["name"].startswith("level-")]:
                return
        raise AssertionError(f"{len(left['items'])} are left")

    run(story, ApiOptions())
