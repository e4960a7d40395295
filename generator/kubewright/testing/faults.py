"""Faults on the way to a server, by plan or by seed: what makes a controller's bugs visible.

A ``FaultProxy`` is between clients and an ``ApiServer`` (over plain HTTP) and does to requests what networks, load
balancers and busy servers do. A plan says what happens to which requests:

    proxy.inject("forbidden", seconds=3)              # every request, for three seconds
    proxy.inject("conflict", times=2, when=writes)    # the next two writes
    proxy.random(seed=7, rate=0.2)                    # one request in five, some fault or other
    proxy.break_open("half-open")                     # what is open now: watches, mostly
    proxy.calm()                                      # no more faults

Faults of answers (``forbidden`` …) are Status objects as a server gives them. Each proxied request has a connection
to the server of its own, so no fault reaches a request that it was not meant for.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias

Fault: TypeAlias = Literal[
    "reset",
    "reset-after",
    "truncate",
    "delay",
    "half-open",
    "unauthorized",
    "forbidden",
    "not-found",
    "conflict",
    "gone",
    "gone-event",
    "too-many",
    "internal-error",
    "unavailable",
]
"""``reset``: the connection breaks before the request reaches the server; ``reset-after``: after the server has acted;
``truncate``: within the answer; ``half-open``: nothing comes any more, and nothing ends; ``gone``: 410 as answer;
``gone-event``: 410 as an event of a watch."""

_ANSWERS: Final[dict[Fault, tuple[int, str]]] = {
    "unauthorized": (401, "Unauthorized"),
    "forbidden": (403, "Forbidden"),
    "not-found": (404, "NotFound"),
    "conflict": (409, "Conflict"),
    "gone": (410, "Expired"),
    "too-many": (429, "TooManyRequests"),
    "internal-error": (500, "InternalError"),
    "unavailable": (503, "ServiceUnavailable"),
}
ANYWHERE: Final[tuple[Fault, ...]] = (
    "reset",
    "reset-after",
    "truncate",
    "delay",
    "unauthorized",
    "forbidden",
    "too-many",
    "internal-error",
    "unavailable",
)
"""What may happen to any request; ``random`` adds ``conflict`` to writes and both ``gone`` to lists and watches."""
BLOCK: Final = 65536


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What a plan sees of a request."""

    method: str
    target: str
    content_type: str = ""

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch."""
        return "watch=true" in self.target or "watch=1" in self.target

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method not in ("GET", "HEAD", "OPTIONS")


def writes(request: HttpRequest) -> bool:
    """For ``when``: writes only."""
    return request.is_write


def watches(request: HttpRequest) -> bool:
    """For ``when``: watches only."""
    return request.is_watch


@dataclass(slots=True)
class _Rule:
    fault: Fault
    when: Callable[[HttpRequest], bool]
    until: float
    left: int


@dataclass(slots=True)
class _Stream:
    """An answer under way."""

    client: socket.socket
    request: HttpRequest
    fault: Fault | None = None
    ended: threading.Event = field(default_factory=threading.Event)


class FaultProxy:
    """Passes requests on to the server at ``port()``, with faults. Use it in a ``with`` statement.

    ``log`` holds what was done, in order: pairs of a fault and the request it met; ``requests`` every request, of
    the last 100,000 (``rbac`` makes rules of them).
    """

    def __init__(self, port: Callable[[], int], *, delay_seconds: float = 0.05, retry_after: int = 0) -> None:
        """``delay_seconds`` is how long ``delay`` holds up a request, ``retry_after`` what ``too-many`` and
        ``unavailable`` say in ``Retry-After``."""
        self._target = port
        self._retry_after = retry_after
        self._delay = delay_seconds
        self._lock = threading.Lock()
        self._rules: list[_Rule] = []
        self._random: random.Random | None = None
        self._rate = 0.0
        self._kinds: Sequence[Fault] = ANYWHERE
        self._streams: list[_Stream] = []
        self._sockets: set[socket.socket] = set()
        self._refusing = False
        self.log: list[tuple[Fault, HttpRequest]] = []
        self.requests: deque[HttpRequest] = deque(maxlen=100_000)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._stopped = False
        threading.Thread(target=self._accept, daemon=True, name="kubewright-faults").start()

    @property
    def url(self) -> str:
        """Where clients go."""
        return f"http://127.0.0.1:{self.port}"

    # What happens.

    def inject(
        self,
        fault: Fault,
        *,
        times: int = 1_000_000_000,
        seconds: float = float("inf"),
        when: Callable[[HttpRequest], bool] = lambda request: True,
    ) -> None:
        """Makes the next ``times`` requests that ``when`` picks meet a fault, for that many seconds."""
        with self._lock:
            self._rules.append(_Rule(fault, when, time.monotonic() + seconds, times))

    def random(self, seed: int, rate: float = 0.1, kinds: Sequence[Fault] = ANYWHERE) -> None:
        """Makes a part of all requests meet a fault, chosen by ``seed``."""
        with self._lock:
            self._random, self._rate, self._kinds = random.Random(seed), rate, kinds

    def refuse(self, refusing: bool = True) -> None:
        """Connections are reset as soon as they are made, as those to a port where nobody listens; or no more."""
        self._refusing = refusing
        if refusing:
            self.break_open("reset")

    def break_open(self, fault: Literal["reset", "truncate", "half-open"]) -> None:
        """Every answer under way, of watches mostly, meets a fault now."""
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            stream.fault = fault
            if fault == "reset":
                _reset(stream.client)
            elif fault == "truncate":
                with contextlib.suppress(OSError):
                    stream.client.sendall(b'2000\r\n{"type":"MODIFIED","object":{"metadata":{"na')
                    stream.client.shutdown(socket.SHUT_RDWR)

    def calm(self) -> None:
        """No more faults; half-open connections stay so."""
        with self._lock:
            self._rules, self._random = [], None
        self._refusing = False

    @contextlib.contextmanager
    def during(
        self, fault: Fault, *, when: Callable[[HttpRequest], bool] = lambda request: True
    ) -> Iterator[None]:
        """A fault of every request within a ``with`` block."""
        self.inject(fault, when=when)
        try:
            yield
        finally:
            self.calm()

    def kubeconfig(self, folder: Path) -> Path:
        """Writes a kubeconfig for the proxy into a folder."""
        from apimachinery.server.operate.kubeconfig import kubeconfig, write_kubeconfig

        path = folder / "kubeconfig-faults"
        write_kubeconfig(path, kubeconfig(self.url))
        return path

    def stop(self) -> None:
        """Ends it, and every connection through it."""
        self._stopped = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            left = list(self._sockets)
        for wire in left:
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        self.stop()

    # How.

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            if self._refusing:
                _reset(client)
                continue
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._sockets.add(client)
        try:
            with client, contextlib.suppress(OSError):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while (raw := _read_request(client)) is not None:
                    if not self._answer(client, *raw):
                        break
                client.shutdown(
                    socket.SHUT_RDWR
                )  # close alone waits for the thread that reads the same socket
        finally:
            with self._lock:
                self._sockets.discard(client)

    def _answer(self, client: socket.socket, head: bytes, body: bytes) -> bool:
        """One request; whether another may come on this connection."""
        method, target = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")[:2]
        kind = next(
            (line[13:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-type:")), b""
        )
        request = HttpRequest(method, target, kind.decode("latin-1").strip())
        self.requests.append(request)
        fault = self._choose(request)
        if fault is not None:
            self.log.append((fault, request))
        if fault in _ANSWERS:
            client.sendall(_status(*_ANSWERS[fault], self._retry_after))
            return True
        if fault == "gone-event":
            client.sendall(_gone_event())
            return True
        if fault == "reset":
            _reset(client)
            return False
        if fault == "delay":
            time.sleep(self._delay)
        if fault == "half-open":
            while client.recv(BLOCK):
                pass
            return False
        self._pass(client, request, head, body, fault)
        return False

    def _choose(self, request: HttpRequest) -> Fault | None:
        with self._lock:
            now = time.monotonic()
            self._rules = [rule for rule in self._rules if rule.until > now and rule.left]
            for rule in self._rules:
                if rule.when(request):
                    rule.left -= 1
                    return rule.fault
            if self._random is None or self._random.random() >= self._rate:
                return None
            kinds = list(self._kinds)
            if request.is_write:
                kinds.append("conflict")
            elif request.is_watch:
                kinds += ["gone", "gone-event"]
            return self._random.choice(kinds)

    def _pass(
        self, client: socket.socket, request: HttpRequest, head: bytes, body: bytes, fault: Fault | None
    ) -> None:
        server = socket.create_connection(("127.0.0.1", self._target()))
        stream = _Stream(client, request)
        with self._lock:
            self._streams.append(stream)
            self._sockets.add(server)
        threading.Thread(target=self._follow_client, args=(client, server, stream), daemon=True).start()
        try:
            with server:
                server.sendall(_closing(head) + body)
                first = True
                while data := server.recv(BLOCK):
                    if fault == "reset-after" or stream.fault == "reset":
                        _reset(client)
                        return
                    if fault == "truncate":
                        client.sendall(data[: len(data) // 2] if first else b"")
                        return
                    first = False
                    if stream.fault is None:
                        client.sendall(data)
                while stream.fault == "half-open" and not stream.ended.wait(0.05) and not self._stopped:
                    pass
        finally:
            stream.ended.set()
            with self._lock:
                self._streams.remove(stream)
                self._sockets.discard(server)

    def _follow_client(self, client: socket.socket, server: socket.socket, stream: _Stream) -> None:
        """Ends the request at the server when the client hangs up."""
        with contextlib.suppress(OSError):
            while not stream.ended.is_set() and client.recv(1, socket.MSG_PEEK):
                stream.ended.wait(0.01)
            stream.ended.set()
            server.shutdown(socket.SHUT_RDWR)


def _closing(head: bytes) -> bytes:
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*lines, b"Connection: close"]) + b"\r\n\r\n"


def _read_request(client: socket.socket) -> tuple[bytes, bytes] | None:
    data = b""
    while b"\r\n\r\n" not in data:
        block = client.recv(BLOCK)
        if not block:
            return None
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line[15:] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = int(lengths[0]) if lengths else 0
    while len(body) < length:
        block = client.recv(BLOCK)
        if not block:
            return None
        body += block
    return head, body


def _reset(wire: socket.socket) -> None:
    """Ends a connection by RST instead of FIN."""
    with contextlib.suppress(OSError):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wire.shutdown(socket.SHUT_RD)
    with contextlib.suppress(OSError):
        wire.close()


def _status(code: int, reason: str, retry_after: int) -> bytes:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"injected fault: {reason}",
        "reason": reason,
        "code": code,
    }
    raw = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {code} Fault", "Content-Type: application/json", f"Content-Length: {len(raw)}"]
    if code in (429, 503):
        lines.append(f"Retry-After: {retry_after}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + raw


def _gone_event() -> bytes:
    status = {
        "kind": "Status",
        "status": "Failure",
        "reason": "Expired",
        "code": 410,
        "message": "injected fault",
    }
    line = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(line):x}\r\n".encode() + line + b"\r\n0\r\n\r\n"
