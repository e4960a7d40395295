"""Writes of roles and bindings by somebody who may write them, but not give more than he holds.

Codes and texts are those of kube-apiserver 1.36 for the same writes.
"""

from __future__ import annotations

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.testing import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
IN_DEFAULT = f"{RBAC}/namespaces/default"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
SECRETS = {"apiGroups": [""], "verbs": ["*"], "resources": ["secrets"]}
PODS = {"apiGroups": [""], "verbs": ["get"], "resources": ["pods"]}
VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
KINDS = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"]
GRANTS = "is attempting to grant RBAC permissions not currently held"
GATHERS = "must have cluster-admin privileges to use the aggregationRule"
SELECTS = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y"}}]}}


def ref(name: str, kind: str = "ClusterRole") -> dict:
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}


def collection(kind: str) -> str:
    return f"{RBAC if kind.startswith('cluster') else IN_DEFAULT}/{kind}"


@pytest.fixture
def server():
    with ApiServer(controllers="none") as running:
        mine = [{"apiGroups": ["rbac.authorization.k8s.io"], "verbs": VERBS, "resources": KINDS}, PODS]
        running.request("POST", collection("clusterroles"), {"metadata": {"name": "mine"}, "rules": mine})
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}
        binding = {"metadata": {"name": "mine"}, "roleRef": ref("mine"), "subjects": [subject]}
        running.request("POST", collection("clusterrolebindings"), binding)
        for kind in ("clusterroles", "roles"):
            for name, rules in (("big", [SECRETS]), ("own", [PODS]), ("none", [])):
                running.request("POST", collection(kind), {"metadata": {"name": name}, "rules": rules})
        running.request("POST", collection("clusterroles"), {"metadata": {"name": "gathers"}, **SELECTS})
        for kind in ("clusterrolebindings", "rolebindings"):
            for name in ("big", "own", "other"):
                role = "own" if name == "other" else name
                body = {"metadata": {"name": name}, "roleRef": ref(role), "subjects": []}
                running.request("POST", collection(kind), body)
        yield running


def answer(server, method, path, body=None, content_type="application/json") -> str:
    """The code of an answer to ann, and what it says where it refuses."""
    try:
        server.request(method, path, body, content_type, user="ann")
    except ApiError as error:
        return f"{error.code} {error.message}"
    return "ok"


LABEL = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
EMPTY_LABEL = {"metadata": {"labels": {"example.com/gathered": ""}}}
"""A selector may ask for the key alone."""
ANNOTATION = {"metadata": {"annotations": {"a": "b"}}}
FINALIZER = {"metadata": {"finalizers": ["example.com/kept"]}}
OWNER = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}]}}


@pytest.mark.parametrize("kind", ["clusterroles", "roles"])
@pytest.mark.parametrize(
    ("name", "patch", "says"),
    [
        ("big", LABEL, GRANTS),
        ("big", EMPTY_LABEL, GRANTS),
        ("big", {"metadata": {"labels": {}}}, "ok"),
        ("big", ANNOTATION, GRANTS),
        ("big", {"metadata": {"annotations": {"a": ""}}}, GRANTS),
        ("big", FINALIZER, "ok"),
        ("big", OWNER, "ok"),
        ("big", {}, "ok"),
        ("big", {"rules": []}, "ok"),
        ("big", {"rules": [PODS, SECRETS]}, GRANTS),
        ("own", LABEL, "ok"),
        ("none", LABEL, "ok"),
        ("none", {"rules": None}, "ok"),
    ],
)
def test_every_change_of_a_role_is_checked(server, kind, name, patch, says):
    place = f"{collection(kind)}/{name}"
    assert says in answer(server, "PATCH", f"{place}?dryRun=All", patch, MERGE)
    assert says in answer(server, "PATCH", place, patch, MERGE)


@pytest.mark.parametrize("kind", ["clusterroles", "roles"])
def test_every_way_of_writing_a_role_is_checked(server, kind):
    place = f"{collection(kind)}/big"
    big = server.request("GET", place)
    labelled = {**big, "metadata": {**big["metadata"], "labels": LABEL["metadata"]["labels"]}}
    assert GRANTS in answer(server, "PUT", place, labelled)
    operations = [{"op": "add", "path": "/metadata/labels", "value": LABEL["metadata"]["labels"]}]
    assert GRANTS in answer(server, "PATCH", place, operations, "application/json-patch+json")
    assert GRANTS in answer(server, "PATCH", place, LABEL, "application/strategic-merge-patch+json")
    applied = {"apiVersion": big["apiVersion"], "kind": big["kind"], "metadata": {"name": "big"}}
    assert answer(server, "PATCH", f"{place}?fieldManager=ann", applied, APPLY) == "ok"
    applied["metadata"] |= LABEL["metadata"]
    assert GRANTS in answer(server, "PATCH", f"{place}?fieldManager=ann", applied, APPLY)
    new = {"metadata": {"name": "new"}, "rules": [SECRETS]}
    assert GRANTS in answer(server, "POST", collection(kind), new)
    assert GRANTS in answer(server, "POST", collection(kind), {**new, "metadata": {"generateName": "n"}})
    assert GRANTS in answer(server, "PUT", f"{collection(kind)}/new", new)
    both = answer(server, "POST", collection(kind), {**new, **SELECTS})
    assert GRANTS in both
    applied = {**applied, **new}
    assert GRANTS in answer(server, "PATCH", f"{collection(kind)}/new?fieldManager=ann", applied, APPLY)
    for subresource in ("status", "scale"):
        assert answer(server, "PATCH", f"{place}/{subresource}", LABEL, MERGE).startswith("403 ")
    assert answer(server, "DELETE", f"{place}?dryRun=All") == "ok"


