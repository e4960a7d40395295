"""APIServices of other servers: what goes there, what comes back, and what is said while they are away."""

from __future__ import annotations

import base64
import json
import socket
import time
from http.client import HTTPConnection

import pytest
from tests.aggregation.backend import GROUP, NAMESPACE, ROOT, SERVICE, VERSION, Backend

from apimachinery.meta.errors import ApiError
from apimachinery.server.network.services import Address
from kubewright.testing import ApiServer

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = f"{VERSION}.{GROUP}"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.fixture(scope="module")
def server():
    with ApiServer(controllers="none") as running:
        yield running


@pytest.fixture(scope="module")
def backend(server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backend")
    published = server.request(
        "GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    )
    authority = folder / "front-proxy-ca.crt"
    authority.write_text(published["data"]["requestheader-client-ca-file"])
    with Backend(folder, authority) as running:
        server.services[NAMESPACE, SERVICE] = Address("127.0.0.1", running.port)
        server.request("POST", SERVICES, api_service(caBundle=base64.b64encode(running.ca).decode()))
        until(lambda: condition(server) == ("True", "Passed", "all checks passed"))
        until(lambda: discovered(server).get("freshness") == "Current")
        yield running


def api_service(**spec):
    reference = {"namespace": NAMESPACE, "name": SERVICE, "port": 443}
    base = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 17650, "versionPriority": 15}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": NAME},
        "spec": {**base, "service": reference, **spec},
    }


def until(holds, seconds=60.0):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def condition(server):
    status = server.request("GET", f"{SERVICES}/{NAME}").get("status") or {}
    for entry in status.get("conditions", []):
        return entry["status"], entry["reason"], entry["message"]
    return None


