"""Webhooks together: order, second rounds, versions, annotations, kept connections, and a slow one next to others."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer
from tests.webhooks.hooks import Hooks, reviewed
from tests.webhooks.record import A

Json = dict[str, Any]
CM = "/api/v1/namespaces/default/configmaps"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        names = {"plural": "gizmos", "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"}
        versions = [
            {"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v2")
        ]
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
        server.request("POST", CRD, {"metadata": {"name": "gizmos.example.com"}, "spec": spec})
        server._wait_until_served({"metadata": {"name": "gizmos.example.com"}})
        yield server


@pytest.fixture
def hooks() -> Iterator[Hooks]:
    with Hooks({}) as hooks:
        yield hooks


@pytest.fixture
def configure(server: ApiServer, hooks: Hooks) -> Iterator[Any]:
    made: list[str] = []

    def configure(kind: str, name: str, *webhooks: Json) -> None:
        rule = {
            "apiGroups": ["*"],
            "apiVersions": ["v1"],
            "operations": ["*"],
            "resources": ["configmaps", "gizmos"],
        }
        shared = {"rules": [rule], "admissionReviewVersions": ["v1"], "sideEffects": "None"}
        found = [
            {
                **shared,
                "name": f"{hook['path']}.example.com",
                "clientConfig": {"url": hooks.url(hook["path"]), "caBundle": hooks.ca},
                **{key: value for key, value in hook.items() if key != "path"},
            }
            for hook in webhooks
        ]
        path = f"{A}/{kind}webhookconfigurations"
        server.request("POST", path, {"metadata": {"name": name}, "webhooks": found})
        made.append(f"{path}/{name}")

    yield configure
    for path in made:
        server.request("DELETE", path)
    for entry in server.request("GET", CM)["items"]:
        server.request("DELETE", f"{CM}/{entry['metadata']['name']}")


def appends(hooks: Hooks, path: str) -> None:
    """A webhook that adds its path to ``data.trail``."""

    def answer(review: Json) -> Json:
        obj = review["request"]["object"]
        if obj is None:
            return reviewed(review)
        trail = (obj.get("data") or {}).get("trail", "") + path
        data = {**(obj.get("data") or {}), "trail": trail}
        patch = [{"op": "add", "path": "/data", "value": data}]
        return reviewed(
            review, patchType="JSONPatch", patch=base64.b64encode(json.dumps(patch).encode()).decode()
        )

    hooks.answers[path] = answer


def create(server: ApiServer, **data: str) -> Json:
    found: Json = server.request("POST", CM, {"metadata": {"generateName": "a-"}, "data": data})
    return found


def test_configurations_go_by_name_and_each_sees_what_those_before_it_did(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    for path in "abc":
        appends(hooks, path)
    configure("mutating", "z", {"path": "a"})
    configure("mutating", "y", {"path": "c"}, {"path": "b"})
    assert create(server)["data"]["trail"] == "cba"


def test_who_says_if_needed_is_called_again_once_where_a_later_one_changed_something(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    for path in "abc":
        appends(hooks, path)
    again = {"reinvocationPolicy": "IfNeeded"}
    configure("mutating", "x", {"path": "a", **again}, {"path": "b"}, {"path": "c", **again})
    assert create(server)["data"]["trail"] == "abcac"


def test_the_last_one_is_not_called_again_for_its_own_change(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    hooks.answers["a"] = reviewed
    appends(hooks, "b")
    configure("mutating", "x", {"path": "a"}, {"path": "b", "reinvocationPolicy": "IfNeeded"})
    trail = create(server)["data"]["trail"]
    assert trail == "b" * trail.count("b") and [path for path, _ in hooks.calls].count("/a?timeout=10s") == 1


def test_a_rule_for_another_version_shows_and_patches_that_version(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    appends(hooks, "a")
    configure("mutating", "x", {"path": "a"})
    gizmo = {"apiVersion": "example.com/v2", "kind": "Gizmo", "metadata": {"name": "g"}}
    made = server.request("POST", "/apis/example.com/v2/namespaces/default/gizmos", gizmo)
    assert (made["apiVersion"], made["data"]) == ("example.com/v2", {"trail": "a"})
    request = hooks.calls[0][1]["request"]
    assert request["object"]["apiVersion"] == "example.com/v1"
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
    server.request("DELETE", "/apis/example.com/v2/namespaces/default/gizmos/g")


def test_exact_is_about_the_version_of_the_request_alone(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    appends(hooks, "a")
    configure("mutating", "x", {"path": "a", "matchPolicy": "Exact"})
    gizmo = {"apiVersion": "example.com/v2", "kind": "Gizmo", "metadata": {"name": "g"}}
    made = server.request("POST", "/apis/example.com/v2/namespaces/default/gizmos", gizmo)
    assert "data" not in made and not hooks.calls
    server.request("DELETE", "/apis/example.com/v2/namespaces/default/gizmos/g")


def test_a_refusal_stores_nothing_and_who_only_looks_sees_the_final_object(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    appends(hooks, "a")
    hooks.answers["v"] = lambda review: reviewed(review, allowed=False, status={"message": "no", "code": 409})
    configure("mutating", "x", {"path": "a"})
    configure("validating", "y", {"path": "v"})
    with pytest.raises(ApiError, match="denied the request: no") as refused:
        create(server)
    assert refused.value.code == 409
    shown = hooks.calls[-1][1]["request"]["object"]
    assert (
        shown["data"] == {"trail": "a"}
        and shown["metadata"]["uid"]
        and shown["metadata"]["name"].startswith("a-")
    )
    assert not server.request("GET", CM)["items"]


def test_a_dry_run_says_so_and_stores_nothing(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    appends(hooks, "a")
    configure("mutating", "x", {"path": "a"})
    made = server.request("POST", f"{CM}?dryRun=All&fieldManager=me", {"metadata": {"name": "dry"}})
    assert made["data"] == {"trail": "a"} and not server.request("GET", CM)["items"]
    request = hooks.calls[0][1]["request"]
    assert request["dryRun"] is True
    assert request["options"] == {
        "kind": "CreateOptions",
        "apiVersion": "meta.k8s.io/v1",
        "dryRun": ["All"],
        "fieldManager": "me",
    }


def test_a_deletion_shows_what_is_deleted_and_how(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    hooks.answers["v"] = reviewed
    configure("validating", "y", {"path": "v"})
    name = create(server)["metadata"]["name"]
    server.request("DELETE", f"{CM}/{name}?gracePeriodSeconds=3&propagationPolicy=Background")
    request = hooks.calls[-1][1]["request"]
    assert (request["operation"], request["object"], request["oldObject"]["metadata"]["name"]) == (
        "DELETE",
        None,
        name,
    )
    assert request["options"] == {
        "kind": "DeleteOptions",
        "apiVersion": "meta.k8s.io/v1",
        "gracePeriodSeconds": 3,
        "propagationPolicy": "Background",
    }


def test_connections_are_kept(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    hooks.answers["v"] = reviewed
    configure("validating", "y", {"path": "v"})
    for _ in range(5):
        create(server)
    assert len(hooks.calls) == 5 and hooks.connections == 1


def test_all_that_only_look_are_asked_at_once(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    together = threading.Barrier(3)

    def answer(review: Json) -> Json:
        together.wait(60)  # breaks, and the write fails, if one is asked after the other
        return reviewed(review)

    for path in "abc":
        hooks.answers[path] = answer
    configure("validating", "y", *({"path": path, "timeoutSeconds": 30} for path in "abc"))
    create(server)


def test_a_slow_webhook_holds_nobody_else(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def hold(review: Json) -> Json:
        asked.set()
        let_go.wait(90)
        return reviewed(review)

    hooks.answers["v"] = hold
    options = {"path": "v", "objectSelector": {"matchLabels": {"slow": "yes"}}, "timeoutSeconds": 30}
    configure("validating", "y", options)
    labelled = {"metadata": {"name": "slow", "labels": {"slow": "yes"}}}
    waiting = threading.Thread(target=server.request, args=("POST", CM, labelled))
    waiting.start()
    assert asked.wait(60)
    for _ in range(5):
        create(server)
    assert len(server.request("GET", CM)["items"]) == 5, "the sixth still waits for its webhook"
    let_go.set()
    waiting.join(60)
    assert len(server.request("GET", CM)["items"]) == 6


def test_an_update_that_was_overtaken_while_it_waited_starts_again(
    server: ApiServer, hooks: Hooks, configure: Any
) -> None:
    server.request("POST", CM, {"metadata": {"name": "raced"}, "data": {"n": "0"}})
    seen: list[str] = []

    def overtake(review: Json) -> Json:
        old = review["request"]["oldObject"]
        seen.append(old["data"]["n"])
        if review["request"]["userInfo"]["username"] == "slow" and len(seen) < 3:
            merge = "application/merge-patch+json"
            server.request("PATCH", f"{CM}/raced", {"data": {"n": str(len(seen))}}, merge)
        return reviewed(review)

    hooks.answers["v"] = overtake
    condition = [{"name": "slow", "expression": "request.userInfo.username == 'slow'"}]
    configure("validating", "y", {"path": "v", "matchConditions": condition})
    made = server.request(
        "PATCH",
        f"{CM}/raced",
        {"data": {"mine": "1"}},
        "application/merge-patch+json",
        user="slow",
        groups=["system:masters"],
    )
    assert made["data"] == {"n": "2", "mine": "1"} and seen == ["0", "1", "2"]


def test_connections_to_pods_are_admitted_as_objects(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    hooks.answers["v"] = lambda review: reviewed(review, allowed=False, status={"message": "no shells"})
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"]}
    configure("validating", "y", {"path": "v", "rules": [rule]})
    with pytest.raises(ApiError, match="no shells"):
        server.request(
            "POST", "/api/v1/namespaces/default/pods/p/exec?command=sh&command=-c&stdin=true&container=c"
        )
    request = hooks.calls[0][1]["request"]
    assert (request["operation"], request["subResource"], request["name"]) == ("CONNECT", "exec", "p")
    assert request["object"] == {
        "kind": "PodExecOptions",
        "apiVersion": "v1",
        "stdin": True,
        "container": "c",
        "command": ["sh", "-c"],
    }


def test_configurations_do_not_meet_webhooks(server: ApiServer, hooks: Hooks, configure: Any) -> None:
    hooks.answers["v"] = lambda review: reviewed(review, allowed=False)
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    configure("validating", "y", {"path": "v", "rules": [rule]})
    with pytest.raises(ApiError):
        create(server)
    server.request("DELETE", f"{A}/validatingwebhookconfigurations/y")
    create(server)
    server.request("POST", f"{A}/validatingwebhookconfigurations", {"metadata": {"name": "y"}})
