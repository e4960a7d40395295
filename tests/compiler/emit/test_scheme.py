"""Bytes to typed objects and back: nothing known is lost, nulls of Go are read as Go means them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from apimachinery.typed.scheme import UnknownKindError
from kubernetes_api.apps_v1 import Deployment, DeploymentSpec
from kubernetes_api.core_v1 import Container, Pod, PodSpec, PodTemplateSpec
from kubernetes_api.discovery_v1 import EndpointSlice
from kubernetes_api.meta_v1 import LabelSelector, ObjectMeta
from kubernetes_api.scheme import SCHEME

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "labels": {"app": "web"},
        "annotations": {"a/b": ""},
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}, "time": "2026-01-02T03:04:05Z"}],
        "finalizers": [],
    },
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "nginx",
                "ports": [{"containerPort": 80, "name": "http"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 0},
                "readinessProbe": {"httpGet": {"port": 8080}},
                "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 0.5}},
                "env": [{"name": "EMPTY", "value": ""}],
                "stdin": False,
            }
        ],
        "hostIPC": True,
        "terminationGracePeriodSeconds": 0,
        "volumes": [
            {"name": "v", "iscsi": {"targetPortal": "p", "iqn": "q", "lun": 0}},
            {"name": "e", "emptyDir": {}},
        ],
    },
    "status": {"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}], "hostIPs": [], "qosClass": "Burstable"},
}


def test_a_pod_loses_nothing() -> None:
    assert json.loads(SCHEME.encode(SCHEME.decode(json.dumps(POD)))) == POD
    assert SCHEME.to_dict(SCHEME.from_dict(POD)) == {
        **POD,
        "metadata": {
            **POD["metadata"],
            "creationTimestamp": "2026-01-02T03:04:05Z",
        },
    }


def test_a_list_of_pods_loses_nothing() -> None:
    pods = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": [POD] * 3}
    assert json.loads(SCHEME.encode(SCHEME.decode(json.dumps(pods)))) == pods


def test_what_is_built_in_python_says_what_it_is() -> None:
    web = Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=0,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=PodTemplateSpec(spec=PodSpec(containers=[Container(name="web")])),
        ),
    )
    plain = SCHEME.to_dict(web)
    assert (plain["apiVersion"], plain["kind"], plain["spec"]["replicas"]) == ("apps/v1", "Deployment", 0)
    assert SCHEME.class_for("apps/v1", "Deployment") is Deployment
    assert (Deployment.API_VERSION, Deployment.KIND) == ("apps/v1", "Deployment")


def test_every_registered_class_can_decode_itself() -> None:
    kinds = list(SCHEME)
    assert len(kinds) > 150
    for api_version, kind in kinds:
        cls = SCHEME.class_for(api_version, kind)
        msgspec.json.Decoder(cls)
        assert (api_version, kind) == (cls.API_VERSION, cls.KIND)


def test_null_where_a_list_must_be_is_empty() -> None:
    slice_ = SCHEME.decode(
        b'{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",'
        b'"endpoints":[{"addresses":null},{"addresses":["a"]}],"ports":null}'
    )
    assert isinstance(slice_, EndpointSlice)
    assert [endpoint.addresses for endpoint in slice_.endpoints or ()] == [[], ["a"]]
    assert slice_.ports is None


def test_a_list_that_must_be_there_and_is_not_is_empty() -> None:
    pod = SCHEME.from_dict({"apiVersion": "v1", "kind": "Pod", "spec": {}})
    assert isinstance(pod, Pod) and pod.spec is not None
    assert pod.spec.containers == []


def test_refusals() -> None:
    with pytest.raises(UnknownKindError, match='no kind "Nothing" is registered for version "v1"'):
        SCHEME.decode(b'{"apiVersion":"v1","kind":"Nothing"}')
    with pytest.raises(
        msgspec.ValidationError, match=r"Expected `str | null`, got `int` - at `\$.metadata.name`"
    ):
        SCHEME.decode(b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":1}}')
    with pytest.raises(msgspec.DecodeError):
        SCHEME.decode(b"{")


def test_attributes_are_words() -> None:
    pod = SCHEME.from_dict(POD)
    assert isinstance(pod, Pod)
    assert pod.status is not None
    assert pod.status.pod_ip == "10.0.0.1"
    assert pod.spec is not None
    assert pod.spec.host_ipc is True
    probe = pod.spec.containers[0].liveness_probe
    assert probe is not None
    assert probe.http_get is not None
    assert probe.http_get.port == "http"


MANIFESTS = """\
# two
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {on: "yes", number: "010"}
---
---
apiVersion: v1
kind: Pod
metadata: {name: b}
spec:
  containers: [{name: web, ports: [{containerPort: 0o120}]}]
"""


def test_yaml_is_read_and_written_as_kubectl_does() -> None:
    first, second = SCHEME.decode_yaml_all(MANIFESTS)
    assert isinstance(second, Pod) and second.spec is not None and second.spec.containers[0].ports
    assert second.spec.containers[0].ports[0].container_port == 80
    assert SCHEME.to_dict(first)["data"] == {"true": "yes", "number": "010"}
    assert SCHEME.decode_yaml(SCHEME.encode_yaml(first)) == first
    assert SCHEME.decode_yaml(SCHEME.encode(second)) == second  # JSON is YAML
    assert SCHEME.decode_yaml_all(b"# nothing\n---\n") == []


def test_yaml_that_is_none_or_too_much_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError, match="one document is wanted, not of 2: use decode_yaml_all"):
        SCHEME.decode_yaml(MANIFESTS)
    with pytest.raises(msgspec.DecodeError, match="one document is wanted, not of 0"):
        SCHEME.decode_yaml("")
    with pytest.raises(msgspec.DecodeError, match="yaml: line 2: mapping values are not allowed"):
        SCHEME.decode_yaml("apiVersion: v1\nkind: a: b\n")
    with pytest.raises(msgspec.ValidationError, match="Expected `object`, got `array`"):
        SCHEME.decode_yaml("- a\n")
    with pytest.raises(UnknownKindError):
        SCHEME.decode_yaml("apiVersion: v1\nkind: Nothing\n")


@pytest.mark.parametrize(
    "text", ["apiVersion: v1\nkind: Pod\n", "# a\n---\nkind: Pod", "---\n", '"kind": Pod\n']
)
def test_yaml_given_for_json_is_called_by_its_name(text: str) -> None:
    for content in (text, text.encode(), memoryview(text.encode())):
        with pytest.raises(msgspec.DecodeError, match=r"This is YAML, not JSON: use decode_yaml"):
            SCHEME.decode(content)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "{", "[1", "nope", "{apiVersion: v1}", "\x00:"])
def test_other_broken_json_is_not_called_yaml(text: str) -> None:
    with pytest.raises(msgspec.DecodeError) as refusal:
        SCHEME.decode(text)
    assert "YAML" not in str(refusal.value)