def ask(server, method, path, body=None, headers=None):
    """Status, headers and body as they come."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def discovered(server):
    listed = json.loads(ask(server, "GET", "/apis", headers={"Accept": DISCOVERY})[2])
    entries = [group for group in listed["items"] if group["metadata"]["name"] == GROUP]
    return entries[0]["versions"][0] if entries else {}


def test_what_goes_on_and_what_does_not(server, backend):
    headers = {
        "X-Remote-User": "evil",
        "X_Remote_Group": "system:masters",
        "X-Remote-Extra-Scope": "evil",
        "Impersonate-User": "bob",
        "Impersonate-Group": "devs",
        "Impersonate-Extra-a%2fb": "1",
        "Connection": "X-Mine, keep-alive",
        "X-Mine": "1",
        "Authorization": "",
        "Cookie": "a=b",
        "Content-Type": "application/json",
    }
    server.request(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {
            "metadata": {"name": "things"},
            "rules": [{"apiGroups": [GROUP], "resources": ["*"], "verbs": ["*"]}],
        },
    )
    server.request(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "things"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "things"},
            "subjects": [{"kind": "Group", "name": "devs", "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    status, answered, _ = ask(
        server, "PUT", f"{ROOT}/namespaces/n/things/%C3%A4%20b?b=2&a=1&bad=%zz&e=f;g", b'{"x": 1}', headers
    )
    assert (status, answered["X-Own"], "Keep-Alive" in answered) == (200, "yes", False)
    method, target, sent, body, proved = next(r for r in reversed(backend.seen) if "namespaces/n" in r[1])
    assert (method, target, body, proved) == (
        "PUT",
        f"{ROOT}/namespaces/n/things/%C3%A4%20b?a=1&b=2",
        b'{"x": 1}',
        True,
    )
    got = {name.lower().replace("_", "-"): [] for name, _ in sent}
    for name, value in sent:
        got[name.lower().replace("_", "-")].append(value)
    assert got["audit-id"] == [answered["Audit-Id"]]
    assert got["x-remote-user"] == ["bob"]
    assert got["x-remote-group"] == ["devs", "system:authenticated"]
    assert got["x-remote-extra-a%2fb"] == ["1"]
    assert got["cookie"] == ["a=b"]
    assert (
        not {"impersonate-user", "impersonate-group", "authorization", "x-mine", "x-remote-extra-scope"}
        & got.keys()
    )


def test_authorization_is_before_the_proxy(server, backend):
    asked = len(backend.seen)
    with pytest.raises(ApiError) as refused:
        server.request("GET", f"{ROOT}/namespaces/n/things", user="carol")
    assert refused.value.code == 403
    assert not [r for r in backend.seen[asked:] if "namespaces/n" in r[1]]


def test_streams_and_large_answers_pass(server, backend):
    _, headers, body = ask(server, "GET", f"{ROOT}/stream?watch=true")
    assert [json.loads(line)["number"] for line in body.splitlines()] == [0, 1, 2]
    assert headers["Content-Type"] == "application/json;stream=watch"
    assert ask(server, "GET", f"{ROOT}/large")[2] == b"x" * 300_000


def test_an_answer_that_breaks_off_is_not_made_whole(server, backend):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(f"GET {ROOT}/cut HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        got = b""
        while data := sock.recv(4096):
            got += data
    assert b"5\r\nhello\r\n" in got
    assert not got.endswith(b"0\r\n\r\n")


def test_who_goes_away_is_not_waited_for(server, backend):
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(f"GET {ROOT}/endless?watch=1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        got = b""
        while b"hello" not in got:
            got += sock.recv(4096) or pytest.fail("the connection ended")
    assert backend.left.wait(60)


def test_a_redirect_is_not_followed_nor_passed_on(server, backend):
    status, headers, body = ask(server, "GET", f"{ROOT}/redirect")
    assert (status, "Location" in headers) == (502, False)
    assert body == b"the backend attempted to redirect this request, which is not permitted"


@pytest.mark.parametrize(
    ("path", "status", "ending"),
    [("echo", b"101", b"hello\x00"), ("things", b"503", b"invalid upgrade response: status code 200\n")],
)
def test_websockets_pass_through(server, backend, path, status, ending):
    offer = (
        f"GET {ROOT}/{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(offer.encode())
        got = sock.recv(4096)
        if status == b"101":
            sock.sendall(b"hello\x00")
        while not got.endswith(ending):
            got += sock.recv(4096) or pytest.fail("the connection ended")
    assert got.split(b" ")[1] == status


def test_discovery_lists_it_among_the_others(server, backend):
    groups = [group["name"] for group in server.request("GET", "/apis")["groups"]]
    at = groups.index(GROUP)
    assert (groups[0], groups[at - 1], groups[at + 1]) == (
        "apiregistration.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    )
    assert server.request("GET", f"/apis/{GROUP}")["preferredVersion"]["groupVersion"] == f"{GROUP}/{VERSION}"
    kind = {"group": "", "version": "", "kind": "Thing"}
    assert discovered(server)["resources"] == [
        {
            "resource": "things",
            "responseKind": kind,
            "scope": "Namespaced",
            "singularResource": "thing",
            "verbs": ["get", "list", "watch"],
            "shortNames": ["tg"],
            "subresources": [{"subresource": "status", "responseKind": kind, "verbs": ["get"]}],
        }
    ]


def test_openapi_is_merged(server, backend):
    until(lambda: ROOT[1:] in json.loads(server.request("GET", "/openapi/v3"))["paths"])
    entry = json.loads(server.request("GET", "/openapi/v3"))["paths"][ROOT[1:]]["serverRelativeURL"]
    assert list(server.request("GET", entry)["paths"]) == [f"{ROOT}/things"]
    until(lambda: f"{ROOT}/things" in server.request("GET", "/openapi/v2")["paths"])
    definitions = server.request("GET", "/openapi/v2")["definitions"]
    # Its Pod is another than ours, and ours stays.
    assert definitions["Thing"]["properties"]["metadata"]["$ref"] == "#/definitions/io.k8s.api.core.v1.Pod_v2"
    assert "spec" in definitions["io.k8s.api.core.v1.Pod"]["properties"]
    assert "unused" not in definitions


def test_away_and_back(server, backend):
    backend.away = True
    touch(server, "away")
    until(lambda: condition(server)[0] == "False")
    url = f"https://127.0.0.1:{backend.port}{ROOT}"
    assert condition(server)[1:] == (
        "FailedDiscoveryCheck",
        f"failing or missing response from {url}: bad status from {url}: 503",
    )
    status, headers, body = ask(server, "GET", f"{ROOT}/namespaces/n/things")
    assert (status, headers["Content-Type"], body) == (
        503,
        "text/plain; charset=utf-8",
        b"service unavailable\n",
    )
    until(lambda: discovered(server) == {"version": VERSION, "freshness": "Stale"})
    assert GROUP in [group["name"] for group in server.request("GET", "/apis")["groups"]]
    metrics = ask(server, "GET", "/metrics")[2].decode()
    assert f'aggregator_unavailable_apiservice{{name="{NAME}"}} 1' in metrics
    assert (
        f'aggregator_unavailable_apiservice_total{{name="{NAME}",reason="FailedDiscoveryCheck"}} ' in metrics
    )
    backend.away = False
    until(lambda: condition(server)[0] == "True")
    until(lambda: discovered(server).get("freshness") == "Current")
    assert ask(server, "GET", f"{ROOT}/namespaces/n/things")[0] == 200


def touch(server, value):
    server.request(
        "PATCH",
        f"{SERVICES}/{NAME}",
        {"metadata": {"annotations": {"touched": value}}},
        "application/merge-patch+json",
    )


def change(server, spec):
    server.request("PATCH", f"{SERVICES}/{NAME}", {"spec": spec}, "application/merge-patch+json")


OTHER = {"namespace": "default", "name": "kubernetes"}
REASONS = [
    ({"service": {"name": "gone"}}, "ServiceNotFound", 'service/gone in "aggregate" is not present'),
    (
        {"service": {**OTHER, "port": 99}},
        "ServicePortError",
        'service/kubernetes in "default" is not listening on port 99',
    ),
    (
        {"service": {**OTHER, "port": 443}},
        "EndpointsNotFound",
        'cannot find endpointslices for service/kubernetes in "default"',
    ),
]


@pytest.mark.parametrize(("spec", "reason", "message"), REASONS)
def test_why_it_is_not_available(server, backend, spec, reason, message):
    before = server.request("GET", f"{SERVICES}/{NAME}")["spec"]
    change(server, spec)
    until(lambda: condition(server) == ("False", reason, message))
    change(server, before)
    until(lambda: condition(server)[0] == "True")


def test_a_certificate_of_another_authority(server, backend):
    before = server.request("GET", f"{SERVICES}/{NAME}")["spec"]["caBundle"]
    change(server, {"caBundle": None})
    until(lambda: condition(server)[0] == "False")
    assert "tls: failed to verify certificate" in condition(server)[2]
    change(server, {"insecureSkipTLSVerify": True})
    until(lambda: condition(server)[0] == "True")
    change(server, {"insecureSkipTLSVerify": False, "caBundle": base64.b64encode(b"nothing").decode()})
    until(lambda: ask(server, "GET", f"{ROOT}/namespaces/n/things")[0] == 500)
    change(server, {"caBundle": before})
    until(lambda: ask(server, "GET", f"{ROOT}/namespaces/n/things")[0] == 200)


DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
ODD = [
    ("/apis", b'{"kind": "APIGroupDiscoveryList", "items": ["x"]}'),
    ("/apis", b'{"kind": "APIGroupDiscoveryList", "items": {"a": 1}}'),
    ("/apis", b'{"kind": "APIGroupDiscoveryList", "items": [{"metadata": 1}]}'),
    (
        "/apis",
        b'{"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "agg.example.com"}, '
        b'"versions": [{"version": "v1", "resources": [{"resource": 1}]}]}]}',
    ),
    (ROOT, b"[]"),
    (ROOT, b"not json"),
    (ROOT, DEEP),
    (ROOT, b'{"kind": "APIResourceList", "resources": [1]}'),
    (ROOT, b'{"kind": "APIResourceList", "resources": [{"name": ""}]}'),
]


@pytest.mark.parametrize(("path", "said"), ODD)
def test_discovery_that_is_none(server, backend, path, said):
    backend.said = {path: said}
    touch(server, str(hash((path, said))))
    until(lambda: discovered(server)["freshness"] == "Stale")
    backend.said = {}
    touch(server, "well")
    until(lambda: discovered(server).get("freshness") == "Current")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/openapi/v2", b'{"paths": [1], "definitions": 2}'),
        ("/openapi/v2", DEEP),
        ("/openapi/v3", b'{"paths": "x"}'),
        (
            "/openapi/v3",
            b'{"paths": {"apis/agg.example.com/v1": {"serverRelativeURL": "https://elsewhere/x"}}}',
        ),
        (f"/openapi/v3{ROOT}", b"\xff"),
    ],
)
def test_openapi_that_is_none(server, backend, path, said):
    backend.said = {path: said}
    asked = len(backend.seen)
    touch(server, str(hash((path, said))))
    until(lambda: any(target.partition("?")[0] == "/openapi/v2" for _, target, *_ in backend.seen[asked:]))
    backend.said = {}
    assert server.request("GET", "/openapi/v2")["swagger"] == "2.0"
    assert json.loads(server.request("GET", "/openapi/v3"))["paths"]
    assert discovered(server)["freshness"] == "Current"
