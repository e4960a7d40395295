"""A cluster of three nodes in a process: scheduling, cordons, faults by name, and time that passes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.server.catalog.options import parse_controllers
from apimachinery.server.node.shapes import TemplateError, shapes
from kubewright.testing import ApiServer

from .objects import LABELS, MERGE, Objects, template

NODES = [f"kubewright-node-{number}" for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApiServer]:
    with ApiServer(nodes=3, controllers="workloads") as running:
        running.settle()
        yield running


@pytest.fixture
def objects(cluster: ApiServer) -> Iterator[Objects]:
    with cluster.namespace() as namespace:
        yield Objects(cluster, namespace)
        cluster.faults.heal()
        cluster.clock.advance("1m")
        cluster.settle()


def on(objects: Objects) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in objects.all("pods"))


def ready(objects: Objects, node: str) -> str:
    conditions = objects.server.request("GET", f"/api/v1/nodes/{node}")["status"]["conditions"]
    return str(next(each["status"] for each in conditions if each["type"] == "Ready"))


def patch_node(objects: Objects, node: str, fields: dict[str, Any]) -> None:
    objects.server.request("PATCH", f"/api/v1/nodes/{node}", fields, MERGE)
    objects.server.settle()


def test_replicas_spread_over_the_nodes(objects: Objects) -> None:
    objects.workload("deployments", replicas=3)
    assert on(objects) == NODES
    node = objects.server.request("GET", f"/api/v1/nodes/{NODES[1]}")
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-b"
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.")


def test_a_cordoned_node_gets_no_pods_and_a_daemon_still(objects: Objects) -> None:
    patch_node(objects, NODES[0], {"spec": {"unschedulable": True}})
    objects.workload("deployments", replicas=4)
    assert set(on(objects)) == set(NODES[1:])
    objects.delete("deployments", "web")
    objects.workload("daemonsets")
    assert on(objects) == NODES
    patch_node(objects, NODES[0], {"spec": {"unschedulable": None}})


def test_a_pod_that_fits_nowhere_says_why_until_there_is_room(objects: Objects) -> None:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "65"}}}
    objects.create("pods", "big", spec={"containers": [container]})
    condition = objects.condition("pods", "big", "PodScheduled")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == "0/3 nodes are available: 3 Insufficient cpu."
    (event,) = [each for each in objects.all("events") if each["involvedObject"]["name"] == "big"]
    shown = {key: event[key] for key in ("type", "reason", "message", "reportingComponent")}
    assert shown == {
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": condition["message"],
        "reportingComponent": "default-scheduler",
    }
    gated = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"disk": "ssd"}}
    objects.create("pods", "picky", spec=gated)
    assert "nodeName" not in objects.get("pods", "picky")["spec"]
    patch_node(objects, NODES[2], {"metadata": {"labels": {"disk": "ssd"}}})
    assert objects.get("pods", "picky")["spec"]["nodeName"] == NODES[2]
    assert objects.condition("pods", "picky", "PodScheduled")["status"] == "True"
    patch_node(objects, NODES[2], {"metadata": {"labels": {"disk": None}}})


def test_the_less_important_give_way(objects: Objects) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    objects.server.request("POST", path, {"metadata": {"name": "vital"}, "value": 1000})
    half = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "60"}}}
    spec = {"containers": [half]}
    objects.workload("deployments", replicas=3, template={"metadata": {"labels": LABELS}, "spec": spec})
    assert on(objects) == NODES
    objects.create("pods", "first", spec={**spec, "priorityClassName": "vital"})
    assert objects.get("pods", "first")["spec"]["nodeName"] in NODES
    waiting = [pod for pod in objects.all("pods") if not pod["spec"].get("nodeName")]
    assert len(waiting) == 1, "the Deployment's third pod waits"
    objects.server.request("DELETE", f"{path}/vital")


def test_pods_leave_a_node_that_dies_and_a_zone_that_is_cut_off(objects: Objects) -> None:
    objects.workload("deployments", replicas=3)
    objects.server.faults.kill(NODES[0])
    objects.server.faults.cut_off("zone-b")
    objects.server.clock.advance("1m")
    objects.server.settle()
    assert [ready(objects, node) for node in NODES] == ["Unknown", "Unknown", "True"]
    assert objects.get("deployments", "web")["status"]["availableReplicas"] == 1
    assert objects.get("deployments", "web")["status"]["replicas"] == 3
    objects.server.clock.advance("6m")  # pods bear it for five
    objects.server.settle()
    assert objects.get("deployments", "web")["status"]["availableReplicas"] == 3
    staying = [
        pod["spec"]["nodeName"] for pod in objects.all("pods") if "deletionTimestamp" not in pod["metadata"]
    ]
    assert staying == [NODES[2]] * 3
    objects.server.faults.heal()
    objects.server.settle()
    assert on(objects) == [NODES[2]] * 3, "what was left on the others has ended"
    assert [ready(objects, node) for node in NODES] == ["True"] * 3


def test_an_image_that_is_never_pulled(objects: Objects) -> None:
    objects.server.faults.never_pull("image:2")
    objects.workload("deployments", replicas=2)
    objects.patch("deployments", "web", spec={"template": template(image="image:2")})
    assert objects.images() == ["image:1", "image:1", "image:2"]
    (stuck,) = [pod for pod in objects.all("pods") if pod["status"]["phase"] == "Pending"]
    assert stuck["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    objects.server.faults.heal("image:2")
    objects.server.settle()
    assert objects.images() == ["image:2", "image:2"]


def test_shapes_of_nodes() -> None:
    given = {"kind": "Node", "metadata": {"labels": {"disk": "ssd"}}, "status": {"capacity": {"cpu": 2}}}
    made = shapes("n", 4, given)
    assert [shape.zone for shape in made] == ["zone-a", "zone-b", "zone-c", "zone-a"]
    assert made[0].capacity["cpu"] == "2"
    assert made[0].registered()["metadata"]["labels"]["disk"] == "ssd"
    for wrong, text in (
        ({"kind": "Pod"}, "kind: 'Pod' is no Node"),
        ({"metadata": 3}, "metadata: 3 is no mapping"),
        ({"spec": {"taints": {}}, "status": {"capacity": [1]}}, r"status.capacity: \[1\] is no mapping"),
        ({"spec": {"taints": "x"}}, "spec.taints: 'x' is no list"),
    ):
        with pytest.raises(TemplateError, match=text):
            shapes("n", 1, wrong)


def test_a_scheduler_comes_with_nodes_unless_it_is_left_out() -> None:
    assert "scheduler" in parse_controllers("all,node")
    assert "scheduler" not in parse_controllers("all,node,-scheduler")
    assert "gc" not in parse_controllers("all,-gc")
