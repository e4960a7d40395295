"""services/proxy, pods/proxy and nodes/proxy: whom a name means, what goes there, and what no object may name."""

from __future__ import annotations

import json
import socket
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from apimachinery.server.network.networks import AllowedNetworks, parse_network
from kubewright.testing import ApiServer

ALLOWED = [
    (["10.0.0.0/8"], "10.1.2.3", True),
    (["10.0.0.0/8"], "11.1.2.3", False),
    (["0.0.0.0/0"], "8.8.8.8", True),
    (["0.0.0.0/0", "::/0"], "127.0.0.1", False),
    (["0.0.0.0/0", "::/0"], "169.254.169.254", False),
    (["0.0.0.0/0", "::/0"], "0.0.0.0", False),
    (["0.0.0.0/0", "::/0"], "224.0.0.1", False),
    (["0.0.0.0/0", "::/0"], "::1", False),
    (["0.0.0.0/0", "::/0"], "fe80::1", False),
    (["0.0.0.0/0", "::/0"], "fe80::1%eth0", False),
    (["0.0.0.0/0", "::/0"], "::ffff:127.0.0.1", False),
    (["0.0.0.0/0", "::/0"], "2002:7f00:1::", False),
    (["::/0"], "2001:db8::1", True),
    (["127.0.0.0/8"], "127.0.0.1", True),
    (["127.0.0.2/32"], "127.0.0.1", False),
    (["10.0.0.0/8"], "::ffff:10.0.0.1", True),
    (["0.0.0.0/0"], "localhost", False),
    (["0.0.0.0/0"], "0x7f000001", False),
    (["0.0.0.0/0"], "2130706433", False),
    (["0.0.0.0/0"], "", False),
    ([], "10.0.0.1", False),
]


@pytest.mark.parametrize(("networks", "host", "allowed"), ALLOWED)
def test_which_addresses_are_allowed(networks, host, allowed):
    assert AllowedNetworks([parse_network(text) for text in networks]).allows(host) is allowed


PAGE = b'<html><a href="/x/y">a</a><a class="b" HREF=\'/z\'>b</a><a href="c">c</a><img src="//o/p">"/plain"</html>'


class Shown(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = self.path.partition("?")[0]
        if self.headers.get("Upgrade") and path == "/spdy":
            self.wfile.write(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
            )
            while data := self.connection.recv(4096):
                self.connection.sendall(data.upper())
            self.close_connection = True
            return
        shown = json.dumps([self.command, self.path, dict(self.headers.items()), body.decode()]).encode()
        code, kind, location = 200, "application/json", ""
        if path == "/page":
            kind, shown = "text/html; charset=utf-8", PAGE
        elif path == "/moved":
            code, location = 302, "/else?x=1"
        elif path == "/away":
            code, location = 302, "http://other.example.com/"
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(shown)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(shown)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_OPTIONS = answer  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def there():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shown)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def fill(server, port):
    """A Pod, a Node and a Service that name the address of the test."""
    container = {"name": "c", "image": "i", "ports": [{"containerPort": port}]}
    pods = "/api/v1/namespaces/default/pods"
    server.request("POST", pods, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
    point(server, "127.0.0.1")
    server.request("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
    addresses = [{"type": "Hostname", "address": "localhost"}, {"type": "InternalIP", "address": "127.0.0.1"}]
    status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}
    server.request("PATCH", "/api/v1/nodes/n/status", {"status": status}, "application/merge-patch+json")
    ports = [{"name": "web", "port": 80}, {"name": "other", "port": 81}]
    server.request(
        "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": {"ports": ports}}
    )


def point(server, host):
    status = {"podIP": host, "podIPs": [{"ip": host}]}
    path = "/api/v1/namespaces/default/pods/p/status"
    server.request("PATCH", path, {"status": status}, "application/merge-patch+json")


@pytest.fixture(scope="module")
def server(there):
    with ApiServer(controllers="none", proxy_networks=["127.0.0.0/8"]) as running:
        fill(running, there)
        yield running


def ask(server, method, path, body=None, headers=None):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


POD = "/api/v1/namespaces/default/pods/p/proxy"


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_goes_there(server, method):
    headers = {
        "Authorization": "",
        "X-Remote-User": "evil",
        "Connection": "X-Mine",
        "X-Mine": "1",
        "Content-Type": "text/plain",
        "Accept": "text/html",
    }
    status, _, body = ask(server, method, f"{POD}/a%20b//c/?x=1&y=%2F&z;=2", b"body", headers)
    sent_method, target, sent, sent_body = json.loads(body)
    assert (status, sent_method, target, sent_body) == (200, method, "/a%20b//c/?x=1&y=%2F&z;=2", "body")
    names = {name.lower() for name in sent}
    assert not names & {"authorization", "x-remote-user", "x-mine"}
    assert sent["X-Forwarded-Uri"] == f"{POD}/a%20b//c/"


