"""Requests as bytes, sent one after another and answered, at little cost to who sends them."""

from __future__ import annotations

import contextlib
import socket

from tests.attack.target import Target


def request(target: str, *lines: str, method: str = "GET", body: bytes = b"") -> bytes:
    """A request as it is sent."""
    head = "".join(f"{line}\r\n" for line in lines)
    length = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{method} {target} HTTP/1.1\r\nHost: localhost\r\n{length}{head}\r\n".encode("latin-1") + body


class Sender:
    """Requests one after another, on a connection as long as the server keeps it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket | None = None

    def send(self, data: bytes) -> int:
        """The status of the answer, which was read to its end; 0 where there was none."""
        for _ in range(2):
            sock = self._socket or socket.create_connection(("127.0.0.1", self._target.port), timeout=90)
            reused, self._socket = self._socket is not None, None
            try:
                sock.sendall(data)
            except OSError:
                if reused:
                    continue  # it was closed after the answer before
            answer = self._answer(sock)
            if answer or not reused:
                return answer
        return 0

    def _answer(self, sock: socket.socket) -> int:
        got, length, head = b"", -1, -1
        with contextlib.suppress(OSError):
            while head < 0 or len(got) < head + 4 + length:
                block = sock.recv(1 << 16)
                if not block:
                    break
                got += block
                if head < 0 and (head := got.find(b"\r\n\r\n")) >= 0:
                    fields = got[:head].lower()
                    if b"\r\nconnection: close" not in fields and b"\r\nupgrade:" not in fields:
                        self._socket = sock
                    _, found, rest = fields.partition(b"\r\ncontent-length:")
                    length = int(rest.partition(b"\r\n")[0]) if found else 0
        if self._socket is None:
            sock.close()
        return int(got[9:12]) if got[:5] == b"HTTP/" else 0

    def close(self) -> None:
        """Closes what is open."""
        if self._socket is not None:
            self._socket.close()
