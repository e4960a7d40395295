"""Which rights a request needs."""

from __future__ import annotations

import pytest

from kubewright.testing.faults import HttpRequest
from kubewright.testing.rbac import rules_of

APPLY = "application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("method", "target", "kind", "group", "resource", "verbs"),
    [
        ("GET", "/api/v1/namespaces/n/pods/p", "", "", "pods", ["get"]),
        ("GET", "/api/v1/namespaces/n/pods?limit=1", "", "", "pods", ["list"]),
        ("GET", "/api/v1/pods?watch=true", "", "", "pods", ["watch"]),
        ("GET", "/api/v1/namespaces", "", "", "namespaces", ["list"]),
        ("GET", "/api/v1/namespaces/n", "", "", "namespaces", ["get"]),
        ("PUT", "/api/v1/namespaces/n/status", "", "", "namespaces/status", ["update"]),
        ("POST", "/apis/apps/v1/namespaces/n/deployments", "", "apps", "deployments", ["create"]),
        ("PATCH", "/apis/apps/v1/namespaces/n/deployments/d", "", "apps", "deployments", ["patch"]),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/n/deployments/d",
            APPLY,
            "apps",
            "deployments",
            ["create", "patch"],
        ),
        (
            "PATCH",
            "/apis/apps/v1/namespaces/n/deployments/d/status",
            APPLY,
            "apps",
            "deployments/status",
            ["patch"],
        ),
        ("DELETE", "/apis/x.io/v1/things/t", "", "x.io", "things", ["delete"]),
        ("DELETE", "/apis/x.io/v1/things", "", "x.io", "things", ["deletecollection"]),
        ("GET", "/api/v1/namespaces/n/pods/p/exec?command=x", "", "", "pods/exec", ["get", "create"]),
        ("GET", "/api/v1/namespaces/n/pods/p/log", "", "", "pods/log", ["get"]),
    ],
)
def test_one_request(
    method: str, target: str, kind: str, group: str, resource: str, verbs: list[str]
) -> None:
    (rule,) = rules_of([HttpRequest(method, target, kind)])
    assert rule == {"apiGroups": [group], "resources": [resource], "verbs": verbs}


def test_paths_of_no_resource_need_no_rule() -> None:
    assert (
        rules_of([HttpRequest("GET", path) for path in ("/api/v1", "/apis", "/healthz", "/apis/apps/v1")])
        == []
    )


def test_resources_of_the_same_rights_share_a_rule() -> None:
    requests = [HttpRequest("GET", f"/api/v1/{name}") for name in ("pods", "nodes", "pods")]
    assert rules_of(requests) == [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