@pytest.mark.parametrize(
    ("name", "patch", "says"),
    [
        ("gathers", LABEL, GATHERS),
        ("gathers", EMPTY_LABEL, GATHERS),
        (
            "gathers",
            {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"x": "y", "z": ""}}]}},
            GATHERS,
        ),
        ("gathers", ANNOTATION, GATHERS),
        ("gathers", FINALIZER, "ok"),
        ("gathers", {"aggregationRule": None}, GATHERS),
        ("gathers", {"rules": None}, "ok"),
        ("own", SELECTS, GATHERS),
        ("none", SELECTS, GATHERS),
        ("big", SELECTS, GRANTS),
        ("none", {"aggregationRule": {}}, "at least one clusterRoleSelector required"),
        ("big", {"aggregationRule": {}}, GRANTS),
    ],
)
def test_a_role_that_gathers_is_written_by_who_holds_everything(server, name, patch, says):
    assert says in answer(server, "PATCH", f"{collection('clusterroles')}/{name}", patch, MERGE)


@pytest.mark.parametrize("kind", ["clusterrolebindings", "rolebindings"])
def test_bindings(server, kind):
    place = f"{collection(kind)}/big"
    for patch in (LABEL, ANNOTATION, {"subjects": [{"kind": "User", "name": "ann"}]}):
        assert GRANTS in answer(server, "PATCH", place, patch, MERGE)
        assert answer(server, "PATCH", f"{collection(kind)}/own", patch, MERGE) == "ok"
    for patch in (FINALIZER, {}, {"subjects": None}):
        assert answer(server, "PATCH", place, patch, MERGE) == "ok"

    def created(name: str, role_kind: str = "ClusterRole") -> str:
        body = {"metadata": {"name": "new"}, "roleRef": ref(name, role_kind)}
        return answer(server, "POST", f"{collection(kind)}?dryRun=All", body)

    assert created("own") == created("none") == created("gathers") == "ok"
    assert GRANTS in created("big")
    assert created("own", "Node") == '500 unsupported role reference kind: "Node"'
    missing = f'{kind}.rbac.authorization.k8s.io "missing" not found'
    assert created("missing") == f"404 {missing}"
    if kind == "rolebindings":
        assert GRANTS in created("big", "Role") and created("own", "Role") == "ok"
        assert created("missing", "Role") == f"404 {missing}"
    else:
        assert created("big", "Role") == created("missing", "Role") == "400 Namespace parameter required."


@pytest.mark.parametrize("kind", ["clusterrolebindings", "rolebindings"])
def test_bindings_without_subjects_come_and_go(server, kind):
    for name in ("big", "own", "other"):
        server.request("PATCH", f"{collection(kind)}/{name}", LABEL, MERGE)
        server.request("DELETE", f"{collection(kind)}/{name}")


def test_roles_that_are_missing_are_named(server):
    """In the words of kube-apiserver's storage, which calls them by what is written."""
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "ann"}
    body = {"metadata": {"name": "lost"}, "roleRef": ref("lost"), "subjects": [subject]}
    server.request("POST", collection("clusterrolebindings"), body)
    for kind in ("roles", "clusterroles"):
        said = answer(server, "PATCH", f"{collection(kind)}/big", LABEL, MERGE)
        assert said.endswith(f'; resolution errors: [{kind}.rbac.authorization.k8s.io "lost" not found]')


def test_verbs_on_the_same_named_object_are_shown_together(server):
    rule = {
        "apiGroups": [""],
        "verbs": ["get", "delete"],
        "resources": ["secrets"],
        "resourceNames": ["a", "b"],
    }
    said = answer(server, "POST", collection("roles"), {"metadata": {"name": "new"}, "rules": [rule]})
    for name in "ab":
        shown = f'ResourceNames:["{name}"], Verbs:["get" "delete"]}}'
        assert said.count(shown) == 1
