"""Wires that misbehave: a proxy that cuts connections, and a server that says what a script tells it to."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Self


class CuttingProxy:
    """Passes bytes on to a server, and cuts both sides of a connection in the middle of whatever they say.

    Each connection that has asked for a watch is cut after a random number of bytes of its answer, until ``cuts``
    have been made.
    """

    def __init__(self, port: int, *, cuts: int, seed: int = 1) -> None:
        self._target = port
        self._left = cuts
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.made = 0
        self.done = threading.Event()
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            for side in (client, server):
                side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            watching = threading.Event()
            for source, sink, watches in ((client, server, watching), (server, client, None)):
                arguments = (source, sink, watching, watches is not None)
                threading.Thread(target=self._pass, args=arguments, daemon=True).start()

    def _pass(
        self, source: socket.socket, sink: socket.socket, watching: threading.Event, asks: bool
    ) -> None:
        patience = self._random.randint(1, 3000)
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if asks and b"watch=true" in data:
                    watching.set()
                if not asks and watching.is_set() and (patience := patience - len(data)) < 0:
                    if self._may_cut():
                        sink.sendall(data[:patience])
                        break
                sink.sendall(data)
        for side in (source, sink):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
            side.close()

    def _may_cut(self) -> bool:
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            self.made += 1
            if not self._left:
                self.done.set()
            return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread in accept() would keep it open
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # else the thread goes on accepting
        self._socket.close()


Answer = bytes | float | None
"""What a scripted server does with a request: answers, waits so long and goes, or hangs up at once."""


def answer(code: int, body: bytes = b"{}", **headers: str) -> bytes:
    """An HTTP answer; header names have underscores for dashes."""
    lines = [f"HTTP/1.1 {code} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class ScriptedServer:
    """Answers one request after the other as ``script`` says, and keeps what it was asked and when."""

    def __init__(self, script: Sequence[Answer], *, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self._script: Iterator[Answer] = iter(script)
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.requests: list[bytes] = []
        self.times: list[float] = []
        self.broken = threading.Event()
        self.peers: list[object] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, StopIteration), connection:
            if self._tls is not None:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self.peers.append(connection.getpeercert())
            with connection:
                while request := _read_request(connection.recv):
                    self.requests.append(request)
                    self.times.append(time.monotonic())
                    told = next(self._script)
                    if told is None:
                        return
                    if isinstance(told, float):
                        connection.settimeout(told)
                        with contextlib.suppress(TimeoutError):
                            if not connection.recv(1):
                                self.broken.set()
                        return
                    connection.sendall(told)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread in accept() would keep it open
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # else the thread goes on accepting
        self._socket.close()


def _read_request(receive: Callable[[int], bytes]) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        block = receive(65536)
        if not block:
            return b""
        data += block
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    while len(body) < length:
        body += receive(65536)
    return head + b"\r\n\r\n" + body


class SilencingProxy:
    """Passes bytes on to a server; ``silence`` has every connection so far pass nothing more, without closing it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._round = 0
        self._open: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def silence(self) -> None:
        self._round += 1

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._open += [client, server]
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, sink, self._round), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, made_in: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if made_in == self._round:
                    sink.sendall(data)
            if made_in == self._round:
                sink.shutdown(socket.SHUT_WR)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for wire in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
            wire.close()
