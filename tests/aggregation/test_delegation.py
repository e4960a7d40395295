"""A generated group served behind another server, which proxies to it and is asked who may do what."""

from __future__ import annotations

import argparse
import base64
import json
import ssl
from contextlib import ExitStack
from http.client import HTTPSConnection

import pytest
from tests.aggregation.test_remote import ask, until

from apimachinery.meta.errors import ApiError
from apimachinery.server.assembly.api import build_api
from apimachinery.server.catalog.options import ApiOptions, OptionError
from apimachinery.server.network.services import Address
from apimachinery.server.process import Server, ServerOptions
from apimachinery.wire.yaml import decode_all
from kubewright.testing import ApiServer
from kubewright.testing.thread import ServerThread
from kubewright.tools.arguments import serve
from kubewright.tools.serve import command

GROUP, NAMESPACE, SERVICE = "messaging.kubewright.dev", "messaging", "api"
ROOT = f"/apis/{GROUP}/v1"
ROLES = "/apis/rbac.authorization.k8s.io/v1"
QUEUE = {
    "apiVersion": f"{GROUP}/v1",
    "kind": "Queue",
    "metadata": {"name": "orders"},
    "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "shop"}}},
}


def options(*arguments):
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    return parser.parse_args([*map(str, arguments)])


class Behind(Server):
    """As ``kubewright serve --delegate`` starts it."""

    def __init__(self, chosen, folder):
        security = command._security(chosen, folder)
        self.delegation = security.delegation
        self.authority = security.authority
        cluster, outgoing = self.delegation.cluster, self.delegation.outgoing
        api_options = ApiOptions(
            packages=("messaging_api",), controllers=frozenset(), namespaces=cluster.namespaces(outgoing)
        )
        super().__init__(
            ServerOptions(tls=security.tls, shutdown_seconds=2.0),
            security.granted.options,
            lambda backend: build_api(backend, api_options),
        )

    async def start(self):
        await self.delegation.cluster.prepare(self.delegation.trust, self.delegation.outgoing, 5.0)
        await super().start()


@pytest.fixture(scope="module")
def core():
    with ApiServer(controllers="namespace") as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("behind")


@pytest.fixture(scope="module")
def behind(core, folder):
    account = f"system:serviceaccount:{NAMESPACE}:{SERVICE}"
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(core.kubeconfig_for(account))
    arguments = ["--packages", "messaging_api", "--service", f"{NAMESPACE}/{SERVICE}", "--cert-dir", folder]
    manifest = command._manifest(options(*arguments, "--print-manifest"), ExitStack())
    apply(core, [obj for obj in decode_all(manifest.encode()) if obj["kind"] != "APIService"])
    thread = ServerThread(Behind(options(*arguments, "--delegate", kubeconfig), folder))
    core.services[NAMESPACE, SERVICE] = Address("127.0.0.1", thread.server.port)
    apply(core, [obj for obj in decode_all(manifest.encode()) if obj["kind"] == "APIService"])
    until(lambda: available(core))
    core.request("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    yield thread.server
    thread.stop()


PLURALS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/{ns}/serviceaccounts",
    "Service": "/api/v1/namespaces/{ns}/services",
    "ClusterRole": f"{ROLES}/clusterroles",
    "ClusterRoleBinding": f"{ROLES}/clusterrolebindings",
    "RoleBinding": ROLES + "/namespaces/{ns}/rolebindings",
    "APIService": "/apis/apiregistration.k8s.io/v1/apiservices",
}


def apply(server, objects):
    for obj in objects:
        path = PLURALS[obj["kind"]].format(ns=obj["metadata"].get("namespace", ""))
        server.request("POST", path, obj)


def available(server):
    found = server.request("GET", f"/apis/apiregistration.k8s.io/v1/apiservices/v1.{GROUP}")
    return any(c["status"] == "True" for c in (found.get("status") or {}).get("conditions", []))


def test_objects_by_way_of_the_proxy(core, behind):
    made = core.request("POST", f"{ROOT}/namespaces/shop/queues", QUEUE)
    assert made["metadata"]["uid"]
    assert core.request("GET", f"{ROOT}/queues")["items"][0]["metadata"]["name"] == "orders"
    scale = core.request("GET", f"{ROOT}/namespaces/shop/queues/orders/scale")
    assert scale["spec"]["replicas"] == 3
    watched = ask(core, "GET", f"{ROOT}/queues?watch=1&timeoutSeconds=1&resourceVersion=0")[2]
    assert json.loads(watched.splitlines()[0])["type"] == "ADDED"
    core.request("DELETE", f"{ROOT}/namespaces/shop/queues/orders")
    with pytest.raises(ApiError, match='namespaces "nowhere" not found'):
        core.request("POST", f"{ROOT}/namespaces/nowhere/queues", QUEUE)
    with pytest.raises(ApiError, match="selector: Required value"):
        core.request("POST", f"{ROOT}/namespaces/shop/queues", {**QUEUE, "spec": {}})


