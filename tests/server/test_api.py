"""The API without a socket: conversations as data, each a list of requests and what their answers hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from apimachinery.access.control import OPEN_TO_LOOPBACK, AccessOptions
from apimachinery.http.messages import Request, Response, User
from apimachinery.server.assembly.api import AssembledApi, build_api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.process import Backend, ServerOptions
from apimachinery.storage.interface import Storage
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

CM = "/api/v1/namespaces/default/configmaps"
NS = "/api/v1/namespaces"
PODS = f"{NS}/default/pods"
SERVICES = f"{NS}/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
AUTOSCALER: dict[str, Any] = {
    "metadata": {"name": "h"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    },
}
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MERGE = {"content-type": "application/merge-patch+json"}


async def serve(
    options: ApiOptions | None = None,
    access: AccessOptions = OPEN_TO_LOOPBACK,
    storage: Storage | None = None,
) -> AssembledApi:
    storage = storage or MemoryStorage()
    cache = await WatchCache.open(storage)
    backend = Backend(cache, access, ServerOptions(fairness=False))
    api = build_api(backend, options or ApiOptions(controllers=frozenset()))
    await api.start()
    return api


async def ask(
    api: AssembledApi,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    user: User | None = None,
) -> Any:
    where, _, query = path.partition("?")
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = await api.handle(Request(method, where, query, headers or {}, data, user))
    assert isinstance(answer, Response)
    raw = answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    return (
        answer.status,
        json.loads(raw) if "json" in answer.content_type and raw else raw,
        dict(answer.headers),
    )


def run(
    story: Callable[[AssembledApi], Awaitable[None]],
    options: ApiOptions | None = None,
    access: AccessOptions = OPEN_TO_LOOPBACK,
) -> None:
    async def play() -> None:
        api = await serve(options, access)
        try:
            await story(api)
        finally:
            await api.stop()

    asyncio.run(play())


def holds(found: Any, wanted: Any) -> bool:
    """Whether everything wanted stands in what was found."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(holds(found.get(key), value) for key, value in wanted.items())
    return bool(found == wanted)


