"""``kubewright rbac`` offline and live, roles recorded from a run, and what tests of operators ask of a server."""

from __future__ import annotations

import json

import pytest

from apimachinery.meta.errors import ApiError
from kubewright.cli import main
from kubewright.testing import ApiServer
from kubewright.tools.rbac.recording import Deed, read_audit, roles_of, rules_of

MANIFESTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: looker, namespace: shop}
rules:
- {apiGroups: [apps], resources: [deployments, deployments/scale], verbs: [get, list]}
- {apiGroups: [""], resources: [secrets], resourceNames: [key], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lookers, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: looker}
subjects:
- {kind: User, name: ann}
- {kind: ServiceAccount, name: robot}
"""


@pytest.fixture
def manifests(tmp_path):
    path = tmp_path / "roles.yaml"
    path.write_text(MANIFESTS)
    return path


def rbac(capsys, *arguments):
    code = main(["rbac", *map(str, arguments)])
    return code, capsys.readouterr().out


def test_who_can(manifests, capsys):
    code, said = rbac(capsys, "who-can", "get", "deployments", "-n", "shop", "-f", manifests)
    assert code == 0
    rows = [line.split()[:5] for line in said.splitlines()]
    assert ["user:ann", "RoleBinding", "shop/lookers", "Role", "shop/looker"] in rows
    assert "sa:shop/robot" in said
    assert [
        "group:system:masters",
        "ClusterRoleBinding",
        "cluster-admin",
        "ClusterRole",
        "cluster-admin",
    ] in rows
    _, said = rbac(capsys, "who-can", "get", "deployments", "-f", manifests, "--no-bootstrap")
    assert "ann" not in said
    _, said = rbac(capsys, "who-can", "get", "secrets", "key", "-A", "-f", manifests, "--format", "json")
    assert {chain["subject"] for chain in json.loads(said)} >= {"user:ann", "sa:shop/robot"}
    _, said = rbac(capsys, "who-can", "get", "/healthz", "-f", manifests)
    assert "group:system:unauthenticated" in said


def test_a_word_that_nobody_knows_is_answered_with_what_was_meant(manifests, capsys):
    for asked, meant in (
        (("gett", "pods"), "gett is no verb; did you mean get?"),
        (("get", "deploymnts.apps/scale"), "deploymnts is no built-in resource; did you mean deployments?"),
    ):
        assert main(["rbac", "who-can", *asked, "-f", str(manifests)]) == 0
        assert capsys.readouterr().err == f"kubewright rbac: note: {meant}\n"
    for asked in (("get", "widgets.example.com"), ("promote", "pods"), ("get", "/healthz")):
        assert main(["rbac", "who-can", *asked, "-f", str(manifests)]) == 0
        assert capsys.readouterr().err == ""


def test_why_and_what(manifests, capsys):
    code, said = rbac(
        capsys, "why", "sa:shop/robot", "get", "deployments/scale", "-n", "shop", "-f", manifests
    )
    assert code == 0 and said.startswith("yes\n") and "Role shop/looker" in said
    code, said = rbac(capsys, "why", "ann", "delete", "deployments", "-n", "shop", "-f", manifests)
    assert (code, said) == (1, "no: no binding gives a rule that allows it\n")
    _, said = rbac(capsys, "what-can", "user:ann", "-n", "shop", "-f", manifests)
    assert '{APIGroups:[""], Resources:["secrets"], ResourceNames:["key"], Verbs:["get"]}' in said
    assert main(["rbac", "what-can", "sa:robot", "-f", str(manifests)]) == 2


def test_what_cannot_be_read(tmp_path, capsys):
    path = tmp_path / "x.yaml"
    path.write_text("a: [")
    assert main(["rbac", "what-can", "ann", "-f", str(path)]) == 2
    assert "x.yaml" in capsys.readouterr().err
    path.write_text("[1]\n")
    assert main(["rbac", "record", str(path), "--user", "ann"]) == 2
    assert "line 1: not an audit event" in capsys.readouterr().err


def event(user, verb, code=200, **ref):
    return json.dumps(
        {"stage": "ResponseComplete", "verb": verb, "user": {"username": user}, "objectRef": ref or None,
         "requestURI": "/metrics?x=1", "responseStatus": {"code": code}}
    )  # fmt: skip


def test_least_roles_of_an_audit_log(tmp_path, capsys):
    path = tmp_path / "audit.log"
    lines = [
        event("ann", "get", resource="pods", namespace="shop", name="a", apiVersion="v1"),
        event("ann", "list", resource="pods", namespace="shop"),
        event(
            "ann",
            "update",
            resource="deployments",
            apiGroup="apps",
            namespace="shop",
            subresource="scale",
            name="w",
        ),
        event("ann", "delete", 403, resource="pods", namespace="shop", name="a"),
        event("ann", "get", resource="namespaces", namespace="shop", name="shop"),
        event("ann", "get"),
        event("bob", "get", resource="secrets", namespace="shop", name="s"),
    ]
    path.write_text("\n".join(lines))
    assert len(list(read_audit(lines))) == 6
    code, said = rbac(capsys, "record", path, "--user", "ann", "--name", "ann-needs")
    assert code == 0 and "secrets" not in said and "delete" not in said
    again = tmp_path / "made.yaml"
    again.write_text(said)
    for asked in (["get", "pods"], ["update", "deployments/scale"], ["get", "/metrics"]):
        assert rbac(capsys, "why", "ann", *asked, "-n", "shop", "-f", again, "--no-bootstrap")[0] == 0
    assert rbac(capsys, "why", "ann", "delete", "pods", "-n", "shop", "-f", again, "--no-bootstrap")[0] == 1
    assert rbac(capsys, "record", path, "--user", "eve")[0] == 2


def test_names_are_held_to_where_asked_for():
    deeds = [Deed("a", "get", "n", "", "secrets", "k"), Deed("a", "list", "n", "", "secrets")]
    assert [rule.shown() for rule in rules_of(deeds, names=True)] == [
        '{APIGroups:[""], Resources:["secrets"], Verbs:["list"]}',
        '{APIGroups:[""], Resources:["secrets"], ResourceNames:["k"], Verbs:["get"]}',
    ]
    assert roles_of(deeds, "nobody", "x") == []


@pytest.fixture(scope="module")
def server():
    with ApiServer() as running:
        yield running


def test_a_role_is_recorded_and_then_enough(server, capsys):
    robot = "system:serviceaccount:default:recorded"
    maps = "/api/v1/namespaces/default/configmaps"

    def work(user):
        server.request("POST", maps, {"metadata": {"name": f"m-{user[-3:]}"}}, user=user)
        server.request("GET", maps, user=user)

    with pytest.raises(ApiError):
        work(robot)
    with server.recording() as recorded:
        work("admin")
    assert recorded.users == ["admin"]
    account = {"kind": "ServiceAccount", "name": "recorded", "namespace": "default"}
    made = recorded.roles("admin", "recorded")
    made[-1]["subjects"] = [account]
    for manifest in made:
        plural = manifest["kind"].lower() + "s"
        server.request("POST", f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/{plural}", manifest)
    work(robot)
    server.check_role(
        robot, allows=["list configmaps", "create configmaps"], refuses=["delete configmaps", "get secrets s"]
    )
    with pytest.raises(AssertionError, match="may not delete configmaps in default"):
        server.check_role(robot, allows=["delete configmaps"])
    extra = [{"verbs": ["list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}]
    assert recorded.unused("admin", extra, "default") == ["watch core configmaps"]
    code, said = rbac(
        capsys, "who-can", "create", "configmaps", "-n", "default", "--kubeconfig", server.kubeconfig
    )
    assert code == 0 and "sa:default/recorded" in said


def test_clients_are_who_they_say(server):
    from apimachinery.client.calls import UNSTRUCTURED, Call
    from apimachinery.client.endpoint import Request

    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    call = Call(Request("POST", path, body=b"{}"), UNSTRUCTURED.decode, repeatable=True)
    with server.client(user="cat", groups=["devs"]) as cat:
        user = cat.run(call)["status"]["userInfo"]
    assert user == {"username": "cat", "groups": ["devs", "system:authenticated"]}


def test_the_authorizer_of_cel(server):
    import asyncio

    from apimachinery.access.authorization import NO_OPINION, Attributes, Verdict
    from apimachinery.access.cel_authorizer import Questions
    from apimachinery.access.control import Access, AccessOptions
    from apimachinery.cel.libraries.authorizer import Question
    from apimachinery.http.messages import User
    from apimachinery.storage.memory import MemoryStorage
    from apimachinery.storage.watch_cache import WatchCache

    class Remote:
        def decide(self, attributes):
            return None if attributes.resource == "pods" else NO_OPINION

        async def ask(self, attributes: Attributes):
            return Verdict(allowed=attributes.user.name == "ann", reason="remote")

    async def run():
        cache = await WatchCache.open(MemoryStorage())
        access = Access(AccessOptions(modes=["RBAC", lambda cache: Remote()]), cache)
        questions = Questions(access, User("ann"))
        asked = Question(verb="get", resource="pods", namespace="x")
        assert questions._ask(asked).error
        assert await questions.answer() and questions._ask(asked).allowed
        assert not await questions.answer()
        assert not questions._ask(Question(verb="get", resource="maps")).allowed
        robot = Question(verb="get", resource="pods", service_account=("x", "y"))
        questions._ask(robot)
        await questions.answer()
        assert not questions._ask(robot).allowed

    asyncio.run(run())
