"""Claims, volumes and classes that are deleted stay while they are in use, and no longer."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.server.test_api import MERGE, PODS, ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/volumeattributesclasses"
ON = ApiOptions(controllers=frozenset({"pvc-protection", "pv-protection", "vac-protection"}))
NOW = "?gracePeriodSeconds=0"


def claim(name: str, **spec: Any) -> dict[str, Any]:
    size = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": size, **spec}}


def pod(name: str, claim_name: str, node: str = "") -> dict[str, Any]:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    return {"metadata": {"name": name}, "spec": {**spec, **({"nodeName": node} if node else {})}}


async def gone(api: AssembledApi, path: str, *, within: float = 60.0) -> bool:
    for _ in range(int(within / 0.02)):
        if (await ask(api, "GET", path))[0] == 404:
            return True
        await asyncio.sleep(0.02)
    return False


def test_a_claim_goes_with_the_last_pod_that_runs_with_it() -> None:
    async def story(api: AssembledApi) -> None:
        for name in ("used", "free"):
            assert (await ask(api, "POST", CLAIMS, claim(name)))[0] == 201
        assert (await ask(api, "POST", PODS, pod("runs", "used", "n")))[0] == 201
        assert (await ask(api, "POST", PODS, pod("waits", "free")))[0] == 201
        for name in ("used", "free"):
            assert (await ask(api, "DELETE", f"{CLAIMS}/{name}"))[0] == 200
        assert await gone(api, f"{CLAIMS}/free")
        assert not await gone(api, f"{CLAIMS}/used", within=0.1)
        await ask(api, "DELETE", f"{PODS}/runs{NOW}")
        assert await gone(api, f"{CLAIMS}/used")

    run(story, ON)


def test_a_volume_goes_when_it_is_no_longer_bound() -> None:
    async def story(api: AssembledApi) -> None:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
        assert (await ask(api, "POST", VOLUMES, {"metadata": {"name": "v"}, "spec": spec}))[0] == 201
        await ask(api, "PATCH", f"{VOLUMES}/v/status", {"status": {"phase": "Bound"}}, MERGE)
        await ask(api, "DELETE", f"{VOLUMES}/v")
        assert not await gone(api, f"{VOLUMES}/v", within=0.1)
        await ask(api, "PATCH", f"{VOLUMES}/v/status", {"status": {"phase": "Released"}}, MERGE)
        assert await gone(api, f"{VOLUMES}/v")

    run(story, ON)


def test_a_class_goes_with_the_last_claim_of_it() -> None:
    async def story(api: AssembledApi) -> None:
        made = {"metadata": {"name": "fast"}, "driverName": "d.io", "parameters": {"a": "b"}}
        assert (await ask(api, "POST", CLASSES, made))[0] == 201
        assert (await ask(api, "POST", CLAIMS, claim("c", volumeAttributesClassName="fast")))[0] == 201
        await ask(api, "DELETE", f"{CLASSES}/fast")
        assert not await gone(api, f"{CLASSES}/fast", within=0.1)
        await ask(api, "DELETE", f"{CLAIMS}/c")
        assert await gone(api, f"{CLASSES}/fast")

    run(story, ON)
