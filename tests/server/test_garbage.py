"""Garbage collection: deep trees, in which each deletion says whose turn is next, and random owners, held against a
law."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.server.owner_worlds import draw, law, play, rung
from tests.server.test_api import CM, ask, run

from apimachinery.meta.errors import ApiError
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.controllers import garbage
from kubewright.testing import ApiServer

LEVELS = 40


async def chain(api: AssembledApi) -> None:
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

    async def story(api: AssembledApi) -> None:
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


class Caller:
    """Calls of an administrator; what is refused is an answer too."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    def __call__(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        try:
            return (201 if method == "POST" else 200), self._server.request(method, path, body)
        except ApiError as error:
            return error.code, error.status()


@pytest.fixture(scope="module")
def call() -> Iterator[Caller]:
    with ApiServer() as server:
        yield Caller(server)


def test_what_is_left_of_random_owners(call: Caller) -> None:
    seeds = range(1000, 1060)
    worlds = [draw(random.Random(seed), f"o{seed}-") for seed in seeds]
    for seed, world, left in zip(seeds, worlds, play(worlds, call, rung), strict=True):
        assert left == law(world), f"seed {seed}: {world}"


def test_the_end_of_a_namespace_does_not_wait_for_dependents(call: Caller) -> None:
    seed = 1084  # an owner waits in the foreground for a dependent of cluster scope, which never goes
    world = draw(random.Random(seed), "late-")
    assert play([world], call, rung) == [law(world)]


ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def test_an_owner_of_another_namespace_is_reported(call: Caller) -> None:
    _, owner = call("POST", CM, {"metadata": {"name": "owner"}})
    ref = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    call("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    body = {"metadata": {"name": "of-another", "ownerReferences": [ref]}}
    call("POST", "/api/v1/namespaces/elsewhere/configmaps", body)
    call("POST", ROLES, body)
    rung([], call)
    call("DELETE", f"{CM}/owner", None)
    rung([], call)
    assert call("GET", f"{ROLES}/of-another", None)[0] == 200
    assert call("GET", "/api/v1/namespaces/elsewhere/configmaps/of-another", None)[0] == 404
    for namespace, kind, place in (("default", "ClusterRole", ""), ("elsewhere", "ConfigMap", "elsewhere")):
        _, events = call("GET", f"/api/v1/namespaces/{namespace}/events", None)
        found = [each for each in events["items"] if each["involvedObject"]["name"] == "of-another"]
        where = f"[v1/ConfigMap, namespace: {place}, name: owner, uid: {ref['uid']}]"
        text = f'ownerRef {where} does not exist in namespace "{place}"'
        said = [(each["involvedObject"]["kind"], each["reason"], each["message"]) for each in found]
        assert said == [(kind, "OwnerRefInvalidNamespace", text)]
        assert (found[0]["type"], found[0]["source"]) == (
            "Warning",
            {"component": "garbage-collector-controller"},
        )


def test_an_owner_of_a_kind_that_comes_later_is_looked_for_then(call: Caller) -> None:
    ref = {"apiVersion": "later.example.com/v1", "kind": "Thing", "name": "owner", "uid": "none"}
    call("POST", CM, {"metadata": {"name": "of-later", "ownerReferences": [ref]}})
    rung([], call)
    assert call("GET", f"{CM}/of-later", None)[0] == 200
    schema = {"openAPIV3Schema": {"type": "object"}}
    spec = {
        "group": "later.example.com",
        "names": {"kind": "Thing", "plural": "things"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert call("POST", crds, {"metadata": {"name": "things.later.example.com"}, "spec": spec})[0] == 201
    for _ in range(3000):
        if call("GET", f"{CM}/of-later", None)[0] == 404:
            return
        time.sleep(0.01)
    raise AssertionError("it is still there")


@pytest.mark.parametrize(("collector", "left"), [("gc-known-owners", {"both", "stray"}), ("gc", set[str]())])
def test_owners_that_never_existed(collector: str, left: set[str]) -> None:
    def reference(name: str, uid: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}

    async def story(api: AssembledApi) -> None:
        _, owner, _ = await ask(api, "POST", CM, {"metadata": {"name": "owner"}})
        known, unknown = reference("owner", owner["metadata"]["uid"]), reference("nobody", "u-1")
        for name, owners in {"stray": [unknown], "child": [known], "both": [known, unknown]}.items():
            await ask(api, "POST", CM, {"metadata": {"name": name, "ownerReferences": owners}})
        await ask(api, "DELETE", f"{CM}/owner")
        for _ in range(600):
            await asyncio.sleep(0.1)
            _, found, _ = await ask(api, "GET", CM)
            names = {each["metadata"]["name"] for each in found["items"]} & {
                "both",
                "child",
                "owner",
                "stray",
            }
            if names <= left:
                assert names == left
                return
        raise AssertionError(f"{names} are left")

    run(story, ApiOptions(controllers=frozenset({collector})))
