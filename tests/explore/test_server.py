"""The explorer's server: whom it answers, with whose rights it asks the cluster, and what it computes."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apimachinery.client.config import Config, ConfigError
from kubewright.testing.server import ApiServer
from kubewright.testing.thread import ServerThread
from kubewright.tools.explore import page
from kubewright.tools.explore.command import ExplorerServer
from kubewright.tools.explore.guard import KEY_HEADER
from kubewright.tools.explore.upstream import Upstream
from tests.tools.command import kubewright

SECONDS = 20.0


class Asking:
    """A client of the explorer, which sends what the page sends unless told otherwise."""

    def __init__(self, server: ExplorerServer) -> None:
        self.server = server
        self.place = server.origin.removeprefix("http://")

    def __call__(
        self, method: str, path: str, body: Any = None, **headers: str | None
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection(self.place, timeout=SECONDS)
        sent = {"Host": self.place, KEY_HEADER: self.server.guard.key}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc]
        try:
            connection.putrequest(method, path, skip_host=True)
            data = json.dumps(body).encode() if body is not None else b""
            for name, value in {**sent, "Content-Length": str(len(data))}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(data)
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def json(self, name: str, /, **asked: Any) -> Any:
        status, _, body = self("POST", f"/explorer/{name}", asked)
        assert status == 200, body
        return json.loads(body)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def _running(config: Config, *, login: bool) -> ServerThread[ExplorerServer]:
    return ServerThread(ExplorerServer(Upstream(config, login=login)))


@pytest.fixture(scope="module")
def asking(cluster: ApiServer) -> Iterator[Asking]:
    thread = _running(Config.load(cluster.kubeconfig), login=False)
    yield Asking(thread.server)
    thread.stop()


@pytest.fixture(scope="module")
def login(cluster: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    path = tmp_path_factory.mktemp("eve") / "kubeconfig"
    path.write_text(cluster.kubeconfig_for("eve"))
    thread = _running(Config.load(path), login=True)
    yield Asking(thread.server)
    thread.stop()


NODES = "/cluster/api/v1/namespaces"


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({"Host": "evil.example:80"}, "loopback"),
        ({"Host": "127.0.0.1"}, "loopback"),
        ({"Host": None}, ""),
        ({"Origin": "http://evil.example"}, "other pages"),
        ({"Origin": "null"}, "other pages"),
        ({"Sec_Fetch_Site": "cross-site"}, "other pages"),
        ({"Sec_Fetch_Site": "same-site"}, "other pages"),
        ({KEY_HEADER: "guessed"}, "key of this run"),
        ({KEY_HEADER: None}, "key of this run"),
    ],
)
def test_who_is_not_answered(asking: Asking, headers: dict[str, str | None], said: str) -> None:
    for method, path in (
        ("GET", NODES),
        ("POST", "/explorer/lines"),
        ("POST", "/explorer/follow"),
        ("GET", "/explorer/about"),
    ):
        status, _, body = asking(method, path, **headers)
        assert status in (400, 403)
        assert said in body.decode()


def test_a_refused_write_reaches_nobody(asking: Asking) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "evil"}}
    assert asking("POST", NODES, body, Origin="http://evil.example")[0] == 403
    assert asking("GET", f"{NODES}/evil")[0] == 404


def test_requests_have_the_rights_of_the_kubeconfig(asking: Asking) -> None:
    status, headers, body = asking("GET", NODES, Authorization="Bearer nobody", Impersonate_User="eve")
    assert status == 200
    assert json.loads(body)["kind"] == "NamespaceList"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_with_login_requests_have_the_rights_of_the_token_alone(login: Asking, cluster: ApiServer) -> None:
    # Whoever has no token is the administrator of this server, and eve may do nothing: the kubeconfig is hers.
    assert login("GET", NODES)[0] == 200
    eve = json.loads(cluster.kubeconfig_for("eve"))["users"][0]["user"]["token"]
    assert login("GET", NODES, Authorization=f"Bearer {eve}")[0] == 403
    assert login("POST", "/explorer/access", {"question": "who-can"}, Authorization=f"Bearer {eve}")[0] == 403
    assert login("GET", NODES, Authorization="Bearer nobody")[0] == 401


def test_a_watch_comes_as_it_happens(asking: Asking, cluster: ApiServer) -> None:
    connection = http.client.HTTPConnection(asking.place, timeout=SECONDS)
    connection.request(
        "GET", "/cluster/api/v1/configmaps?watch=true", headers={KEY_HEADER: asking.server.guard.key}
    )
    answer = connection.getresponse()
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen"}}
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", made)
    names = []
    while "seen" not in names:
        line = answer.readline()
        assert line
        names.append(json.loads(line)["object"]["metadata"].get("name"))
    connection.close()


def test_questions(asking: Asking) -> None:
    obj = {
        "kind": "X",
        "metadata": {"managedFields": [{"manager": "of a version to come"}]},
        "spec": {"a": 1},
    }
    lines = asking.json("lines", object=obj)["lines"]
    assert [line["text"] for line in lines if line["field"] == "spec.a"] == ["  a: 1"]
    read = asking.json("read", text="a: 1\nspec:\n  ports:\n  - port: 80\n")
    assert read["lines"]["spec.ports[0].port"] == 4
    broken = asking.json("read", text="a: 1\nb: [\n")
    assert broken["line"] >= 2 and broken["fault"]
    assert asking.json("read", text="a: 1\na: 2\n")["duplicates"]
    chains = asking.json("access", question="who-can", verb="delete", resource="pods")["chains"]
    assert {"subject", "binding", "role", "rule"} == chains[0].keys()
    why = asking.json(
        "access",
        question="why",
        subject="sa:kube-system/namespace-controller",
        verb="delete",
        resource="pods",
    )
    assert why["chains"][0]["role"] == "ClusterRole system:controller:namespace-controller"


@pytest.mark.parametrize(
    ("question", "asked", "status"),
    [
        ("lines", {"object": []}, 400),
        ("difference", {"before": 1}, 400),
        ("access", {"subject": "sa:x", "question": "why"}, 400),
        ("nothing", {}, 404),
        ("cel", [], 400),
    ],
)
def test_what_cannot_be_answered(asking: Asking, question: str, asked: Any, status: int) -> None:
    got, _, body = asking("POST", f"/explorer/{question}", asked)
    assert got == status and body


def test_paths_that_are_not_there(asking: Asking) -> None:
    assert asking("GET", "/page/../guard.py")[0] == 404
    assert asking("GET", "/page/%2e%2e/guard.py")[0] == 404
    assert asking("POST", "/")[0] == 405
    assert asking("GET", "/cluster/nowhere")[0] == 404
    assert asking("GET", NODES, Upgrade="websocket", Connection="Upgrade")[0] in (400, 426)


def test_a_checkout_without_the_page_says_what_to_run(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "BUILT", tmp_path)
    status, _, body = asking("GET", "/", **{KEY_HEADER: None})
    assert status == 404 and b"make explorer" in body
    assert asking.json("cel", expression="1 + 1")["value"] == 2
    (tmp_path / "index.html").write_text("<script nonce=NONCE></script>")
    status, headers, body = asking("GET", "/", **{KEY_HEADER: None})
    nonce = body.decode().partition("nonce=")[2].partition(">")[0]
    assert status == 200 and f"'nonce-{nonce}'" in headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"


def test_a_cluster_that_does_not_answer() -> None:
    thread = _running(Config(server="http://127.0.0.1:9"), login=False)
    try:
        status, _, body = Asking(thread.server)("GET", NODES)
        assert (status, json.loads(body)["kind"]) == (502, "Status")
    finally:
        thread.stop()


def test_origins_of_differences(asking: Asking) -> None:
    applied = {"apiVersion": "v1", "fieldsType": "FieldsV1", "manager": "me", "operation": "Apply"}
    managed = [{**applied, "fieldsV1": {"f:spec": {"f:a": {}, "f:given": {}}}}]
    before = {"metadata": {"name": "x", "managedFields": managed}, "spec": {"a": 1, "given": 5, "there": "v"}}
    sent = {"metadata": {"name": "x"}, "spec": {"a": 2, "items": [{"name": "c"}]}}
    after = {
        "spec": {"items": [{"name": "c", "pull": "Always"}], "there": "w", "given": 1, "a": 2},
        "metadata": {"name": "x", "labels": {"by": "policy"}, "generation": 3},
        "status": {"seen": True},
    }
    lines = asking.json("difference", before=before, after=after, sent=sent, manager="me")["lines"]
    marks = {line["text"].strip(): (line["mark"], line.get("origin")) for line in lines}
    assert marks["name: x"] == ("same", None), "the order of fields is no difference"
    assert marks["a: 1"] == ("removed", None)
    assert marks["a: 2"] == ("added", "you")
    assert marks["- name: c"] == ("added", "you")
    assert marks["pull: Always"] == ("added", "server"), "a default in what was added"
    assert marks["given: 1"] == ("added", "server"), "a default in the place of what was given up"
    assert marks["there: w"] == ("added", "admission")
    assert marks["labels:"] == marks["by: policy"] == ("added", "admission")
    assert marks["generation: 3"] == marks["seen: true"] == ("added", "server")


def test_objects_side_by_side(asking: Asking) -> None:
    first = {"apiVersion": "x/v2", "spec": {"a": 1, "text": "one\ntwo\n", "list": [1, 2]}}
    second = {"spec": {"b": 2, "list": [1], "text": "one\nzwei\n", "a": 1}, "apiVersion": "x/v1"}
    lines = asking.json("beside", objects=[first, second])["lines"]
    assert [(each["texts"], each["differs"]) for each in lines] == [
        (["apiVersion: x/v2", "apiVersion: x/v1"], True),
        (["spec:", "spec:"], False),
        (["  a: 1", "  a: 1"], False),
        (["  text: |", "  text: |"], False),
        (["    one", "    one"], False),
        (["    two", "    zwei"], True),
        (["  list:", "  list:"], False),
        (["  - 1", "  - 1"], False),
        (["  - 2", ""], True),
        (["", "  b: 2"], True),
    ]
    assert asking.json("beside", objects=[])["lines"] == []
    assert asking("POST", "/explorer/beside", {"objects": {}})[0] == 400


def test_descriptions_of_definitions(asking: Asking) -> None:
    name = "io.k8s.api.apps.v1.Deployment"
    for release in ("1.36", "0.1"):
        found = asking.json("descriptions", release=release, definitions=[name, "none"])["descriptions"]
        assert found.keys() == {name}
        assert found[name][""] and found[name]["spec"]


CONFIG_MAPS = {"group": "", "versions": ["v1"], "resource": "configmaps"}


def config_map(name: str, **data: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_policy_is_tried(asking: Asking) -> None:
    policy = {
        "spec": {
            "matchConditions": [{"name": "c", "expression": "object.metadata.name != 'other'"}],
            "variables": [{"name": "n", "expression": "int(object.data.n)"}],
            "validations": [
                {"expression": "variables.n <= 3", "messageExpression": "'has ' + string(variables.n)"}
            ],
        }
    }
    objects = [config_map(name, n=n) for name, n in (("a", "5"), ("b", "1"), ("other", "9"))]
    results = asking.json("policy", policy=policy, objects=objects, resource=CONFIG_MAPS)["results"]
    assert [(r["outcome"], r["messages"]) for r in results] == [
        ("refused", ["has 5"]),
        ("allowed", []),
        ("not matched", ["a match condition is false"]),
    ]
    wrong = {"spec": {"validations": [{"expression": "object."}]}}
    assert "Syntax error" in asking.json("policy", policy=wrong, objects=objects)["fault"]


@pytest.mark.parametrize(
    ("constraints", "why"),
    [
        (
            {
                "resourceRules": [
                    {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}
                ]
            },
            "no rule",
        ),
        (
            {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["*"]}
                ]
            },
            "no rule",
        ),
        (
            {
                "excludeResourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["*"],
                        "operations": ["*"],
                        "resources": ["configmaps"],
                    }
                ]
            },
            "excludeResourceRules",
        ),
        ({"objectSelector": {"matchLabels": {"a": "b"}}}, "objectSelector"),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "namespaceSelector"),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, ""),
    ],
)
def test_a_trial_is_of_what_the_constraints_are_about(asking: Asking, constraints: Any, why: str) -> None:
    policy = {"spec": {"matchConstraints": constraints, "validations": [{"expression": "false"}]}}
    result = asking.json("policy", policy=policy, objects=[config_map("a")], resource=CONFIG_MAPS)["results"][
        0
    ]
    assert result["outcome"] == ("not matched" if why else "refused")
    assert not why or why in result["messages"][0]


def test_a_trial_has_what_only_a_request_has(asking: Asking, cluster: ApiServer) -> None:
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", config_map("limits", most="2"))
    policy = {
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "validations": [
                {"expression": "int(object.data.n) <= int(params.data.most)", "message": "too many"},
                {"expression": "namespaceObject.metadata.name == 'default'"},
                {
                    "expression": "authorizer.group('').resource('pods').namespace('default').check('get').allowed()"
                },
                {"expression": "authorizer.requestResource.check('create').allowed()"},
                {
                    "expression": "!authorizer.serviceAccount('default', 'nobody').path('/x').check('get').allowed()"
                },
                {"expression": "request.userInfo.username != '' && oldObject != null"},
            ],
        }
    }
    asked = {
        "policy": policy,
        "objects": [config_map("a", n="3"), config_map("b", n="2")],
        "resource": CONFIG_MAPS,
    }
    results = asking.json("policy", **asked, operation="UPDATE", params={"name": "limits"})["results"]
    assert [(r["outcome"], r["messages"]) for r in results] == [("refused", ["too many"]), ("allowed", [])]
    results = asking.json("policy", **asked, operation="UPDATE", params={"name": "none"})["results"]
    assert results[0]["messages"] == ['params: configmaps "none" not found']
    each = {
        "spec": {**policy["spec"], "validations": [{"expression": "params.metadata.namespace == 'default'"}]}
    }
    results = asking.json("policy", **{**asked, "policy": each}, operation="UPDATE")["results"]
    assert [r["outcome"] for r in results] == ["allowed", "allowed"], (
        "every object of the kind is a parameter"
    )
    policy["spec"]["paramKind"] = {"apiVersion": "apps/v1", "kind": "Limit"}
    assert asking.json("policy", **asked)["fault"] == "paramKind: the cluster serves no Limit of apps/v1"


def test_a_mutating_policy_is_tried(asking: Asking) -> None:
    container = {"name": "c", "image": "nginx"}
    spec = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": spec,
    }
    pull = (
        "Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: ["
        'Object.spec.template.spec.containers{name: "c", imagePullPolicy: "Always"}]}}}}'
    )
    patch = (
        '[JSONPatch{op: "test", path: "/spec/replicas", value: 1}, '
        'JSONPatch{op: "replace", path: "/spec/replicas", value: 2}]'
    )
    policy = {
        "kind": "MutatingAdmissionPolicy",
        "spec": {
            "mutations": [
                {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": pull}},
                {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}},
            ]
        },
    }
    resource = {"group": "apps", "versions": ["v1"], "resource": "deployments"}
    other = {**deployment, "spec": {**spec, "replicas": 3}}
    results = asking.json("policy", policy=policy, objects=[deployment, other], resource=resource)["results"]
    assert [r["outcome"] for r in results] == ["changed", "changed"]
    marks = [(line["mark"], line["text"].strip()) for line in results[0]["changes"]]
    assert marks == [
        ("removed", "replicas: 1"),
        ("added", "replicas: 2"),
        ("added", "imagePullPolicy: Always"),
    ]
    assert [line["text"].strip() for line in results[1]["changes"]] == ["imagePullPolicy: Always"]
    policy["spec"]["mutations"][1]["jsonPatch"]["expression"] = "[JSONPatch{"  # type: ignore[index]
    assert (
        "Syntax error"
        in asking.json("policy", policy=policy, objects=[deployment], resource=resource)["fault"]
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "x"], "begins with http:// or https://"),
        (["--url", "http://x", "--context", "y"], "give no kubeconfig"),
        (["--certificate-authority", "x"], "goes with --url"),
        (["--kubeconfig", "/nowhere"], "/nowhere"),
    ],
)
def test_command_lines_that_cannot_be(words: list[str], said: str) -> None:
    code, _, err = kubewright("explore", *words)
    assert code == 2
    assert said in err


class ForwardProxy:
    """An HTTP proxy that asks for a password: CONNECT, and requests with the whole URL."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self._server: asyncio.Server | None = None
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://jane:secret@127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        is_known = f"Basic {base64.b64encode(b'jane:secret').decode()}" in head
        self.seen.append(f"{method} {'known' if is_known else 'unknown'}")
        host, _, port = target.removeprefix("http://").partition("/")[0].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            back.write(head.replace(f"http://{host}:{port}", "").encode())
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer), return_exceptions=True)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
        sink.close()


