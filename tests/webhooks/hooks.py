"""A server of webhooks for tests, good ones and bad ones: what a path says is what it does.

Over real TLS on a loopback port, at the level of sockets, so that it can also die within an answer. ``calls`` keeps
what came, for tests to look at.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from apimachinery.http.tls import ensure_certificate

Json = dict[str, Any]
Answer = Callable[[Json], Any]
"""From a review to the answer: a JSON value, bytes as they are, or a whole HTTP answer as ``Raw``."""


class Raw(bytes):
    """Bytes to send as they are; the connection ends after them."""


class Hooks:
    """Serves ``answers`` by path until it is closed."""

    def __init__(self, answers: dict[str, Answer], port: int = 0) -> None:
        self.answers = answers
        self.calls: list[tuple[str, Json]] = []
        self.connections = 0
        self._open: list[socket.socket] = []
        self._folder = tempfile.TemporaryDirectory(prefix="hooks-")
        certificate, key = ensure_certificate(Path(self._folder.name), "127.0.0.1")
        self.ca = base64.b64encode(certificate.read_bytes()).decode()
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}/{path}"

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # This alone ends a thread that waits in accept.
        self._socket.close()
        for connection in self._open:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError):
            try:
                self._answer(connection)
            finally:
                connection.close()

    def _answer(self, connection: socket.socket) -> None:
        with self._context.wrap_socket(connection, server_side=True) as secure:
            self.connections += 1
            self._open.append(secure)
            file = secure.makefile("rb")
            while line := file.readline():
                _, target, _ = line.decode().split(" ")
                headers: dict[str, str] = {}
                while (head := file.readline().strip()) != b"":
                    name, _, value = head.decode().partition(":")
                    headers[name.strip().lower()] = value.strip()
                body = file.read(int(headers.get("content-length", "0")))
                review = json.loads(body)
                parts = urlsplit(target)
                self.calls.append((target, review))
                answer = self.answers[parts.path.strip("/")]
                review["_query"] = parse_qs(parts.query)
                review["_headers"] = headers
                reply = answer(review)
                if isinstance(reply, Raw):
                    secure.sendall(reply)
                    secure.shutdown(socket.SHUT_RDWR)
                    return
                secure.sendall(whole(200, reply))


def whole(status: int, reply: Any, content_type: str = "application/json") -> bytes:
    data = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
    return (
        f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(data)}\r\n\r\n".encode()
        + data
    )


def reviewed(review: Json, **response: Any) -> Json:
    """The answer to a review, by default one that allows."""
    return {
        "apiVersion": review["apiVersion"],
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": True, **response},
    }


def patching(*operations: Json, **more: Any) -> Answer:
    data = base64.b64encode(json.dumps(list(operations)).encode()).decode()
    return lambda review: reviewed(review, **{"patchType": "JSONPatch", "patch": data, **more})


def slow(seconds: float) -> Answer:
    def answer(review: Json) -> Json:
        time.sleep(seconds)
        return reviewed(review)

    return answer


def without(review: Json, *names: str) -> Json:
    shown = reviewed(review)
    for name in names:
        shown.pop(name)
    return shown


def denying(**status: Any) -> Answer:
    return lambda review: reviewed(review, allowed=False, **({"status": status} if status else {}))


ADD = {"op": "add", "path": "/data/added", "value": "1"}

ANSWERS: dict[str, Answer] = {
    "allow": reviewed,
    "warn": lambda review: reviewed(review, warnings=["careful", "x" * 300, "two\nlines", ""]),
    "annotate": lambda review: reviewed(review, auditAnnotations={"key": "value", "other/key": "v"}),
    "deny": denying(),
    "deny-message": denying(message="not today"),
    "deny-code": denying(message="teapot", code=418, reason="Odd"),
    "deny-reason": denying(reason="NoReason"),
    "deny-low-code": denying(message="m", code=200),
    "deny-details": denying(message="m", code=409, reason="Conflict", details={"causes": [{"message": "c"}]}),
    "allow-message": lambda review: reviewed(review, status={"message": "fine"}),
    "slow": slow(3.0),
    "wrong-uid": lambda review: reviewed(review, uid="other"),
    "no-uid": lambda review: {**reviewed(review), "response": {"allowed": True}},
    "no-response": lambda review: without(review, "response"),
    "no-kind": lambda review: without(review, "kind"),
    "no-version": lambda review: without(review, "apiVersion"),
    "no-type": lambda review: without(review, "apiVersion", "kind"),
    "wrong-kind": lambda review: {**reviewed(review), "kind": "Review"},
    "wrong-version": lambda review: {**reviewed(review), "apiVersion": "admission.k8s.io/v1beta1"},
    "odd-version": lambda review: {**reviewed(review), "apiVersion": "admission.k8s.io/v3"},
    "empty": lambda review: b"",
    "array": lambda review: [],
    "no-json": lambda review: b"hello",
    "half-json": lambda review: b'{"kind":',
    "wrong-type": lambda review: reviewed(review, allowed="yes"),
    "code-500": lambda review: Raw(whole(500, b"oh no")),
    "code-404": lambda review: Raw(whole(404, b"404 page not found\n", "text/plain")),
    "code-400-status": lambda review: Raw(
        whole(
            400,
            {
                "kind": "Status",
                "apiVersion": "v1",
                "status": "Failure",
                "message": "bad you",
                "reason": "BadRequest",
            },
        )
    ),
    "code-204": lambda review: Raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "code-302": lambda review: Raw(b"HTTP/1.1 302 Found\r\nlocation: /allow\r\ncontent-length: 0\r\n\r\n"),
    "code-429": lambda review: Raw(b"HTTP/1.1 429 Busy\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n"),
    "dies": lambda review: Raw(b""),
    "dies-in-body": lambda review: Raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{"),
    "dies-in-head": lambda review: Raw(b"HTTP/1.1 200 OK\r\ncontent-"),
    "no-http": lambda review: Raw(b"hello\r\n\r\n"),
    "huge": lambda review: reviewed(review, status={"message": "x" * (4 << 20)}),
    "patch": patching(ADD),
    "patch-denied": patching(ADD, allowed=False),
    "patch-no-type": patching(ADD, patchType=None),
    "patch-odd-type": patching(ADD, patchType="MergePatch"),
    "patch-not-base64": lambda review: reviewed(review, patchType="JSONPatch", patch="!!"),
    "patch-not-json": lambda review: reviewed(review, patchType="JSONPatch", patch="aGVsbG8="),
    "patch-object": lambda review: reviewed(review, patchType="JSONPatch", patch="e30="),
    "patch-type-alone": lambda review: reviewed(review, patchType="JSONPatch"),
    "patch-empty-list": patching(),
    "patch-missing": patching({"op": "remove", "path": "/data/missing"}),
    "patch-deep": patching({"op": "add", "path": "/nothing/there", "value": 1}),
    "patch-replace": patching({"op": "replace", "path": "/spec", "value": 1}),
    "patch-test": patching({"op": "test", "path": "/data/x", "value": "other"}, ADD),
    "patch-op": patching({"op": "hope", "path": "/data/x"}),
    "patch-wrong-type": patching({"op": "add", "path": "/data", "value": 5}),
    "patch-wrong-item": patching({"op": "add", "path": "/data/added", "value": 5}),
    "patch-unknown": patching({"op": "add", "path": "/unknown", "value": {"a": 1}}),
    "patch-kind": patching({"op": "replace", "path": "/kind", "value": "Secret"}),
    "patch-version": patching({"op": "replace", "path": "/apiVersion", "value": "v2"}),
    "patch-name": patching({"op": "replace", "path": "/metadata/name", "value": "renamed"}),
    "patch-namespace": patching({"op": "replace", "path": "/metadata/namespace", "value": "default"}),
    "patch-invalid": patching({"op": "add", "path": "/data/bad key", "value": "v"}),
    "patch-label": patching({"op": "add", "path": "/metadata/labels", "value": {"a b": "c"}}),
    "patch-managed": patching({"op": "add", "path": "/metadata/managedFields", "value": [{"manager": "x"}]}),
    "patch-whole": patching({"op": "replace", "path": "", "value": {"data": {"only": "1"}}}),
    "patch-null": patching({"op": "add", "path": "/data", "value": None}),
    "patch-uid": patching({"op": "add", "path": "/metadata/uid", "value": "u"}),
    "mutating-v": patching(ADD, apiVersion="x"),
}
