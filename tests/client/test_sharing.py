"""A mirror keeps equal parts once, and nobody can tell from what its objects say."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec

from apimachinery.client import sharing
from apimachinery.client.calls import UNSTRUCTURED, Event, typed_codec
from apimachinery.client.partial import PARTIAL
from apimachinery.client.sharing import SharedParts
from apimachinery.client.sharing import sharing as shared
from apimachinery.typed import lossless
from kubernetes_api.core_v1 import Pod

FIELDS = {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}}}}}


def a_pod(number: int, image: str = "i:1") -> bytes:
    entry = {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": FIELDS}
    toleration = {"key": "k", "operator": "Exists", "unknown": number}
    spec = {
        "containers": [{"name": "c", "image": image, "env": [{"name": "A", "value": "1"}]}],
        "tolerations": [toleration, {"key": "k", "operator": "Exists"}, {"key": "k", "operator": "Exists"}],
        "nodeSelector": {"a": "b"},
        "securityContext": {"runAsNonRoot": True},
    }
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    metadata: dict[str, Any] = {
        "name": f"p{number}",
        "namespace": "n",
        "managedFields": [entry],
        "resourceVersion": "1",
    }
    metadata |= {"labels": {"app": "web"}, "annotations": {"app": "web"}, "ownerReferences": [owner]}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Running"},
    }
    return json.dumps(body).encode()


def parts(pod: Any) -> list[Any]:
    fields = pod.metadata.managed_fields[0].fields_v1
    metadata = [pod.metadata.labels, pod.metadata.owner_references]
    return [*metadata, pod.spec.containers[0], fields, pod.spec.node_selector, pod.spec.security_context]


def test_equal_parts_are_one_and_others_are_not() -> None:
    codec = shared(typed_codec(Pod))
    first, *others = codec.decode_all([a_pod(number) for number in range(40)])
    for pod in [*others, codec.decode(a_pod(41))]:
        assert all(mine is theirs for mine, theirs in zip(parts(pod), parts(first), strict=True))
    different = codec.decode(a_pod(42, "i:2"))
    assert different.spec and different.spec.containers[0].image == "i:2"
    assert first.spec and first.spec.containers[0].image == "i:1"


def test_metadata_alone_is_shared_too() -> None:
    codec = shared(PARTIAL)
    first, second = codec.decode_all([a_pod(1), a_pod(2)])
    assert first.metadata.labels is second.metadata.labels
    assert first.metadata.owner_references is second.metadata.owner_references
    assert first.metadata.annotations is not first.metadata.labels  # equal, and of one object
    made = copy.deepcopy(second)
    assert made.metadata.labels is not None
    made.metadata.labels["app"] = "changed"
    assert first.metadata.labels == {"app": "web"}


def test_objects_say_what_they_said() -> None:
    codec = shared(typed_codec(Pod))
    for number in range(5):
        raw = a_pod(number)
        found = codec.decode(raw)
        assert msgspec.json.encode(found) == msgspec.json.encode(msgspec.json.decode(raw, type=Pod))
        assert json.loads(lossless.encode(found)) == json.loads(raw)  # also what the class does not know
    assert shared(UNSTRUCTURED).decode(a_pod(1)) == json.loads(a_pod(1))
    event = Event("ADDED", codec.decode(a_pod(1)), "1")
    assert event.object is not None


def test_a_copy_shares_nothing_not_even_with_itself() -> None:
    codec = shared(typed_codec(Pod))
    first, second = codec.decode(a_pod(1)), codec.decode(a_pod(2))
    made: Any = copy.deepcopy(second)
    made.spec.containers[0].image = "changed"
    made.spec.tolerations[1].key = "changed"
    assert made.spec.tolerations[2].key == "k"
    for pod in (first, second):
        assert pod.spec and pod.spec.containers[0].image == "i:1"


def test_what_is_remembered_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(sharing, "MOST_PARTS", 10)
    known = SharedParts()
    for number in range(50):
        known.share(msgspec.json.decode(a_pod(number, f"i:{number}"), type=Pod))
        assert len(known._known) < 10 + 12
