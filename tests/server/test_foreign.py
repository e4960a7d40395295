"""What a kube-apiserver stored is read as what this server would have stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apimachinery.server.catalog.options import ApiOptions
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.read.foreign import SELF_DESCRIBED_CBOR, ForeignObjects
from apimachinery.wire import cbor

METADATA = {"name": "a", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-02T03:04:05Z"}
GEAR = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"uid": "u", "name": "a"}, "alpha": 1.5}


@pytest.fixture(scope="module")
def foreign() -> ForeignObjects:
    return ForeignObjects(ApiOptions())


def protobuf(obj: dict[str, Any]) -> bytes:
    messages = ServedPackage("kubernetes_api").messages()
    assert messages is not None
    return messages.encode(obj)


def test_protobuf_of_a_builtin_kind(foreign):
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": METADATA,
        "data": {"a": "aHVudGVyMg=="},
        "type": "Opaque",
    }
    read = foreign.read("/core/secrets/ns/a", protobuf(secret))
    assert json.loads(read) == secret
    assert read.startswith(
        b'{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"u",'
    )


def test_an_older_version_is_converted_and_defaulted(foreign):
    scaler = {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": METADATA,
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "targetCPUUtilizationPercentage": 60,
        },
    }
    read = json.loads(foreign.read("/autoscaling/horizontalpodautoscalers/ns/a", protobuf(scaler)))
    stored = "autoscaling/v2"
    assert read["apiVersion"] == stored
    assert read["spec"]["metrics"][0]["resource"]["target"] == {
        "type": "Utilization",
        "averageUtilization": 60,
    }
    assert read["spec"]["minReplicas"] == 1


def test_custom_resources_in_json_and_cbor(foreign):
    ours = b'{"apiVersion":"example.com/v1","kind":"Gear","alpha":1.5,"metadata":{"name":"a","uid":"u"}}'
    assert foreign.read("/example.com/gears/a", ours) == ours
    stored = cbor.encode(GEAR)
    stored = stored if stored.startswith(SELF_DESCRIBED_CBOR) else SELF_DESCRIBED_CBOR + stored
    assert foreign.read("/example.com/gears/a", stored) == ours


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"k8s\0", b"k8s\0\xff\xff", b"\xd9\xd9\xf7", b"\xd9\xd9\xf7\xff", b"\xd9\xd9\xf7\x01", b"[]"],
)
def test_what_is_no_object_says_so(foreign, data):
    with pytest.raises(ValueError):
        foreign.read("/core/pods/ns/a", data)


def test_a_custom_object_where_those_of_a_built_in_kind_are_is_not_read(foreign):
    role = b'{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"a","uid":"u"}}'
    with pytest.raises(ValueError, match="a custom object"):
        foreign.read("/rbac.authorization.k8s.io/clusterroles/a", role)
    assert foreign.read("/custom:rbac.authorization.k8s.io/clusterroles/a", role) == role