STORIES: dict[str, list[tuple[Any, ...]]] = {
    "the counts of an autoscaler's status": [
        ("POST", HPAS, AUTOSCALER, 201, {}),
        ("PUT", f"{HPAS}/h/status", {**AUTOSCALER, "status": {"currentReplicas": 2, "desiredReplicas": 3}}, 200,
         {"status": {"currentReplicas": 2}}),
        ("PUT", f"{HPAS}/h/status", {**AUTOSCALER, "status": {"currentReplicas": -1, "desiredReplicas": 3}}, 422,
         {"reason": "Invalid"}),
        ("PUT", f"{HPAS}/h/status", {**AUTOSCALER, "status": {"currentReplicas": 1, "desiredReplicas": 1}}, 200,
         {"status": {"currentReplicas": 1}}),
    ],
    "life of a config map": [
        ("POST", CM, {"metadata": {"name": "a"}, "data": {"k": "1"}}, 201, {"kind": "ConfigMap", "data": {"k": "1"}}),
        ("POST", CM, {"metadata": {"name": "a"}}, 409, {"reason": "AlreadyExists"}),
        ("GET", f"{CM}/a", None, 200, {"metadata": {"name": "a", "namespace": "default"}}),
        ("PATCH", f"{CM}/a", {"data": {"k": "2"}}, 200, {"data": {"k": "2"}}),
        ("PUT", f"{CM}/a", {"metadata": {"name": "a", "resourceVersion": "1"}}, 409, {"reason": "Conflict"}),
        ("PUT", f"{CM}/b", {"metadata": {"name": "b"}}, 404, {"reason": "NotFound"}),
        ("DELETE", f"{CM}/a", None, 200, {"status": "Success", "details": {"name": "a", "kind": "configmaps"}}),
        ("GET", f"{CM}/a", None, 404, {"message": 'configmaps "a" not found'}),
    ],
    "finalizers hold": [
        ("POST", CM, {"metadata": {"name": "f", "finalizers": ["x.io/f"]}}, 201, {}),
        ("DELETE", f"{CM}/f", None, 200, {"kind": "ConfigMap", "metadata": {"deletionGracePeriodSeconds": 0}}),
        ("GET", f"{CM}/f", None, 200, {"metadata": {"finalizers": ["x.io/f"]}}),
        ("PATCH", f"{CM}/f", {"metadata": {"finalizers": None}}, 200, {"kind": "ConfigMap"}),
        ("GET", f"{CM}/f", None, 404, {}),
    ],
    "paths that are none": [
        ("GET", "/api/v1/nosuch", None, 404, {"reason": "NotFound", "details": {}}),
        ("GET", "/apis/nosuch.io/v1/things", None, 404, None),
        ("POST", f"{CM}/a", {}, 405, {"reason": "MethodNotAllowed"}),
        ("PROPFIND", CM, None, 405, {"reason": "MethodNotAllowed"}),
        ("GET", f"{CM}/a/status", None, 404, {"reason": "NotFound"}),
        ("POST", "/api/v1/configmaps", {}, 405, {}),
    ],
    "bodies that are none": [
        ("POST", CM, b"", 400, {"reason": "BadRequest"}),
        ("POST", CM, b"[]", 400, {"reason": "BadRequest"}),
        ("POST", CM, b"{" * 5000, 400, {"reason": "BadRequest"}),
        ("POST", CM, {"kind": "Secret", "apiVersion": "v1"}, 400, {"reason": "BadRequest"}),
        ("POST", CM, {"metadata": {"name": "x", "namespace": "other"}}, 400, {"reason": "BadRequest"}),
        ("POST", CM, {"metadata": {}}, 422, {"reason": "Invalid"}),
        ("POST", CM, {"metadata": {"name": "x", "labels": {"a": 1}}}, 400, {"reason": "BadRequest"}),
    ],
    "namespaces": [
        ("POST", f"{NS}/nope/configmaps", {"metadata": {"name": "x"}}, 404, {"details": {"kind": "namespaces"}}),
        ("POST", "/api/v1/namespaces", {"metadata": {"name": "n"}}, 201, {"spec": {"finalizers": ["kubernetes"]}}),
        ("DELETE", "/api/v1/namespaces/n", None, 200, {"status": {"phase": "Terminating"}}),
        ("POST", f"{NS}/n/configmaps", {"metadata": {"name": "x"}}, 403, {"reason": "Forbidden"}),
        ("DELETE", "/api/v1/namespaces/default", None, 403, {"reason": "Forbidden"}),
    ],
    "dry run": [
        ("POST", f"{CM}?dryRun=All", {"metadata": {"name": "d"}}, 201, {"metadata": {"name": "d"}}),
        ("GET", f"{CM}/d", None, 404, {}),
        ("POST", f"{CM}?dryRun=Some", {"metadata": {"name": "d"}}, 422, {"reason": "Invalid"}),
    ],
    "generation": [
        ("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}},
            201, {"metadata": {"generation": 1}, "spec": {"replicas": 1}}),
        ("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 3}}, 200, {"metadata": {"generation": 2}}),
        ("PATCH", f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"x": "y"}}}, 200,
            {"metadata": {"generation": 2}}),
        ("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 5}}, 200, {"kind": "Scale", "spec": {"replicas": 5}}),
        ("GET", f"{DEPLOYMENTS}/d", None, 200, {"spec": {"replicas": 5}, "metadata": {"generation": 3}}),
    ],
    "what nodes answer": [
        ("POST", PODS, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}, 201, {}),
        ("GET", f"{PODS}/p/log", None, 204, b""),
        ("GET", f"{PODS}/q/log", None, 404, {"reason": "NotFound"}),
        ("GET", f"{PODS}/p/exec", None, 400, {"message": "pod p does not have a host assigned"}),
        ("POST", f"{PODS}/p/attach", None, 400, {"reason": "BadRequest"}),
        ("PATCH", f"{PODS}/p/proxy", {"metadata": {"labels": {"a": "b"}}}, 400, {"reason": "BadRequest"}),
        ("DELETE", f"{PODS}/p/proxy", None, 400, {"reason": "BadRequest"}),
        ("GET", f"{PODS}/p", None, 200, {"kind": "Pod"}),
        ("POST", SERVICES, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, 201, {}),
        ("DELETE", f"{SERVICES}/s/proxy", None, 404, {"message": 'services "s" not found'}),
        ("GET", f"{SERVICES}/s", None, 200, {"kind": "Service"}),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}}, 201, {}),
        ("DELETE", "/api/v1/nodes/n/proxy", None, 500,
         {"message": "no preferred addresses found; known addresses: []"}),
        ("GET", "/api/v1/nodes/n", None, 200, {"kind": "Node"}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", STORIES)
def test_story(name: str) -> None:
    async def story(api: AssembledApi) -> None:
        for method, path, body, code, wanted in STORIES[name]:
            status, found, _ = await ask(api, method, path, body, MERGE if method == "PATCH" else None)
            assert status == code, (method, path, found)
            assert wanted is None or holds(found, wanted), (method, path, found)

    run(story)


def definition(*, columns: bool = False) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer", "default": 1},
                    "color": {"enum": ["red"], "type": "string"},
                },
            }
        },
    }
    version: dict[str, Any] = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if columns:
        version["additionalPrinterColumns"] = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.x.io"},
        "spec": {
            "group": "x.io",
            "scope": "Namespaced",
            "names": {"kind": "Cup", "plural": "cups"},
            "versions": [version],
        },
    }


