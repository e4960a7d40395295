"""The past of objects: as the server answers it, and as ``kubewright history`` prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apimachinery.http.flows import on_behalf_of
from apimachinery.meta.errors import ApiError
from apimachinery.storage.kept import KeepOptions
from kubewright.testing.server import ApiServer
from tests.tools.command import kubewright

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"
HISTORY = "application/json;as=History;g=kubewright.dev;v=v1"


class Keeping(ApiServer):
    """A server that keeps what was."""

    def _server(self, folder: Path) -> Any:
        from dataclasses import replace

        made = super()._server(folder)
        options = replace(made._options.storage_options, keep=KeepOptions(1e6, author=on_behalf_of.get))
        made._options = replace(made._options, storage_options=options)
        return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    path = tmp_path_factory.mktemp("kept") / "x.db"
    with Keeping(storage=f"sqlite:///{path}") as made:
        for name in ("a", "b"):
            labels = {"app": name}
            body = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "labels": labels},
                "data": {"k": "1"},
            }
            made.request("POST", f"{CONFIG_MAPS}?fieldManager=first", body)
        made.request(
            "PATCH",
            f"{CONFIG_MAPS}/a?fieldManager=second",
            {"data": {"k": "2"}},
            MERGE,
            groups=["system:masters"],
            user="jane",
        )
        made.request("DELETE", f"{CONFIG_MAPS}/a")
        yield made


def history(server: ApiServer, *words: str) -> tuple[int, str, str]:
    return kubewright("history", *words, "--kubeconfig", server.kubeconfig)


def test_one_object(server: ApiServer) -> None:
    code, out, err = history(server, "cm/a", "-n", "default", "--format", "json")
    assert (code, err) == (0, "")
    entries = json.loads(out)
    assert [each["change"] for each in entries] == ["deleted", "updated", "created"]
    assert [each["managers"] for each in entries] == [
        [],
        ["second (Update)"],
        ["first (Update)"],
    ]
    assert entries[1]["user"] == "jane"
    assert entries[1]["object"]["data"] == {"k": "2"}
    assert all(re.fullmatch(r"\d{4}-.*Z", each["time"]) for each in entries)


def test_who_wrote_is_who_owns_what_changed(server: ApiServer) -> None:
    # The time of an entry is when its fields became its own; the same fields with other values leave it as it is.
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "1"}}
    server.request("POST", f"{CONFIG_MAPS}?fieldManager=first", body)
    server.request("PATCH", f"{CONFIG_MAPS}/c?fieldManager=second", {"data": {"l": "1"}}, MERGE)
    server.request("PATCH", f"{CONFIG_MAPS}/c?fieldManager=first", {"data": {"k": "2"}}, MERGE)
    entries = json.loads(history(server, "cm/c", "-n", "default", "--format", "json")[1])
    assert [each["managers"] for each in entries] == [
        ["first (Update)"],
        ["second (Update)"],
        ["first (Update)"],
    ]


def test_text_and_differences(server: ApiServer) -> None:
    _, out, _ = history(server, "cm/a", "-n", "default", "--diff")
    assert re.search(r"^TIME +VERSION +CHANGE +USER +FIELD MANAGERS$", out, re.M)
    assert re.search(r"updated +jane +second", out, re.M)
    assert '-   k: "1"\n+   k: "2"\n' in out


def test_an_object_as_it_was(server: ApiServer) -> None:
    entries = json.loads(history(server, "cm/a", "-n", "default", "--format", "json")[1])
    code, out, _ = history(server, "cm", "a", "-n", "default", "--at", entries[2]["revision"])
    assert code == 0
    assert 'k: "1"' in out and "managedFields" not in out
    code, _, err = history(server, "cm/a", "-n", "default", "--at", "999999")
    assert code == 1 and "no such version; there are" in err


def test_a_selection_and_pages(server: ApiServer) -> None:
    code, out, _ = history(server, "cm", "-n", "default", "-l", "app=a", "--format", "json")
    assert code == 0
    assert {each["name"] for each in json.loads(out)} == {"a"}
    assert all("object" not in each for each in json.loads(out))
    assert len(json.loads(history(server, "cm", "-n", "default", "--limit", "2", "--format", "json")[1])) == 2


def test_all_kinds_of_a_namespace(server: ApiServer) -> None:
    service = {"metadata": {"name": "web", "labels": {"app": "a"}}, "spec": {"ports": [{"port": 80}]}}
    server.request("POST", "/api/v1/namespaces/default/services?fieldManager=third", service)
    code, out, err = history(server, "-n", "default", "--format", "json")
    assert (code, err) == (0, "")
    entries = json.loads(out)
    revisions = [int(each["revision"]) for each in entries]
    assert revisions == sorted(revisions, reverse=True)
    assert {each["resource"] for each in entries} >= {"configmaps", "services"}
    assert (entries[0]["resource"], entries[0]["managers"]) == ("services", ["third (Update)"])
    # A page of one kind is not the page of all: they are read on until there are enough.
    assert json.loads(history(server, "-n", "default", "--limit", "3", "--format", "json")[1]) == entries[:3]
    out = history(server, "-l", "app=a")[1]
    assert set(re.findall(r" default/(\S+)", out)) == {"a", "web"}
    assert re.search(r"created +services default/web +\S+ +third", out)
    entries = json.loads(history(server, "services,cm", "-n", "default", "--format", "json")[1])
    assert {each["resource"] for each in entries} == {"configmaps", "services"}
    everywhere = json.loads(history(server, "--limit", "1000", "--format", "json")[1])
    assert "namespaces" in {each["resource"] for each in everywhere}
    assert not {"events", "leases.coordination.k8s.io"} & {each["resource"] for each in everywhere}


def test_what_may_not_be_read_is_named(server: ApiServer, tmp_path: Path) -> None:
    group = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["configmaps", "services"], "verbs": ["list"]}]
    path = f"/apis/{group}/v1/namespaces/default"
    server.request("POST", f"{path}/roles", {"metadata": {"name": "looks"}, "rules": rules})
    reference = {"apiGroup": group, "kind": "Role", "name": "looks"}
    subjects = [{"apiGroup": group, "kind": "User", "name": "joe"}]
    binding = {"metadata": {"name": "looks"}, "roleRef": reference, "subjects": subjects}
    server.request("POST", f"{path}/rolebindings", binding)
    kubeconfig = tmp_path / "joe"
    kubeconfig.write_text(server.kubeconfig_for("joe"))
    code, out, err = kubewright("history", "-n", "default", "--kubeconfig", kubeconfig)
    assert code == 0 and "configmaps default/a" in out
    assert "you may not list" in err and "secrets" in err and "configmaps" not in err
    code, out, err = kubewright("history", "secrets,cm", "-n", "default", "--kubeconfig", kubeconfig)
    assert (code, out) == (1, "") and "cannot list resource" in err


def test_rights_are_those_of_the_read(server: ApiServer) -> None:
    for path in (f"{CONFIG_MAPS}/a", CONFIG_MAPS):
        with pytest.raises(ApiError, match="eve") as refusal:
            server.request("GET", path, user="eve")
        assert refusal.value.code == 403


def test_a_server_that_keeps_nothing() -> None:
    with ApiServer() as server:
        code, _, err = history(server, "namespaces/default")
        assert code == 1 and "keeps no history: start it with serve --keep-history" in err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["cm/none", "-n", "default"], 1, "nothing is known of its past"),
        (["cm", "--diff"], 2, "--at and --diff are of one object"),
        (["cm/a", "-l", "x=y"], 2, "leave the name out"),
        (["cm/a", "--limit", "0"], 2, "give 1 or more"),
        (["cm", "-l", "a in b c"], 1, "unable to parse requirement"),
    ],
)
def test_refusals(server: ApiServer, words: list[str], code: int, said: str) -> None:
    got, out, err = history(server, *words)
    assert (got, out) == (code, "")
    assert said in err


def audit(**more: Any) -> dict[str, Any]:
    reference = {"resource": "deployments", "apiGroup": "apps", "namespace": "shop", "name": "web"}
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "stage": "ResponseComplete",
        "verb": "patch",
        "requestURI": "/apis/apps/v1/namespaces/shop/deployments/web",
        "user": {"username": "jane"},
        "userAgent": "kubectl/v1.36",
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "stageTimestamp": "2026-01-02T00:00:00Z",
    }
    return {**event, **more}


def test_an_audit_log(tmp_path: Path) -> None:
    obj = {"kind": "Deployment", "metadata": {"resourceVersion": "7"}, "spec": {"replicas": 2}}
    events = [
        audit(
            verb="create",
            stageTimestamp="2026-01-01T00:00:00Z",
            responseObject=obj,
            responseStatus={"code": 201},
        ),
        audit(user={"username": "eve\x1b[31m"}),
        audit(verb="get"),
        audit(responseStatus={"code": 403}),
        audit(requestURI="/x?dryRun=All"),
        audit(objectRef={"resource": "pods", "name": "web"}),
        audit(stage="RequestReceived"),
    ]
    path = tmp_path / "audit.log"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    code, out, _ = kubewright("history", "deployments/web", "-n", "shop", "--audit", path)
    assert code == 0
    assert re.findall(r"(updated|created) +(\S+) +kubectl", out) == [
        ("updated", r"eve\x1b[31m"),
        ("created", "jane"),
    ]
    code, out, _ = kubewright("history", "-n", "shop", "--audit", path)
    assert re.findall(r"(\S+ shop/web) +(\S+)", out) == [
        ("deployments.apps shop/web", r"eve\x1b[31m"),
        ("deployments.apps shop/web", "jane"),
    ]
    code, out, _ = kubewright("history", "deployments.apps/web", "--audit", path, "--at", "7")
    assert code == 0 and "replicas: 2" in out
    path.write_text("{}\nbroken\n")
    code, _, err = kubewright("history", "deployments/web", "--audit", path)
    assert code == 2 and "audit.log:2: no audit event" in err
