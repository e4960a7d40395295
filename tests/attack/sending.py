"""Requests as bytes, sent one after another and answered, at little cost to who sends them."""

from __future__ import annotations

import contextlib
import socket

from tests.attack.target import Target

BLOCK_BYTES = 1 << 16


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
        """Reads an answer to its end; what is in it goes."""
        got = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in got:
                block = sock.recv(BLOCK_BYTES)
                if not block:
                    break
                got += block
            head, _, body = got.partition(b"\r\n\r\n")
            fields = head.lower()
            if b"\r\nconnection: close" not in fields and b"\r\nupgrade:" not in fields:
                self._socket = sock
            if b"\r\ntransfer-encoding: chunked" in fields:
                _read_chunks(sock, body)
            else:
                _, _, rest = fields.partition(b"\r\ncontent-length:")
                left = int(rest.partition(b"\r\n")[0] or 0) - len(body)
                while left > 0 and (block := sock.recv(BLOCK_BYTES)):
                    left -= len(block)
        if self._socket is None:
            sock.close()
        return int(got[9:12]) if got[:5] == b"HTTP/" else 0

    def close(self) -> None:
        """Closes what is open."""
        if self._socket is not None:
            self._socket.close()


def _read_chunks(sock: socket.socket, tail: bytes) -> None:
    """Reads until the last chunk; no other ends with its bytes, as they hold JSON or lines of text."""
    tail = b"\r\n" + tail
    while not tail.endswith(LAST_CHUNK) and (block := sock.recv(BLOCK_BYTES)):
        tail = tail[-len(LAST_CHUNK) :] + block


LAST_CHUNK = b"\r\n0\r\n\r\n"
