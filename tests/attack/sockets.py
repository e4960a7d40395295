"""Attacks below HTTP's rules: heads and trailers without end, bodies that never come, readers that do not read."""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import time
from collections.abc import Iterator

from tests.attack.inputs import CONFIG_MAPS
from tests.attack.target import Target

CHUNKED = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
PAYLOADS = {
    "a trailer without end": CHUNKED + b"0\r\nX: " + b"y" * (20 << 20),
    "trailers without end": CHUNKED + b"0\r\n" + b"a:\r\n" * (4 << 20),
    "a chunk extension without end": CHUNKED + b"1;" + b"x" * (20 << 20),
    "fields without end": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a:\r\n" * (1 << 20),
    "a field without end": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * (20 << 20),
    "a target without end": b"GET /" + b"y" * (20 << 20),
    "chunks of a byte": CHUNKED + b"1\r\na\r\n" * (1 << 20),
    "pipelined": b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50_000,
    "another coding": CHUNKED.replace(b"chunked", b"gzip, chunked") + b"1\r\na\r\n" * 1000,
    "zeros before a length": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
    + b"0" * 900_000
    + b"9\r\n\r\n",
    "a body behind websockets": (
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 40\r\n\r\n"
        b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    )
    * 2_000,
    "no HTTP": bytes(range(256)) * 4096,
}


def send(target: Target, data: bytes, seconds: float = 5.0) -> bytes:
    """Sends as much as is taken; what is answered."""
    got = b""
    with socket.create_connection(("127.0.0.1", target.port), timeout=seconds) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(data)
        with contextlib.suppress(OSError):
            while len(got) < 1 << 16 and (block := sock.recv(1 << 16)):
                got += block
    return got


def payloads(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Every payload, whole and cut at a random place."""
    for name, data in PAYLOADS.items():
        if b" 500 " in send(target, data)[:30]:
            yield f"{name}: 500"
        send(target, data[: chance.randrange(1, len(data))], 0.2)


def half_sent_bodies(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Hundreds of bodies that are announced, sent in part, and never ended."""
    head = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2900000\r\n\r\n".encode()
    open_: list[socket.socket] = []
    before = target.resident()
    try:
        for _ in range(300):
            sock = socket.create_connection(("127.0.0.1", target.port), timeout=1)
            open_.append(sock)
            with contextlib.suppress(OSError):
                sock.sendall(head + b" " * 2_500_000)
        grown = target.resident() - before
        if grown > 400:
            yield f"{grown:.0f} MB for bodies that never end"
    finally:
        for sock in open_:
            sock.close()


def large_heads(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Connections that asked with heads of 900 KB, and idle. The first of them warm the allocator."""
    open_: list[socket.socket] = []
    head = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 900_000 + b"\r\n\r\n"
    before = 0.0
    try:
        for number in range(300):
            before = before if number != 20 else target.resident()
            sock = socket.create_connection(("127.0.0.1", target.port), timeout=5)
            open_.append(sock)
            with contextlib.suppress(OSError):
                sock.sendall(head)
                sock.recv(1 << 16)
        grown = target.resident() - before
        if grown > 50:
            yield f"{grown:.0f} MB for connections that idle"
    finally:
        for sock in open_:
            sock.close()


def non_readers(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """A hundred watchers, each with a selector of its own, that read nothing while much is written."""
    open_: list[socket.socket] = []
    before = target.resident()
    try:
        for number in range(100):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", target.port))
            sock.sendall(
                f"GET {CONFIG_MAPS}?watch=1&labelSelector=a!%3D{number} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
            )
            open_.append(sock)
        body = {"metadata": {"name": "noise"}, "data": {"a": "x" * 900_000}}
        headers = {"Content-Type": "application/json"}
        connection = target.connect()
        for number in range(40):
            body["metadata"]["labels"] = {"n": str(number)}  # type: ignore[index]
            method, path = ("POST", CONFIG_MAPS) if number == 0 else ("PUT", f"{CONFIG_MAPS}/noise")
            connection.request(method, path, json.dumps(body).encode(), headers)
            connection.getresponse().read()
        time.sleep(0.5)
        grown = target.resident() - before
        if grown > 500:
            yield f"{grown:.0f} MB for watchers that read nothing"
    finally:
        for sock in open_:
            sock.close()
        target.ask("DELETE", f"{CONFIG_MAPS}/noise")