@pytest.mark.parametrize(("tls", "seen"), [(True, "CONNECT known"), (False, "GET known")])
def test_through_a_proxy(tls: bool, seen: str) -> None:
    with ApiServer(tls=tls) as server:
        proxy = ServerThread(ForwardProxy())
        config = replace(Config.load(server.kubeconfig), proxy_url=proxy.server.url)
        thread = _running(config, login=False)
        try:
            status, _, body = Asking(thread.server)("GET", NODES)
            assert (status, json.loads(body)["kind"]) == (200, "NamespaceList")
            assert proxy.server.seen == [seen]
        finally:
            thread.stop()
            proxy.stop()


def test_other_proxies_are_refused_by_name() -> None:
    config = Config(server="http://x", proxy_url="socks5://jane:secret@p:1080")
    with pytest.raises(
        ConfigError, match=r'proxy-url "socks5://p:1080".*http and https proxies only'
    ) as refusal:
        Upstream(config, login=False)
    assert "secret" not in str(refusal.value)


def test_labels_are_selected_as_the_server_does(asking: Asking) -> None:
    labels = [{"app": "a"}, {"app": "b", "x": "1"}, {}]
    assert asking.json("selected", selector="app in (a,b),!x", labels=labels) == {
        "selected": [True, False, False]
    }
    status, _, body = asking("POST", "/explorer/selected", {"selector": "a in b", "labels": []})
    assert status == 400 and b"unable to parse requirement" in body
