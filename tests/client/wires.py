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


class Listening:
    """A port of this machine; each connection is served on a thread of its own, until the end of the block."""

    def __init__(self, port: int = 0) -> None:
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Takes no more connections."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # a thread in accept() would keep it open
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    """Passes bytes on in one direction; at their end both sides end."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    hang_up(source, sink)


def hang_up(*sides: socket.socket) -> None:
    """Ends connections, whoever else has them."""
    for side in sides:
        with contextlib.suppress(OSError):
            side.shutdown(socket.SHUT_RDWR)
        side.close()


class CuttingProxy(Listening):
    """Passes bytes on to a server, and cuts both sides of a connection in the middle of whatever they say.

    Each connection that has asked for a watch is cut after a random number of bytes of its answer, until ``cuts``
    have been made.
    """

    def __init__(self, port: int, *, cuts: int, seed: int = 1) -> None:
        self._target = port
        self._left = cuts
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.made = 0
        self.done = threading.Event()
        super().__init__()

    def _serve(self, connection: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        for side in (connection, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        watching = threading.Event()
        asking = threading.Thread(target=self._pass, args=(connection, server, watching, True), daemon=True)
        asking.start()
        self._pass(server, connection, watching, False)

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
        hang_up(source, sink)

    def _may_cut(self) -> bool:
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            self.made += 1
            if not self._left:
                self.done.set()
            return True


Answer = bytes | float | None
"""What a scripted server does with a request: answers, waits so long and goes, or hangs up at once."""


def answer(code: int, body: bytes = b"{}", **headers: str) -> bytes:
    """An HTTP answer; header names have underscores for dashes."""
    lines = [f"HTTP/1.1 {code} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class ScriptedServer(Listening):
    """Answers one request after the other as ``script`` says, and keeps what it was asked and when."""

    def __init__(self, script: Sequence[Answer], *, tls: ssl.SSLContext | None = None, port: int = 0) -> None:
        self._script: Iterator[Answer] = iter(script)
        self._tls = tls
        self.requests: list[bytes] = []
        self.times: list[float] = []
        self.broken = threading.Event()
        self.peers: list[object] = []
        super().__init__(port)

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
                            try:
                                ended = not connection.recv(1)
                            except ConnectionResetError:
                                ended = True
                            if ended:
                                self.broken.set()
                        return
                    connection.sendall(told)


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


class SilencingProxy(Listening):
    """Passes bytes on to a server; ``silence`` has every connection so far pass nothing more, without closing it."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._round = 0
        self._open: list[socket.socket] = []
        super().__init__()

    def silence(self) -> None:
        self._round += 1

    def _serve(self, connection: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        self._open += [connection, server]
        made_in = self._round
        threading.Thread(target=self._pass, args=(connection, server, made_in), daemon=True).start()
        self._pass(server, connection, made_in)

    def close(self) -> None:
        """Ends what is open, too."""
        super().close()
        hang_up(*self._open)

    def _pass(self, source: socket.socket, sink: socket.socket, made_in: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if made_in == self._round:
                    sink.sendall(data)
            if made_in == self._round:
                sink.shutdown(socket.SHUT_WR)