CUPS = "/apis/x.io/v1/namespaces/default/cups"


def cup(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Cup", "metadata": {"name": "c"}, "spec": spec}


async def until(api: AssembledApi, path: str, code: int) -> None:
    """Asks until the answer has a code; at most ten seconds."""
    async with asyncio.timeout(60):
        while (await ask(api, "GET", path))[0] != code:
            await asyncio.sleep(0.01)


async def define(api: AssembledApi, crd: dict[str, Any]) -> None:
    """Creates a CRD of cups and waits until it is served."""
    assert (await ask(api, "POST", CRDS, crd))[0] == 201
    await until(api, CUPS, 200)


def test_a_definition_is_served_and_taken_away() -> None:
    async def story(api: AssembledApi) -> None:
        await define(api, definition(columns=True))
        status, made, headers = await ask(api, "POST", CUPS, cup(color="red", odd=1))
        assert (status, made["spec"]) == (201, {"color": "red", "size": 1})
        assert headers["Warning"] == '299 - "unknown field \\"spec.odd\\""'
        assert (await ask(api, "POST", CUPS, cup(color="blue")))[0] == 422
        table = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
        _, shown, _ = await ask(api, "GET", CUPS, None, table)
        assert shown["rows"][0]["cells"] == ["c", 1]
        _, index, _ = await ask(api, "GET", "/openapi/v3")
        assert "apis/x.io/v1" in json.loads(index)["paths"]
        assert (await ask(api, "DELETE", f"{CRDS}/cups.x.io"))[0] == 200
        await until(api, CUPS, 404)
        assert (await ask(api, "GET", CUPS))[1] == b"404 page not found\n"

    run(story)


def test_a_deleted_collection_is_the_page_that_is_answered() -> None:
    """Selection, limit and continue token choose once, for the answer and for what is deleted."""

    async def story(api: AssembledApi) -> None:
        for name in "abcde":
            labels = {"k": "n" if name == "a" else "y"}
            await ask(api, "POST", CM, {"metadata": {"name": name, "labels": labels}})

        async def names(method: str, query: str = "") -> list[str]:
            _, shown, _ = await ask(api, method, f"{CM}?{query}")
            return [item["metadata"]["name"] for item in shown["items"]]

        assert await names("DELETE", "labelSelector=k%3Dy&limit=2") == ["b", "c"]
        assert await names("GET") == ["a", "d", "e"]
        _, first, _ = await ask(api, "GET", f"{CM}?limit=1")
        token = first["metadata"]["continue"]
        assert await names("DELETE", f"limit=1&continue={token}") == ["d"]
        assert await names("GET") == ["a", "e"]

    run(story)


def test_two_apis_in_one_process_do_not_share_what_they_know() -> None:
    """Protobuf is spoken for the packages that an API serves, whatever others of the process serve."""
    accept = {"accept": "application/vnd.kubernetes.protobuf"}

    async def story(api: AssembledApi) -> None:
        alone = await serve(ApiOptions(packages=("messaging_api",), controllers=frozenset()))
        try:
            assert (await ask(api, "GET", "/api/v1/namespaces/default", None, accept))[1].startswith(b"k8s")
            _, status, _ = await ask(alone, "GET", "/apis/messaging.kubewright.dev/v1/none", None, accept)
            assert isinstance(status, dict) and status["kind"] == "Status"
        finally:
            await alone.stop()

    run(story)


def test_emulated_version_hides_what_came_later() -> None:
    async def story(api: AssembledApi) -> None:
        assert (await ask(api, "GET", "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"))[
            0
        ] == 404

    run(story, ApiOptions(controllers=frozenset(), emulated_version="1.30"))


def test_a_namespace_has_its_generated_name_in_a_label() -> None:
    """The label is the server's: nobody is its manager, as nobody gave it."""

    async def story(api: AssembledApi) -> None:
        for labels in (None, {"team": "red"}):
            metadata = {"generateName": "n-"} | ({"labels": labels} if labels else {})
            code, made, _ = await ask(api, "POST", "/api/v1/namespaces", {"metadata": metadata})
            made = made["metadata"]
            assert code == 201
            assert made["labels"] == (labels or {}) | {"kubernetes.io/metadata.name": made["name"]}
            managed = made["managedFields"][0]["fieldsV1"]["f:metadata"].get("f:labels", {})
            assert set(managed) == ({".", "f:team"} if labels else set())

    run(story)


def test_a_namespace_without_a_name_is_refused() -> None:
    async def story(api: AssembledApi) -> None:
        for body in ({}, {"metadata": None}, {"metadata": {}}, {"metadata": {"name": None, "labels": None}}):
            code, refused, _ = await ask(api, "POST", "/api/v1/namespaces", body)
            assert (code, refused["reason"], refused["details"]["causes"][0]["field"]) == (
                422,
                "Invalid",
                "metadata.name",
            )

    run(story)


def test_controllers_empty_a_namespace_and_collect_garbage() -> None:
    async def story(api: AssembledApi) -> None:
        await ask(api, "POST", "/api/v1/namespaces", {"metadata": {"name": "n"}})
        _, owner, _ = await ask(api, "POST", CM, {"metadata": {"name": "owner"}})
        reference = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": "owner",
            "uid": owner["metadata"]["uid"],
        }
        await ask(api, "POST", CM, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
        await ask(api, "POST", "/api/v1/namespaces/n/configmaps", {"metadata": {"name": "x"}})
        await ask(api, "DELETE", "/api/v1/namespaces/n")
        await ask(api, "DELETE", f"{CM}/owner")
        for _ in range(60):
            await asyncio.sleep(0.1)
            gone = (
                (await ask(api, "GET", f"{CM}/owned"))[0],
                (await ask(api, "GET", "/api/v1/namespaces/n"))[0],
            )
            if gone == (404, 404):
                return
        raise AssertionError(gone)

    run(story, ApiOptions())