def test_roles_of_the_cluster_decide(core, behind):
    with pytest.raises(ApiError) as refused:
        core.request("GET", f"{ROOT}/queues", user="bob")
    assert refused.value.code == 403
    rule = {"apiGroups": [GROUP], "resources": ["queues"], "verbs": ["list"]}
    role = {"kind": "ClusterRole", "metadata": {"name": "queues"}, "rules": [rule]}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "queues"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}
    binding = {"kind": "ClusterRoleBinding", "metadata": {"name": "queues"}, "roleRef": reference}
    apply(core, [role, {**binding, "subjects": [subject]}])
    assert core.request("GET", f"{ROOT}/queues", user="ann")["kind"] == "QueueList"
    with pytest.raises(ApiError):
        core.request("DELETE", f"{ROOT}/namespaces/shop/queues/orders", user="ann")


def direct(server, headers):
    """Past the proxy, without its certificate."""
    context = ssl.create_default_context(cadata=server.authority.decode())
    connection = HTTPSConnection("127.0.0.1", server.port, context=context, timeout=60)
    try:
        connection.request("GET", f"{ROOT}/queues", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}, 403),
        ({"Authorization": "Bearer nonsense"}, 401),
    ],
)
def test_past_the_proxy_nobody_is_believed(core, behind, headers, status):
    assert direct(behind, headers) == status


def test_tokens_of_the_cluster_are_known_past_the_proxy(core, behind):
    from apimachinery.wire.yaml import decode

    token = decode(core.kubeconfig_for("admin").encode())["users"][0]["user"]["token"]
    assert direct(behind, {"Authorization": f"Bearer {token}"}) == 200


def test_health_is_open(core, behind):
    context = ssl.create_default_context(cadata=behind.authority.decode())
    connection = HTTPSConnection("127.0.0.1", behind.port, context=context, timeout=60)
    connection.request("GET", "/readyz")
    assert connection.getresponse().status == 200
    connection.close()


def test_it_is_told_of(core, behind):
    def documents():
        paths = json.loads(core.request("GET", "/openapi/v3"))["paths"]
        return ROOT[1:] in paths

    until(documents)
    entry = json.loads(core.request("GET", "/openapi/v3"))["paths"][ROOT[1:]]["serverRelativeURL"]
    assert f"{ROOT}/namespaces/{{namespace}}/queues" in core.request("GET", entry)["paths"]
    assert {r["name"] for r in core.request("GET", ROOT)["resources"]} >= {
        "queues",
        "queues/scale",
        "brokers",
    }


REFUSED = [
    (["--delegate", "in-cluster"], "in-cluster"),
    (["--authentication-kubeconfig", "x"], "go together"),
    (["--delegate", "x", "--token-file", "t"], "--delegate and --token-file exclude each other"),
    (["--delegate", "x", "--anonymous-admin"], "exclude each other"),
    (["--delegate", "/nowhere/kubeconfig"], "/nowhere/kubeconfig"),
]


@pytest.mark.parametrize(("arguments", "fault"), REFUSED)
def test_options_that_cannot_be(arguments, fault, tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(OptionError, match=fault):
        command._security(options("--packages", "messaging_api", *arguments), tmp_path)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--packages", "messaging_api"], "--print-manifest needs --service"),
        (["--service", "a/b"], "--print-manifest needs --packages"),
        (["--packages", "messaging_api", "--service", "a"], "'a' is not NAMESPACE/NAME"),
    ],
)
def test_a_manifest_that_cannot_be(arguments, fault, tmp_path):
    with pytest.raises(OptionError, match=fault):
        command._manifest(options("--print-manifest", "--cert-dir", tmp_path, *arguments), ExitStack())


def test_the_manifest_of_a_name(tmp_path):
    chosen = options(
        "--packages", "messaging_api", "--service", "ns/api", "--external-name", "api.example.com",
        "--port", "7443", "--cert-dir", tmp_path,
    )  # fmt: skip
    objects = {obj["kind"]: obj for obj in decode_all(command._manifest(chosen, ExitStack()).encode())}
    assert objects["Service"]["spec"] == {"type": "ExternalName", "externalName": "api.example.com"}
    spec = objects["APIService"]["spec"]
    assert spec["service"] == {"namespace": "ns", "name": "api", "port": 7443}
    assert base64.b64decode(spec["caBundle"]).startswith(b"-----BEGIN CERTIFICATE-----")


def test_a_namespace_takes_along_what_is_behind(core, behind):
    core.request("POST", "/api/v1/namespaces", {"metadata": {"name": "brief"}})
    core.request("POST", f"{ROOT}/namespaces/brief/queues", QUEUE)
    until(lambda: core.request("GET", f"{ROOT}/namespaces/brief/queues")["items"])
    core.request("DELETE", "/api/v1/namespaces/brief")
    until(
        lambda: (
            "brief" not in [n["metadata"]["name"] for n in core.request("GET", "/api/v1/namespaces")["items"]]
        )
    )
    assert core.request("GET", f"{ROOT}/namespaces/brief/queues")["items"] == []


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--proxy-allow-network", "10.0.0.0/33"], "--proxy-allow-network: '10.0.0.0/33'"),
        (["--proxy-allow-network", "10.0.0.0/8", "--anonymous-admin"], "exclude each other"),
    ],
)
def test_networks_that_cannot_be(arguments, fault):
    with pytest.raises(OptionError, match=fault):
        command.proxying.allowed_networks(options(*arguments))  # type: ignore[attr-defined]
