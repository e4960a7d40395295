"""metrics.k8s.io of simulated nodes: what clients read, what kubectl top shows, what autoscalers go by."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.controller.forms import until

from apimachinery.meta.errors import ApiError
from apimachinery.server.catalog.served_package import ServedPackage
from apimachinery.server.node.behaviour import NodeBehaviour
from apimachinery.server.node.metrics_package import MetricsPackage
from kubewright.testing import ApiServer

METRICS = "/apis/metrics.k8s.io/v1beta1"
CPU, MEMORY = "node.kubewright.dev/cpu", "node.kubewright.dev/memory"
LABELS = {"app": "web"}


class Load:
    """What all pods of a Deployment use together, divided among them."""

    def __init__(self) -> None:
        self.millicores = 0
        self.pods = 1

    def usage(self, pod: Mapping[str, Any], metric: str) -> str:
        if metric != "cpu" or pod["metadata"].get("labels") != {**LABELS, **_hash(pod)}:
            return ""
        return f"{self.millicores // self.pods}m"


def _hash(pod: Mapping[str, Any]) -> dict[str, str]:
    found = pod["metadata"]["labels"].get("pod-template-hash")
    return {"pod-template-hash": found} if found else {}


@pytest.fixture(scope="module")
def load() -> Load:
    return Load()


@pytest.fixture(scope="module")
def server(load: Load) -> Iterator[ApiServer]:
    behaviour = NodeBehaviour(nodes=2, usage=load.usage)
    with ApiServer(node=behaviour, controllers="workloads") as running:
        yield running


@pytest.fixture
def namespace(server: ApiServer) -> Iterator[str]:
    with server.namespace("metrics-") as name:
        yield name


def container(name: str, **requests: str) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": requests}}


def start(server: ApiServer, namespace: str, name: str, *containers: dict[str, Any], **metadata: Any) -> None:
    spec = {"containers": list(containers) or [container("main")], "nodeName": "kubewright-node-1"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}
    server.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)
    server.settle()


def used(server: ApiServer, path: str) -> dict[str, dict[str, str]]:
    return {each["name"]: each["usage"] for each in server.request("GET", path)["containers"]}


def test_figures_are_plausible_annotated_and_divided(server: ApiServer, namespace: str) -> None:
    pods = f"{METRICS}/namespaces/{namespace}/pods"
    containers = container("big", cpu="2", memory="1Gi"), container("small")
    start(server, namespace, "plausible", *containers)
    assert used(server, f"{pods}/plausible") == {
        "big": {"cpu": "200m", "memory": "107374182"},
        "small": {"cpu": "1m", "memory": "8Mi"},
    }
    start(server, namespace, "given", *containers, annotations={CPU: "402m", MEMORY: "1Mi"})
    given = used(server, f"{pods}/given")
    assert given["big"]["cpu"] == "400m"
    assert given["small"]["cpu"] == "2m"
    start(server, namespace, "odd", annotations={CPU: "a lot", MEMORY: "-1"})
    assert used(server, f"{pods}/odd") == {"main": {"cpu": "1m", "memory": "0"}}


def test_lists_are_selected_as_metrics_server_does(server: ApiServer, namespace: str) -> None:
    start(server, namespace, "a", labels={"n": "a"})
    start(server, namespace, "b", labels={"n": "b"})

    def names(query: str) -> list[str]:
        found = server.request("GET", f"{METRICS}/namespaces/{namespace}/pods{query}")
        assert found["kind"] == "PodMetricsList"
        assert found["metadata"] == {}
        return [each["metadata"]["name"] for each in found["items"]]

    assert names("") == ["a", "b"]
    assert names("?labelSelector=n%3Db") == ["b"]
    assert names("?fieldSelector=metadata.name%3Da") == ["a"]
    with pytest.raises(ApiError, match=r"field label not supported|not a known field selector"):
        names("?fieldSelector=spec.nodeName%3Da")
    with pytest.raises(ApiError) as refused:
        names("?watch=true")
    assert refused.value.code == 405


def test_what_has_no_figures_is_named(server: ApiServer, namespace: str) -> None:
    start(server, namespace, "pulling", annotations={"node.kubewright.dev/image-error": "true"})
    for path, message in (
        (f"namespaces/{namespace}/pods/none", 'pods "none" not found'),
        (
            f"namespaces/{namespace}/pods/pulling",
            f'podmetrics.metrics.k8s.io "{namespace}/pulling" not found',
        ),
        ("nodes/none", 'node "none" not found'),
    ):
        with pytest.raises(ApiError) as refused:
            server.request("GET", f"{METRICS}/{path}")
        assert (refused.value.code, refused.value.message) == (404, message)


def test_nodes_use_what_their_pods_do_and_nothing_out_of_order(server: ApiServer, namespace: str) -> None:
    def cpu(node: str) -> str:
        return str(server.request("GET", f"{METRICS}/nodes/{node}")["usage"]["cpu"])

    before = cpu("kubewright-node-2")
    start(server, namespace, "busy", annotations={CPU: "3"})
    assert int(cpu("kubewright-node-1").removesuffix("m")) >= 3100
    assert cpu("kubewright-node-2") == before
    node = "/api/v1/nodes/kubewright-node-2"
    merge = "application/merge-patch+json"
    server.request("PATCH", node, {"metadata": {"annotations": {CPU: "7"}}}, merge)
    assert cpu("kubewright-node-2") == "7"
    server.faults.kill("kubewright-node-1")
    try:
        for path in ("nodes/kubewright-node-1", f"namespaces/{namespace}/pods/busy"):
            with pytest.raises(ApiError, match=r"metrics\.metrics\.k8s\.io"):
                server.request("GET", f"{METRICS}/{path}")
    finally:
        server.faults.heal()
    server.request("PATCH", node, {"metadata": {"annotations": {CPU: None}}}, merge)


def test_the_figures_have_a_protobuf_form() -> None:
    messages = MetricsPackage(ServedPackage("kubernetes_api")).messages()
    assert messages is not None
    measured = {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics",
        "metadata": {"name": "a"},
        "timestamp": "2026-01-02T03:04:05Z",
        "window": "15s",
        "containers": [{"name": "c", "usage": {"cpu": "1m", "memory": "8Mi"}}],
    }
    sent = messages.encode(measured)
    assert (
        bytes.fromhex("1a06" + "08" + "80acc7f037") in sent
    )  # field 3: a message with 15 * 10**9 nanoseconds
    assert messages.decode(sent) == measured


def test_readers_of_a_namespace_may_see_its_figures(server: ApiServer, namespace: str) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}],
    }
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    server.request("POST", path, binding)
    attributes = {"group": "metrics.k8s.io", "resource": "pods", "verb": "list", "namespace": namespace}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": "ann", "resourceAttributes": attributes},
    }
    reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    server.settle()
    assert server.request("POST", reviews, review)["status"]["allowed"]
    attributes["namespace"] = "default"
    assert not server.request("POST", reviews, review)["status"]["allowed"]


def test_without_nodes_nothing_is_measured() -> None:
    with ApiServer() as plain, pytest.raises(ApiError) as refused:
        plain.request("GET", f"{METRICS}/nodes")
    assert refused.value.code == 404


def kubectl(server: ApiServer, *words: str) -> list[list[str]]:
    command = ["kubectl", "--kubeconfig", str(server.kubeconfig), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split() for line in done.stdout.splitlines()]


needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@needs_kubectl
def test_kubectl_top_shows_pods_and_nodes(server: ApiServer, namespace: str) -> None:
    node = f"{METRICS}/nodes/kubewright-node-1"
    start(server, namespace, "web", annotations={CPU: "250m", MEMORY: "64Mi"})
    assert kubectl(server, "top", "pods", "-n", namespace) == [
        ["NAME", "CPU(cores)", "MEMORY(bytes)"],
        ["web", "250m", "64Mi"],
    ]

    def shows_usage() -> bool:
        usage = server.request("GET", node)["usage"]["cpu"]
        return ["kubewright-node-1", usage] in [row[:2] for row in kubectl(server, "top", "nodes")]

    # Pods of the tests before may still end between the two.
    until(shows_usage)
    assert kubectl(server, "get", "pods.metrics.k8s.io", "-n", namespace) == [
        ["NAME", "CPU", "MEMORY", "WINDOW"],
        ["web", "250m", "64Mi", "15s"],
    ]


@needs_kubectl
def test_an_autoscaler_settles_where_the_load_is_carried(
    server: ApiServer, namespace: str, load: Load
) -> None:
    deployments = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container("main", cpu="100m")]}}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "template": template}
    metadata = {"name": "web"}
    server.request(
        "POST",
        deployments,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
    )
    server.settle()
    kubectl(
        server, "autoscale", "deployment", "web", "-n", namespace, "--min=1", "--max=8", "--cpu-percent=50"
    )
    load.millicores = 200
    for _ in range(4):
        server.clock.advance("20s")
        server.settle()
        load.pods = server.request("GET", f"{deployments}/web")["spec"]["replicas"]
    assert load.pods == 4
    shown = kubectl(server, "top", "pods", "-n", namespace, "--no-headers")
    assert [row[1] for row in shown] == ["50m"] * 4
