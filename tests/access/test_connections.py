"""Which rights a connection to a pod needs, whatever method and protocol opens it: texts of kube-apiserver 1.36.

A websocket can only be opened by GET; before ``create`` was asked for besides, whoever might read a subresource could
run commands.
"""

from __future__ import annotations

import http.client

import pytest

from kubewright.testing import ApiServer

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
CONNECTED = ["pods/exec", "pods/attach", "pods/portforward"]
OTHERS = ["pods/proxy", "services/proxy", "nodes/proxy", "pods/log"]
OFFERS = {
    "plain": {},
    "spdy": {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"},
    "websocket": {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
    },
}


@pytest.fixture(scope="module")
def server():
    with ApiServer(node=True) as running:
        for name, verbs in (("reader", ["get"]), ("creator", ["create"]), ("both", ["get", "create"])):
            rules = [{"apiGroups": [""], "verbs": verbs, "resources": CONNECTED + OTHERS}]
            subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}
            ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            body = {"metadata": {"name": name}}
            running.request("POST", f"{RBAC}/clusterroles", {**body, "rules": rules})
            running.request(
                "POST", f"{RBAC}/clusterrolebindings", {**body, "roleRef": ref, "subjects": [subject]}
            )
        spec = {"containers": [{"name": "c", "image": "x"}]}
        running.request("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
        yield running


def ask(server, method: str, path: str, user: str, headers: dict[str, str]) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    token = server._users.token(user)
    try:
        connection.request(method, path, None, {"Authorization": f"Bearer {token}", **headers})
        answer = connection.getresponse()
        return answer.status, "" if answer.status in (101, 200) else answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("subresource", [name.partition("/")[2] for name in CONNECTED])
def test_a_connection_by_get_needs_create_too(server, subresource, offer):
    for pod in ("p", "missing"):
        path = f"{PODS}/{pod}/{subresource}?command=date&stdout=1&ports=80"
        status, text = ask(server, "GET", path, "reader", OFFERS[offer])
        assert status == 403 and f'pods \\"{pod}\\" is forbidden: "' in text
        assert "cannot" not in ask(server, "GET", path, "both", OFFERS[offer])[1]
        status, text = ask(server, "GET", path, "creator", OFFERS[offer])
        assert status == 403 and "cannot get resource" in text
        status, text = ask(server, "POST", path, "reader", OFFERS[offer])
        assert status == 403 and "cannot create resource" in text
        if offer != "websocket":
            assert "cannot" not in ask(server, "POST", path, "creator", OFFERS[offer])[1]


@pytest.mark.parametrize("path", [f"{PODS}/p/log", f"{PODS}/p/proxy/", "/api/v1/nodes/n/proxy/"])
def test_what_only_reads_needs_get_alone(server, path):
    assert ask(server, "GET", path, "reader", {})[0] != 403


def test_a_server_of_an_older_release_asks_for_get_alone():
    with ApiServer(emulated_version="1.34") as old:
        rules = [{"apiGroups": [""], "verbs": ["get"], "resources": CONNECTED}]
        old.request("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "reader"}, "rules": rules})
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
        subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "reader"}
        body = {"metadata": {"name": "reader"}, "roleRef": ref, "subjects": [subject]}
        old.request("POST", f"{RBAC}/clusterrolebindings", body)
        assert ask(old, "GET", f"{PODS}/missing/exec", "reader", {})[0] == 404


def test_the_right_is_among_those_that_a_user_is_seen_to_use(server):
    with server.recording() as deeds:
        ask(server, "GET", f"{PODS}/missing/exec", "both", {})
    roles = deeds.roles("both", "seen")
    rules = [rule for role in roles for rule in role.get("rules", ())]
    assert [(rule["resources"], sorted(rule["verbs"])) for rule in rules] == [
        (["pods/exec"], ["create", "get"])
    ]
