"""The requests that costs in the API alone are measured with: no socket, memory storage. A line is a name, what makes
its requests by number, and how many of them are measured at a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.http.messages import Request, Response
from apimachinery.server.assembly.api import AssembledApi, build_api
from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.process import Backend, ServerOptions
from apimachinery.storage.memory import MemoryStorage
from apimachinery.storage.watch_cache import WatchCache

DEFAULT = "/api/v1/namespaces/default"
WIDGETS = "/apis/bench.example/v1/namespaces/default/widgets"
HEADERS = {"host": "x", "user-agent": "bench/1", "content-type": "application/json"}
JSON, APPLY = "application/json", "application/apply-patch+yaml"
FORCED = "fieldManager=bench&force=true"
MANY, PAGE = 2_000, 500
POD_SPEC = {
    "containers": [
        {
            "name": "web",
            "image": "nginx:1.27",
            "ports": [{"containerPort": 80}],
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
            "env": [{"name": "A", "value": "b"}],
            "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        }
    ],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
}
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_PORT = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "port": {"type": "integer"},
        "protocol": {"type": "string", "default": "TCP"},
    },
}
_SPEC = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "replicas": {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
        "size": {"type": "string", "enum": ["big", "small"]},
        "ratio": {"type": "number"},
        "labels": _TEXTS,
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _PORT,
        },
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.bench.example"},
    "spec": {
        "group": "bench.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC}}},
            }
        ],
    },
}
Make = Callable[[int], Request]


def request(method: str, path: str, body: Any = None, *, query: str = "", media_type: str = JSON) -> Request:
    """A request as a client sends it."""
    data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    return Request(method, path, query, {**HEADERS, "content-type": media_type}, data)


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def _apply(path: str, body: Any) -> Request:
    return request("PATCH", path, body, query=FORCED, media_type=APPLY)


def _pod(number: int) -> Request:
    metadata = {"name": f"p-{number}", "labels": {"app": "web"}}
    return request(
        "POST", f"{DEFAULT}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": POD_SPEC}
    )


def _deployment(number: int) -> Request:
    name = f"d-{number % 100}"
    labels = {"app": "web"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"n": str(number)}},
        "spec": {
            "replicas": number % 7,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": POD_SPEC},
        },
    }
    return _apply(f"/apis/apps/v1/namespaces/default/deployments/{name}", body)


def _status(number: int) -> Request:
    condition = {"type": "Ready", "status": "True" if number % 2 else "False", "reason": f"r{number}"}
    body = {"status": {"phase": "Running", "conditions": [condition], "podIP": f"10.0.0.{number % 250}"}}
    kind = "application/strategic-merge-patch+json"
    return request("PATCH", f"{DEFAULT}/pods/s-{number % 100}/status", body, media_type=kind)


def _widget(number: int) -> Request:
    name = f"w-{number % 100}"
    ports = [{"name": "http", "port": 80}, {"name": "https", "port": 443}]
    body = {
        "apiVersion": "bench.example/v1",
        "kind": "Widget",
        "metadata": {"name": name, "annotations": {"n": str(number)}},
        "spec": {"replicas": number % 7, "size": "big", "ports": ports, "labels": {"a": "b", "c": "d"}},
    }
    return _apply(f"{WIDGETS}/{name}", body)


LINES: dict[str, tuple[Make, int]] = {
    "get": (lambda number: request("GET", f"{DEFAULT}/configmaps/x"), 4000),
    "list": (lambda number: request("GET", "/api/v1/namespaces/many/configmaps"), 2000),
    "page": (
        lambda number: request("GET", "/api/v1/namespaces/many/configmaps", query=f"limit={PAGE}"),
        1000,
    ),
    "create": (
        lambda number: request("POST", f"{DEFAULT}/configmaps", config_map(f"c{number}", key="v" * 600)),
        2000,
    ),
    "put": (
        lambda number: request("PUT", f"{DEFAULT}/configmaps/x", config_map("x", key=f"{number}{'v' * 600}")),
        2000,
    ),
    "patch": (
        lambda number: request(
            "PATCH",
            f"{DEFAULT}/configmaps/x",
            {"data": {"sent": str(number)}},
            media_type="application/merge-patch+json",
        ),
        2000,
    ),
    "apply": (
        lambda number: _apply(
            f"{DEFAULT}/configmaps/a-{number % 100}", config_map(f"a-{number % 100}", key=str(number))
        ),
        2000,
    ),
    "pod": (_pod, 600),
    "deployment": (_deployment, 600),
    "status": (_status, 1000),
    "custom": (_widget, 1000),
}
"""As in the load table, and an apply of a custom resource."""


def seeds() -> Iterator[Request]:
    """Creates what the requests of ``LINES`` are about."""
    for kind, name in (("Namespace", "many"), ("ServiceAccount", "default")):
        path = "/api/v1/namespaces" if kind == "Namespace" else f"{DEFAULT}/serviceaccounts"
        yield request("POST", path, {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
    yield request("POST", f"{DEFAULT}/configmaps", config_map("x", key="v" * 600))
    for number in range(MANY):
        body = config_map(f"cm-{number:06}", key="v" * 100)
        yield request("POST", "/api/v1/namespaces/many/configmaps", body)
    for number in range(100):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"s-{number}"}, "spec": spec}
        yield request("POST", f"{DEFAULT}/pods", pod)
    yield request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)


async def answered(api: AssembledApi, sent: Request) -> Response:
    """The answer to a request, which must be a good one."""
    answer = await api.handle(sent)
    assert isinstance(answer, Response) and answer.status < 300, answer
    return answer


@asynccontextmanager
async def running_api() -> AsyncIterator[AssembledApi]:
    """An API with what the requests are about, and no controllers but that of definitions."""
    cache = await WatchCache.open(MemoryStorage())
    backend = Backend(cache, OPEN_TO_LOOPBACK, ServerOptions(fairness=False))
    api = build_api(backend, ApiOptions(controllers=frozenset()))
    await api.start()
    for each in seeds():
        await answered(api, each)
    for _ in range(500):
        if (await api.handle(request("GET", WIDGETS))).status == 200:
            break
        await asyncio.sleep(0.01)
    # The first request for a kind loads apart from the loop, and items of lists are kept joined from then on.
    for make, _ in LINES.values():
        await answered(api, make(-1))
    yield api
    await api.stop()
