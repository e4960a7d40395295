"""The typed models: importing them, and reading a list of 1,000 Pods with them."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec
from tests.bench.measuring import Peer, Row, compare, installed, python


def measure() -> list[Row]:
    return [*_imports(), *_decoding()]


def _imports() -> list[Row]:
    ours = python("-c", "import kubernetes_api.apps_v1")
    peers = [Peer("import msgspec, and 80 ms", python("-c", "import msgspec"))]
    if installed("lightkube"):
        peers.append(Peer("lightkube", python("-c", "import lightkube.models.apps_v1"), target=1.0))
    if installed("kubernetes"):
        peers.append(Peer("kubernetes", python("-c", "from kubernetes.client import V1Deployment")))
    first, *others = compare("import the models of apps/v1", ours, peers, repeat=7)
    allowed = first.theirs + 0.080
    return [
        Row(bench=first.bench, peer=first.peer, ours=first.ours, theirs=allowed, target=1.0),
        *others,
    ]


def _decoding() -> list[Row]:
    from kubernetes_api.core_v1 import PodList

    data = json.dumps(pod_list(1000)).encode()
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(PodList).decode
    limit = msgspec.json.Decoder(bare_struct(PodList, {})).decode
    peers = [Peer("msgspec's limit: bare structs, same fields", lambda: limit(data), target=1.1)]
    if installed("lightkube"):
        from lightkube.models.core_v1 import PodList as LightkubePodList

        peers.append(Peer("lightkube", lambda: LightkubePodList.from_dict(json.loads(data)), target=1.0))
    if installed("kubernetes"):
        peers.append(Peer("kubernetes", _official(data), target=1.0))
    return compare("decode a PodList of 1,000", lambda: decode(data), peers, repeat=3)


def _official(data: bytes) -> Callable[[], object]:
    from kubernetes.client import ApiClient

    client, text = ApiClient(), data.decode()
    return lambda: client.deserialize(text, "V1PodList", "application/json")


def bare_struct(model: Any, made: dict[Any, Any]) -> Any:
    """A struct with the wire names of ``model`` and nothing else of it: no base, no renaming, no constants."""
    if model in made:
        return made[model]
    if isinstance(model, type) and issubclass(model, msgspec.Struct):
        made[model] = Any  # what refers to itself is not followed
        hints = typing.get_type_hints(model)
        members = []
        for member in msgspec.structs.fields(model):
            kind = bare_struct(hints[member.name], made)
            key = member.encode_name if member.encode_name.isidentifier() else member.name
            members.append(
                (key if key != "from" else "from_", kind, None) if not member.required else (key, kind)
            )
        made[model] = msgspec.defstruct(model.__name__, members, kw_only=True)
        return made[model]
    origin, arguments = typing.get_origin(model), typing.get_args(model)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[tuple(bare_struct(item, made) for item in arguments)]  # noqa: UP007
    if origin in (list, dict):
        return origin[tuple(bare_struct(item, made) for item in arguments)]
    return model


def pod_list(count: int) -> dict[str, Any]:
    """Pods as a cluster has them: a few containers, volumes, tolerations, conditions and statuses."""
    return {
        "apiVersion": "v1",
        "kind": "PodList",
        "metadata": {"resourceVersion": "9"},
        "items": [pod(number) for number in range(count)],
    }


def pod(number: int) -> dict[str, Any]:
    moment = "2026-01-02T03:04:05Z"
    containers = [
        {
            "name": name,
            "image": f"registry.example/{name}:1.{number}",
            "command": ["/bin/" + name, "--verbose"],
            "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
            "env": [{"name": f"KEY_{i}", "value": str(i)} for i in range(5)],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "livenessProbe": {
                "httpGet": {"path": "/", "port": "http", "scheme": "HTTP"},
                "periodSeconds": 10,
            },
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "imagePullPolicy": "IfNotPresent",
        }
        for name in ("web", "proxy")
    ]
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": moment}
        for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    ]
    statuses = [
        {
            "name": name,
            "ready": True,
            "restartCount": 0,
            "image": f"registry.example/{name}:1.{number}",
            "imageID": "sha256:" + "0" * 64,
            "started": True,
            "state": {"running": {"startedAt": moment}},
        }
        for name in ("web", "proxy")
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"web-{number}",
            "namespace": "shop",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(number),
            "creationTimestamp": moment,
            "labels": {"app": "web", "tier": "front"},
            "annotations": {"note": "x" * 40},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}],
        },
        "spec": {
            "containers": containers,
            "volumes": [{"name": "data", "configMap": {"name": "web", "defaultMode": 420}}],
            "restartPolicy": "Always",
            "serviceAccountName": "default",
            "nodeName": f"node-{number % 10}",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": statuses,
            "podIP": "10.0.0.1",
            "hostIP": "192.0.2.1",
            "startTime": moment,
            "qosClass": "Burstable",
        },
    }
