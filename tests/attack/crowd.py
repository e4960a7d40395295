"""A database with many objects, and the requests that are large because of them: whole lists in every form, watches
from long ago, deletions of all. It is filled before the server starts, through the storage alone.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from apimachinery.storage.interface import REVISION_MARK, Value
from apimachinery.storage.sqlite import SqliteStorage
from tests.attack.inputs import Input, packed

AT_ONCE = 2_000
CREATED = "2026-01-01T00:00:00Z"
CROWD = "/api/v1/namespaces/crowd/configmaps"
PODS = "/api/v1/namespaces/crowd/pods"
META = "g=meta.k8s.io;v=v1"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def _stored(kind: str, name: str, rest: dict[str, Any], namespace: str = "crowd") -> bytes:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"00000000-0000-4000-8000-{abs(hash((kind, name))) % 10**12:012d}",
        "resourceVersion": REVISION_MARK,
        "creationTimestamp": CREATED,
        "labels": {"app": f"a{len(name)}", "n": name[-1]},
    }
    if not namespace:
        del metadata["namespace"]
    return packed({"kind": kind, "apiVersion": "v1", "metadata": metadata, **rest})


SPEC = {
    "containers": [{"name": "a", "image": "a", "terminationMessagePath": "/dev/termination-log"}],
    "restartPolicy": "Always",
}


async def _fill(path: Path, config_maps: int, pods: int, dense: int) -> None:
    storage = await SqliteStorage.open(path)
    active = {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    try:
        await storage.create("/core/namespaces/crowd", Value.cut(_stored("Namespace", "crowd", active, "")))
        data = {f"k{i}": "v" * 60 for i in range(10)}
        wanted = [
            (f"/core/configmaps/crowd/{name}", _stored("ConfigMap", name, {"data": data}))
            for name in (f"c{n:06d}" for n in range(config_maps))
        ]
        wanted += [
            (
                f"/core/pods/crowd/{name}",
                _stored("Pod", name, {"spec": SPEC, "status": {"phase": "Running"}}),
            )
            for name in (f"p{n:06d}" for n in range(pods))
        ]
        # As dense as an object may be: what is small in bytes and large in memory.
        data = {f"k{n}": "" for n in range(dense)}
        wanted.append(("/core/configmaps/crowd/dense", _stored("ConfigMap", "dense", {"data": data})))
        for low in range(0, len(wanted), AT_ONCE):
            await asyncio.gather(
                *(storage.create(key, Value.cut(value)) for key, value in wanted[low : low + AT_ONCE])
            )
    finally:
        await storage.close()


def fill(path: Path, config_maps: int = 100_000, pods: int = 30_000, dense: int = 100_000) -> None:
    """Makes the database: so many objects, and one with so many keys."""
    asyncio.run(_fill(path, config_maps, pods, dense))


def _list(name: str, accept: str, path: str = CROWD) -> Input:
    return Input(name, "GET", path, headers={"Accept": accept})


INPUTS = [
    _list("all as JSON", "application/json"),
    _list("all as JSON, packed", "application/json"),
    _list("all as a table", f"application/json;as=Table;{META}"),
    _list("all as a table of objects", f"application/json;as=Table;{META}", f"{CROWD}?includeObject=Object"),
    _list("all pods as a table", f"application/json;as=Table;{META}", PODS),
    _list("all as metadata", f"application/json;as=PartialObjectMetadataList;{META}"),
    _list("all as YAML", "application/yaml", PODS),
    _list("all as CBOR", "application/cbor"),
    _list("all as protobuf", "application/vnd.kubernetes.protobuf"),
    _list(
        "all metadata as protobuf", f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;{META}"
    ),
    _list("a table as CBOR", f"application/cbor;as=Table;{META}"),
    _list("a table as YAML", f"application/yaml;as=Table;{META}", PODS),
    _list("a table as protobuf", f"application/vnd.kubernetes.protobuf;as=Table;{META}"),
    _list("all, pretty", "application/json", f"{PODS}?pretty=true"),
    _list("all of a label", "application/json", f"{CROWD}?labelSelector=n%3D1"),
    _list("all but a label", "application/json", f"{CROWD}?labelSelector=n!%3D1"),
    _list("all of a field", "application/json", f"{PODS}?fieldSelector=status.phase%3DRunning"),
    _list("all of every namespace", "application/json", "/api/v1/configmaps"),
    _list("a page at the end", "application/json", f"{CROWD}?limit=99999"),
    _list(
        "a watch from the start", "application/json", f"{CROWD}?watch=1&resourceVersion=0&timeoutSeconds=1"
    ),
    _list(
        "a watch from the start as tables",
        f"application/json;as=Table;{META}",
        f"{CROWD}?watch=1&resourceVersion=0&timeoutSeconds=1",
    ),
    _list(
        "a watch from long ago", "application/json", f"{CROWD}?watch=1&resourceVersion=100&timeoutSeconds=1"
    ),
    _list(
        "a watch of metadata from long ago",
        f"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;{META}",
        f"{CROWD}?watch=1&resourceVersion=100&timeoutSeconds=1",
    ),
    _list("a dense object as YAML", "application/yaml", f"{CROWD}/dense"),
    _list("a dense object as CBOR", "application/cbor", f"{CROWD}/dense"),
    _list("a dense object as protobuf", "application/vnd.kubernetes.protobuf", f"{CROWD}/dense"),
    _list(
        "a dense object as a table",
        f"application/json;as=Table;{META}",
        f"{CROWD}/dense?includeObject=Object",
    ),
    _list("a dense object, pretty", "application/json", f"{CROWD}/dense?pretty=true"),
    Input(
        "a patch of a dense object",
        "PATCH",
        f"{CROWD}/dense",
        lambda: packed({"metadata": {"labels": {"patched": "a"}}}),
        {"Content-Type": "application/merge-patch+json"},
    ),
    Input(
        "an apply to a dense object",
        "PATCH",
        f"{CROWD}/dense?fieldManager=a",
        lambda: packed(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dense"}, "data": {"k1": ""}}
        ),
        {"Content-Type": "application/apply-patch+yaml"},
    ),
    Input("a dense object deleted, as if", "DELETE", f"{CROWD}/dense?dryRun=All"),
    Input("all deleted, as if", "DELETE", f"{CROWD}?dryRun=All"),
    _list("metrics", "text/plain", "/metrics"),
    _list("all documents", "application/json", "/openapi/v2"),
    _list(
        "all documents as protobuf",
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "/openapi/v2",
    ),
    _list("all groups", DISCOVERY, "/apis"),
    Input("all pods deleted", "DELETE", PODS),
    Input("the namespace deleted", "DELETE", "/api/v1/namespaces/crowd"),
]
