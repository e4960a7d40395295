"""What a request costs the server that nobody has authenticated: CPU time by kind of request and by size.

Each kind is a place of a request that anybody may fill: a path, a query, a header, a body. It is sent without a
credential, or with one that does not hold, at 8 KiB and at the most that the server reads. Bar: 1 ms of CPU time for
8 KiB, and so much for each 8 KiB of more. The system counts CPU time for the server's process, so a busy machine adds
little to it; the least of a few rounds counts.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack.sending import Sender, request
from tests.attack.target import Target

SMALL = 8 << 10
TARGET_BYTES = (256 << 10) - 200
"""Just below what is answered 414..."""
HEAD_BYTES = 900 << 10
"""...and 431."""
BODY_BYTES = 63 << 10
MOST_SECONDS = 0.001
ROUNDS = 3
ROUND_SECONDS = 0.03
"""CPU time that a round takes at least: what the server does besides must not count much."""
MOST_REQUESTS = 100
Build = Callable[[int], bytes]
"""The request of a kind, with so many bytes in its place."""


def _repeated(piece: str, size: int) -> str:
    return piece * (size // len(piece))


def _target(before: str, piece: str, after: str = "") -> Build:
    return lambda size: request(before + _repeated(piece, size) + after)


def _header(before: str, piece: str, path: str = "/api/v1/pods") -> Build:
    return lambda size: request(path, before + _repeated(piece, size))


def _lines(line: str, path: str = "/api/v1/pods") -> Build:
    return lambda size: request(path, *[line] * min(1_900, size // (len(line) + 2)))


def _token(payload: Callable[[int], str]) -> Build:
    def build(size: int) -> bytes:
        parts = [json.dumps({"alg": "RS256", "kid": "a"}), payload(size * 3 // 4 - 200)]
        encoded = [base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts]
        return request("/api/v1/pods", f"Authorization: Bearer {'.'.join(encoded)}.{'A' * 100}")

    return build


def _claims(size: int) -> str:
    return '{"iss":"https://kubernetes.default.svc","a":[' + _repeated("[],", size) + "0]}"


def _body(content_type: str, piece: str) -> Build:
    def build(size: int) -> bytes:
        body = _repeated(piece, size).encode()
        return request("/api/v1/namespaces/a/pods", f"Content-Type: {content_type}", method="POST", body=body)

    return build


LIST = "/api/v1/pods?"
KINDS: dict[str, tuple[int, Build]] = {
    "a path": (TARGET_BYTES, _target("/", "a")),
    "a path of slashes": (TARGET_BYTES, _target("/a", "/")),
    "a path of escapes": (TARGET_BYTES, _target("/", "%01")),
    "a path of quotes": (TARGET_BYTES, _target("/", "%22%3C")),
    "a path in UTF-8": (TARGET_BYTES, _target("/", "%C3%A9")),
    "a path of bytes that are no UTF-8": (TARGET_BYTES, _target("/", "%FF")),
    "names below /api": (TARGET_BYTES, _target("/api/v1/", "a/")),
    "a resource's name": (TARGET_BYTES, _target("/api/v1/namespaces/a/pods/", "%00")),
    "a namespace": (TARGET_BYTES, _target("/api/v1/namespaces/", "%22", "/pods")),
    "a field selector": (TARGET_BYTES, _target(LIST + "fieldSelector=", "a=b,")),
    "a field selector of names": (TARGET_BYTES, _target(LIST + "fieldSelector=", "metadata.name=b,")),
    "a field selector, escaped": (TARGET_BYTES, _target(LIST + "fieldSelector=", "a%3Db%2C")),
    "a field selector of backslashes": (TARGET_BYTES, _target(LIST + "fieldSelector=a=", "%5C%5C")),
    "a label selector": (TARGET_BYTES, _target(LIST + "labelSelector=", "a,", "a")),
    "a label selector of a list": (TARGET_BYTES, _target(LIST + "labelSelector=a+in+(", "b,", "b)")),
    "short selectors in a list": (
        TARGET_BYTES,
        _target(
            LIST + "fieldSelector=" + "metadata.name!=b," * 90 + "&labelSelector=" + "a," * 90 + "a&", "b&"
        ),
    ),
    "many parameters": (TARGET_BYTES, _target(LIST, "a&")),
    "many parameters with values": (TARGET_BYTES, _target(LIST, "a=b&")),
    "many escaped parameters": (TARGET_BYTES, _target(LIST, "%77%61=%62&")),
    "many watches": (TARGET_BYTES, _target(LIST, "watch=1&")),
    "a long watch": (TARGET_BYTES, _target(LIST + "watch=", "%41")),
    "many pretties": (TARGET_BYTES, _target(LIST, "pretty=1&")),
    "many almost selectors": (TARGET_BYTES, _target(LIST, "fieldSelecto&")),
    "checks that are excluded": (TARGET_BYTES, _target("/livez?", "exclude=a&")),
    "other checks that are excluded": (TARGET_BYTES, _target("/readyz?exclude=", "%22")),
    "a check's name": (TARGET_BYTES, _target("/livez/", "%22")),
    "a version's query": (TARGET_BYTES, _target("/version?pretty=true&", "%41&")),
    "a token": (HEAD_BYTES, _header("Authorization: Bearer ", "a")),
    "a token of dots": (HEAD_BYTES, _header("Authorization: Bearer ", "a.")),
    "a token of spaces": (HEAD_BYTES, _header("Authorization: Bearer ", "a ")),
    "a token of claims": (HEAD_BYTES, _token(_claims)),
    "a token of depth": (HEAD_BYTES, _token(lambda size: '{"a":' + "[" * size)),
    "a basic credential": (HEAD_BYTES, _header("Authorization: Basic ", "a")),
    "forms wanted": (HEAD_BYTES, _header("Accept: ", "a/b,")),
    "parameters of a form": (HEAD_BYTES, _header("Accept: application/json", ";a=b", "/version")),
    "forms of a version": (HEAD_BYTES, _header("Accept: ", "a/b;q=0.1,", "/version")),
    "a user agent": (HEAD_BYTES, _header("User-Agent: curl", "é")),
    "forwarded addresses": (HEAD_BYTES, _header("X-Forwarded-For: ", "1,")),
    "forwarded lines": (HEAD_BYTES, _lines("X-Forwarded-For: 10.0.0.1")),
    "somebody to be": (HEAD_BYTES, _header("Impersonate-User: ", '"')),
    "groups to be in": (
        HEAD_BYTES,
        lambda size: request(
            "/api/v1/pods", "Impersonate-User: a", *["Impersonate-Group: a"] * min(1_900, size // 22)
        ),
    ),
    "extras to have": (
        HEAD_BYTES,
        lambda size: request(
            "/api/v1/pods",
            "Impersonate-User: a",
            *[f"Impersonate-Extra-a{n}: %61" for n in range(min(1_900, size // 28))],
        ),
    ),
    "a group without a user": (HEAD_BYTES, _header("Impersonate-Group: ", '"')),
    "a front proxy's user": (HEAD_BYTES, _header("X-Remote-User: ", "a")),
    "protocols of websockets": (
        HEAD_BYTES,
        _header(
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: ",
            "a,",
        ),
    ),
    "an audit id": (HEAD_BYTES, _header("Audit-Id: ", "a")),
    "a trace": (HEAD_BYTES, _header("Traceparent: ", "00-")),
    "states of a trace": (
        HEAD_BYTES,
        _header(f"Traceparent: 00-{'1' * 32}-{'1' * 16}-01\r\nTracestate: ", "a=b,"),
    ),
    "an origin": (HEAD_BYTES, _header("Origin: http://", "a")),
    "cookies": (HEAD_BYTES, _header("Cookie: ", "a=b;")),
    "a content type": (HEAD_BYTES, _header("Content-Type: application/json", ";a=b")),
    "fields": (HEAD_BYTES, _lines("a: b")),
    "fields of many names": (
        HEAD_BYTES,
        lambda size: request("/api/v1/pods", *[f"a{n}: b" for n in range(min(1_900, size // 8))]),
    ),
    "expectations": (HEAD_BYTES, _header("Expect: ", "100-continue,")),
    "connection options": (HEAD_BYTES, _header("Connection: ", "a,")),
    "a body of JSON": (BODY_BYTES, _body("application/json", "[")),
    "a body of YAML": (BODY_BYTES, _body("application/yaml", "- ")),
    "a method": (SMALL, lambda size: b"A" * size + b" / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
}


def cost(target: Target, data: bytes) -> tuple[float, int]:
    """Seconds of CPU time that a request takes of the server, and the status of its answer."""
    sender = Sender(target)
    status = sender.send(data)  # what is made once
    least = float("inf")
    try:
        for _ in range(ROUNDS):
            before, sent = target.running(), 0
            while sent < 10 or (sent < MOST_REQUESTS and target.running() - before < ROUND_SECONDS):
                status = sender.send(data)
                sent += 1
            least = min(least, (target.running() - before) / sent)
    finally:
        sender.close()
    return least, status


def costs(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every kind at both sizes, against a server that authenticates, authorizes and keeps an audit log."""
    del target, chance
    names = {name.strip() for name in options.inputs.split(",") if name.strip()}
    with tempfile.TemporaryDirectory(prefix="kubewright-costs-") as folder:
        policy = Path(folder) / "audit.yaml"
        policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
        audit = ["--audit-policy-file", str(policy), "--audit-log-path", f"{folder}/audit.log"]
        tokens = Path(folder) / "tokens.csv"
        tokens.write_text('secret,admin,1,"system:masters"\n')
        tokens.chmod(0o600)
        own = Target(Path(folder), ["--tls", "off", "--token-file", str(tokens), *audit])
        try:
            for name, (most, build) in KINDS.items():
                if not names or name in names:
                    yield from _kind(own, name, most, build, options)
            if own.tracebacks():
                yield f"tracebacks in the log; the last: {own.last_traceback()}"
        finally:
            own.end()


def _kind(own: Target, name: str, most: int, build: Build, options: argparse.Namespace) -> Iterator[str]:
    for size in dict.fromkeys((SMALL, most)):
        seconds, status = cost(own, build(size))
        bar = MOST_SECONDS * size / SMALL
        if options.verbose:
            print(
                f"    {name:34} {size / 1024:5.0f} KiB  {status}  {seconds * 1000:7.2f} of {bar * 1000:6.1f} ms",
                flush=True,
            )
        if not status or status >= 500:
            yield f"{name}: answered {status}"
        if seconds > bar:
            yield f"{name}: {seconds * 1000:.2f} ms of CPU time for {size} bytes; {bar * 1000:.1f} are allowed"
