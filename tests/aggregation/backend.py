"""An aggregated server of a few lines, over TLS, that shows what it is asked."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from apimachinery.http.tls import ensure_certificate, server_context

GROUP, VERSION = "agg.example.com", "v1"
ROOT = f"/apis/{GROUP}/{VERSION}"
NAMESPACE, SERVICE = "aggregate", "backend"
RESOURCES = [
    {
        "name": "things",
        "singularName": "thing",
        "namespaced": True,
        "kind": "Thing",
        "verbs": ["get", "list", "watch"],
        "shortNames": ["tg"],
    },
    {"name": "things/status", "singularName": "", "namespaced": True, "kind": "Thing", "verbs": ["get"]},
]
V2 = {
    "swagger": "2.0",
    "paths": {f"{ROOT}/things": {"get": {"responses": {"200": {"schema": {"$ref": "#/definitions/Thing"}}}}}},
    "definitions": {
        "Thing": {
            "properties": {"metadata": {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}},
            "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": "Thing"}],
        },
        "io.k8s.api.core.v1.Pod": {"type": "string"},
        "unused": {"type": "string"},
    },
}
V3 = {"openapi": "3.0.0", "paths": {f"{ROOT}/things": {}}, "components": {"schemas": {}}}


class Backend:
    """Use it in a ``with``; ``seen`` are the requests it got (method, target, headers, body, client certificate)."""

    def __init__(self, folder: Path, authority: Path | None = None) -> None:
        self.seen: list[tuple[str, str, list[tuple[str, str]], bytes, bool]] = []
        self.away = False
        self.said: dict[str, bytes] = {}
        """Bytes that a path answers in place of what it should."""
        self.left = threading.Event()
        """Set when the reader of an endless answer has gone."""
        certificate, key = ensure_certificate(folder, f"{SERVICE}.{NAMESPACE}.svc")
        self.ca = certificate.read_bytes()
        context = server_context(certificate, key, [authority] if authority else [])
        backend = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                assert isinstance(self.connection, ssl.SSLSocket)
                shown = bool(self.connection.getpeercert())
                backend.seen.append((self.command, self.path, list(self.headers.items()), body, shown))
                backend.reply(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port

    def __enter__(self) -> Backend:
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        if self.away:
            return send(handler, 503, b"away", "text/plain")
        if handler.headers.get("Upgrade") == "websocket" and path.endswith("/echo"):
            return upgrade(handler)
        if path == f"{ROOT}/stream":
            return stream(handler)
        if path == f"{ROOT}/endless":
            return endless(handler, self)
        if path == f"{ROOT}/redirect":
            return send(handler, 302, b"", "text/plain", ("Location", "https://elsewhere.example.com/"))
        if path == f"{ROOT}/cut":
            return cut(handler)
        if path == f"{ROOT}/large":
            return send(handler, 200, b"x" * 300_000, "text/plain")
        if path.startswith(f"{ROOT}/"):
            return send(handler, 200, json.dumps(dict(handler.headers.items())).encode(), "application/json")
        documents = {
            ROOT: {"kind": "APIResourceList", "groupVersion": f"{GROUP}/{VERSION}", "resources": RESOURCES},
            "/openapi/v3": {"paths": {ROOT[1:]: {"serverRelativeURL": f"/openapi/v3{ROOT}?hash=1"}}},
            f"/openapi/v3{ROOT}": V3,
            "/openapi/v2": V2,
        }
        if path in self.said:
            return send(handler, 200, self.said[path], "application/json")
        if path not in documents:
            return send(handler, 404, b"404 page not found\n", "text/plain")
        body = json.dumps(documents[path]).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()}"'
        if handler.headers.get("If-None-Match") == etag:
            return send(handler, 304, b"", "application/json", ("ETag", etag))
        return send(handler, 200, body, "application/json", ("ETag", etag))


def send(handler: BaseHTTPRequestHandler, code: int, body: bytes, kind: str, *more: tuple[str, str]) -> None:
    handler.send_response(code)
    for name, value in (
        ("Content-Type", kind),
        ("Content-Length", str(len(body))),
        ("Keep-Alive", "timeout=5"),
        ("X-Own", "yes"),
        *more,
    ):
        handler.send_header(name, value)
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def stream(handler: BaseHTTPRequestHandler) -> None:
    """Three events as a watch sends them, then the end."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json;stream=watch")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for number in range(3):
        part = json.dumps({"type": "ADDED", "number": number}).encode() + b"\n"
        handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        handler.wfile.flush()
    handler.wfile.write(b"0\r\n\r\n")


def endless(handler: BaseHTTPRequestHandler, backend: Backend) -> None:
    """A watch without events, until the client goes."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"5\r\nhello\r\n")
    handler.wfile.flush()
    try:
        handler.connection.settimeout(10)
        if handler.connection.recv(1) == b"":
            backend.left.set()
    except OSError:
        backend.left.set()
    handler.close_connection = True


def cut(handler: BaseHTTPRequestHandler) -> None:
    """An answer that breaks off."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"5\r\nhello\r\n")
    handler.wfile.flush()
    handler.close_connection = True


def upgrade(handler: BaseHTTPRequestHandler) -> None:
    """Agrees to the websocket, then sends back the bytes that come, as they are."""
    accept = hashlib.sha1(
        handler.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    )
    handler.wfile.write(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + base64.b64encode(accept.digest()) + b"\r\n\r\n"
    )
    handler.wfile.flush()
    while data := handler.connection.recv(4096):
        handler.connection.sendall(data)
    handler.close_connection = True
