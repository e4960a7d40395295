"""The APIServices of what a server serves itself."""

from __future__ import annotations

import pytest
from tests.aggregation.test_remote import SERVICES, until

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

LABEL = "kube-aggregator.kubernetes.io/automanaged"
GROUP = "local.aggregate.example.com"
AVAILABLE = {"status": "True", "reason": "Local", "message": "Local APIServices are always available"}


@pytest.fixture(scope="module")
def server():
    with ApiServer(controllers="none") as running:
        yield running


def named(server):
    return {item["metadata"]["name"]: item for item in server.request("GET", SERVICES)["items"]}


def crd(plural, *versions):
    schema = {"openAPIV3Schema": {"type": "object"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.title(), "singular": plural[:-1]},
            "versions": [
                {"name": name, "served": served, "storage": at == 0, "schema": schema}
                for at, (name, served) in enumerate(versions)
            ],
        },
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_of_what_is_built_in(server):
    found = named(server)
    numbers = {
        name: (item["spec"]["groupPriorityMinimum"], item["spec"]["versionPriority"])
        for name, item in found.items()
    }
    assert numbers["v1."] == (18000, 1)
    assert numbers["v2.autoscaling"] == (17500, 30)
    assert numbers["v1.flowcontrol.apiserver.k8s.io"] == (16100, 21)
    assert "v1.apiregistration.k8s.io" not in found
    apps = found["v1.apps"]
    assert apps["metadata"]["labels"] == {LABEL: "onstart"}
    assert AVAILABLE.items() <= apps["status"]["conditions"][0].items()


def test_those_of_definitions_come_and_go_with_them(server):
    server.request("POST", CRDS, crd("ones", ("v1", True), ("v2", True), ("v3", False)))
    server.request("POST", CRDS, crd("twos", ("v2", True)))
    until(lambda: {f"v1.{GROUP}", f"v2.{GROUP}"} <= named(server).keys())
    made = named(server)[f"v1.{GROUP}"]
    assert made["metadata"]["labels"] == {LABEL: "true"}
    assert made["spec"] == {
        "group": GROUP,
        "version": "v1",
        "groupPriorityMinimum": 1000,
        "versionPriority": 100,
    }
    assert f"v3.{GROUP}" not in named(server)
    server.request("DELETE", f"{CRDS}/ones.{GROUP}")
    until(lambda: f"v1.{GROUP}" not in named(server))
    assert f"v2.{GROUP}" in named(server)  # another definition has it too


def test_what_somebody_does_to_them(server):
    server.request("POST", CRDS, crd("threes", ("v5", True)))
    until(lambda: f"v5.{GROUP}" in named(server))
    uid = named(server)[f"v5.{GROUP}"]["metadata"]["uid"]
    server.request("DELETE", f"{SERVICES}/v5.{GROUP}")
    until(lambda: named(server).get(f"v5.{GROUP}", {}).get("metadata", {}).get("uid", uid) != uid)
    change = {"spec": {"groupPriorityMinimum": 7}, "status": {"conditions": []}}
    server.request("PATCH", f"{SERVICES}/v5.{GROUP}", change, "application/merge-patch+json")
    until(lambda: named(server)[f"v5.{GROUP}"]["spec"]["groupPriorityMinimum"] == 1000)
    # A built-in one stays away until the next start.
    server.request("DELETE", f"{SERVICES}/v1.node.k8s.io")
    assert server.request("GET", "/apis/node.k8s.io/v1")["groupVersion"] == "node.k8s.io/v1"
    assert "v1.node.k8s.io" not in named(server)


def test_a_local_one_is_always_available(server):
    spec = {"group": "mine.example.com", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
    made = server.request(
        "POST",
        SERVICES,
        {
            "kind": "APIService",
            "metadata": {"name": "v1.mine.example.com"},
            "spec": spec,
            "status": {"conditions": []},
        },
    )
    assert AVAILABLE.items() <= made["status"]["conditions"][0].items()
    away = {**made, "status": {"conditions": [{**made["status"]["conditions"][0], "status": "False"}]}}
    server.request("PUT", f"{SERVICES}/v1.mine.example.com/status", away)
    until(
        lambda: AVAILABLE.items() <= named(server)["v1.mine.example.com"]["status"]["conditions"][0].items()
    )


def test_a_local_one_needs_no_authority(server):
    spec = {"group": "ca.example.com", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
    body = {
        "kind": "APIService",
        "metadata": {"name": "v1.ca.example.com"},
        "spec": {**spec, "caBundle": "YWJj"},
    }
    said = 'spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle'
    with pytest.raises(ApiError, match=said):
        server.request("POST", SERVICES, body)


def test_a_second_start_puts_right_what_the_first_left(tmp_path):
    storage = f"sqlite:///{tmp_path}/db"
    with ApiServer(controllers="none", storage=storage) as server:
        server.request("POST", CRDS, crd("ones", ("v1", True)))
        until(lambda: f"v1.{GROUP}" in named(server))
        version = named(server)["v1.batch"]["metadata"]["resourceVersion"]
        server.request("DELETE", f"{SERVICES}/v1.apps")
        change = {"spec": {"versionPriority": 3}}
        server.request("PATCH", f"{SERVICES}/v1.policy", change, "application/merge-patch+json")
        stale = {"group": "old.example.com", "version": "v1", "groupPriorityMinimum": 5, "versionPriority": 5}
        for name, label in (("old", "onstart"), ("older", "true"), ("mine", "no")):
            group = f"{name}.example.com"
            obj = {
                "metadata": {"name": f"v1.{group}", "labels": {LABEL: label}},
                "spec": {**stale, "group": group},
            }
            if name != "older":  # what is kept always is taken away at once
                server.request("POST", SERVICES, {"kind": "APIService", **obj})
    with ApiServer(controllers="none", storage=storage) as server:
        found = named(server)
        assert found["v1.policy"]["spec"]["versionPriority"] == 15
        assert "v1.apps" in found
        assert "v1.old.example.com" not in found
        assert "v1.mine.example.com" in found
        assert f"v1.{GROUP}" in found
        assert found["v1.batch"]["metadata"]["resourceVersion"] == version
