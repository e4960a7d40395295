"""What the stock scheduler asks, as ``system:kube-scheduler`` with the bootstrap roles alone: its lease, what it
lists and watches, bindings, conditions of pods, events, delegated reviews; and what it may not do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

WHO = "system:kube-scheduler"
PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
STRATEGIC = "application/strategic-merge-patch+json"
FOLLOWED = [
    "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed",
    "/api/v1/nodes",
    "/api/v1/namespaces",
    "/api/v1/services",
    "/api/v1/replicationcontrollers",
    "/api/v1/persistentvolumes",
    "/api/v1/persistentvolumeclaims",
    "/apis/apps/v1/replicasets",
    "/apis/apps/v1/statefulsets",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/storage.k8s.io/v1/csinodes",
    "/apis/storage.k8s.io/v1/csidrivers",
    "/apis/storage.k8s.io/v1/csistoragecapacities",
    "/apis/storage.k8s.io/v1/volumeattachments",
    "/apis/resource.k8s.io/v1/resourceclaims",
    "/apis/resource.k8s.io/v1/resourceslices",
    "/apis/resource.k8s.io/v1/deviceclasses",
]


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(controllers="none") as server:
        yield server


def ask(server: ApiServer, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    return server.request(method, path, body, kind, user=WHO)


@pytest.mark.parametrize("path", FOLLOWED)
def test_it_lists_and_watches(server: ApiServer, path: str) -> None:
    assert "items" in ask(server, "GET", path)
    verb, resource = "watch", path.partition("?")[0].rpartition("/")[2]
    group = path.split("/")[2] if path.startswith("/apis/") else ""
    attributes = {"verb": verb, "group": group, "resource": resource}
    review = {"spec": {"user": WHO, "resourceAttributes": attributes}}
    answer = server.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer["status"]["allowed"] is True


def test_it_elects_its_leader(server: ApiServer) -> None:
    spec = {"holderIdentity": "one", "leaseDurationSeconds": 15}
    made = ask(server, "POST", LEASES, {"metadata": {"name": "kube-scheduler"}, "spec": spec})
    made["spec"]["holderIdentity"] = "two"
    assert ask(server, "PUT", f"{LEASES}/kube-scheduler", made)["spec"]["holderIdentity"] == "two"
    with pytest.raises(ApiError, match="the object has been modified"):
        ask(server, "PUT", f"{LEASES}/kube-scheduler", made)
    with pytest.raises(ApiError, match='cannot update resource "leases"'):
        ask(server, "PUT", f"{LEASES.replace('kube-system', 'default')}/other", made)


def test_it_schedules_a_pod(server: ApiServer) -> None:
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    uid = server.request("POST", PODS, pod)["metadata"]["uid"]
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no nodes"}
    preempting = {"status": {"conditions": [waits], "nominatedNodeName": "n"}}
    told = ask(server, "PATCH", f"{PODS}/p/status", preempting, STRATEGIC)
    assert told["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert told["status"]["nominatedNodeName"] == "n"

    binding = {"metadata": {"name": "p", "uid": uid}, "target": {"kind": "Node", "name": "n"}}
    assert ask(server, "POST", f"{PODS}/p/binding", binding)["status"] == "Success"
    bound = ask(server, "GET", f"{PODS}/p")
    assert bound["spec"]["nodeName"] == "n"
    assert "nominatedNodeName" not in bound["status"]
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    with pytest.raises(ApiError, match='pod p is already assigned to node "n"'):
        ask(server, "POST", f"{PODS}/p/binding", binding)

    event = {
        "metadata": {"name": "p.1"},
        "eventTime": "2026-01-02T03:04:05.000000Z",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p", "uid": uid},
        "reason": "Scheduled",
        "action": "Binding",
        "type": "Normal",
        "note": "Successfully assigned default/p to n",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }
    ask(server, "POST", EVENTS, event)
    ask(server, "DELETE", f"{PODS}/p?gracePeriodSeconds=0")  # as it does with those that must make room


def test_it_reviews_who_asks_for_its_metrics(server: ApiServer) -> None:
    asked = {"user": "admin", "groups": ["system:masters"]}
    path = {"path": "/metrics", "verb": "get"}
    review = {"spec": {**asked, "nonResourceAttributes": path}}
    answer = ask(server, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer["status"]["allowed"] is True
    answer = ask(server, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "none"}})
    assert not answer["status"].get("authenticated")


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/api/v1/nodes/n"), ("GET", "/api/v1/secrets"), ("POST", PODS), ("PUT", f"{PODS}/p")],
)
def test_it_may_do_no_more(server: ApiServer, method: str, path: str) -> None:
    with pytest.raises(ApiError, match=f'User "{WHO}" cannot'):
        ask(server, method, path, {"metadata": {"name": "p"}} if method != "GET" else None)