def test_links_lead_back(server):
    assert ask(server, "GET", f"{POD}/moved")[1]["location"] == f"{POD}/else?x=1"
    assert ask(server, "GET", f"{POD}/away")[1]["location"] == "http://other.example.com/"
    assert ask(server, "GET", f"{POD}?a=b")[:2][1]["location"] == f"{POD}/?a=b"
    page = ask(server, "GET", f"{POD}/page")[2].decode()
    assert page == PAGE.decode().replace('"/x/y"', f'"{POD}/x/y"').replace("'/z'", f"'{POD}/z'")


def test_other_protocols_pass(server):
    offer = f"POST {POD}/spdy HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as sock:
        sock.sendall(offer.encode())
        got = sock.recv(4096)
        sock.sendall(b"hello")
        while not got.endswith(b"HELLO"):
            got += sock.recv(4096) or pytest.fail("the connection ended")
    assert got.startswith(b"HTTP/1.1 101 ")
    status, _, body = ask(
        server, "GET", f"{POD}/x", headers={"Connection": "Upgrade", "Upgrade": "websocket"}
    )
    assert (status, json.loads(body)["message"]) == (500, "invalid upgrade response: status code 200")


def test_names_of_ports(server, there):
    pods, services = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
    assert ask(server, "GET", f"{pods}/http:p:{there}/proxy/x")[0] == 200
    assert ask(server, "GET", f"/api/v1/nodes/n:{there}/proxy/x")[0] == 200
    assert refusal(server, f"{services}/s:web/proxy/x") == (404, 'services "s" not found')
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    made = {
        "metadata": {"name": "s-1", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.9.9.9"]}],
        "ports": [{"name": "web", "port": there}],
    }
    server.request("POST", slices, made)
    where = "address not allowed: 10.9.9.9 is in no network of --proxy-allow-network"
    assert refusal(server, f"{services}/s:web/proxy/x") == (400, where)
    assert refusal(server, f"{services}/s:80/proxy/x") == (400, where)
    assert refusal(server, f"{services}/s:other/proxy/x")[0] == 503
    assert refusal(server, f"{services}/s:82/proxy/x") == (503, 'no service port 82 found for service "s"')


def refusal(server, path):
    status, _, body = ask(server, "GET", path)
    return status, json.loads(body)["message"]


REFUSALS = [
    ("namespaces/default/services/ftp:s:web/proxy/x", 400, 'invalid service request "ftp:s:web"'),
    ("namespaces/default/services/a:b:c:d/proxy/x", 400, 'invalid service request "a:b:c:d"'),
    ("namespaces/default/services/gone:80/proxy/x", 404, 'services "gone" not found'),
    ("namespaces/default/pods/a:b:c:d/proxy", 400, 'invalid pod request "a:b:c:d"'),
    ("namespaces/default/pods/p:99999/proxy/x", 400, '"99999" is no port'),
    ("namespaces/default/pods/p:0000801234/proxy/x", 400, '"0000801234" is no port'),
    ("nodes/gone/proxy/", 404, 'nodes "gone" not found'),
    (
        "namespaces/default/pods/p:1/proxy/x",
        503,
        "error trying to reach service: dial tcp 127.0.0.1:1: connect: connection refused",
    ),
]


@pytest.mark.parametrize(("path", "status", "message"), REFUSALS)
def test_refusals(server, path, status, message):
    assert refusal(server, f"/api/v1/{path}") == (status, message)


def test_https_to_who_does_not_speak_it(server, there):
    path = f"/api/v1/namespaces/default/pods/https:p:{there}/proxy/x"
    said = "error trying to reach service: tls: first record does not look like a TLS handshake"
    assert refusal(server, path) == (503, said)


@pytest.mark.parametrize("host", ["169.254.169.254", "10.0.0.1", "::1"])
def test_an_address_outside_is_refused(server, host):
    point(server, host)
    try:
        said = f"address not allowed: {host} is in no network of --proxy-allow-network"
        assert refusal(server, f"{POD}/x") == (400, said)
    finally:
        point(server, "127.0.0.1")


def test_by_default_nothing_is_reached(there):
    with ApiServer(controllers="none") as server:
        fill(server, there)
        assert refusal(server, f"{POD}/x") == (400, "address not allowed")
        assert refusal(server, "/api/v1/nodes/n/proxy/x")[0] == 503


def test_it_needs_the_right_to(server):
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {"Authorization": f"Bearer {server._users.token('carol', ())}"}
    connection.request("GET", f"{POD}/x", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 403
    assert 'cannot get resource \\"pods/proxy\\"' in answer.read().decode()
    connection.close()
