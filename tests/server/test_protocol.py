"""HTTP on the socket: framing, limits, endings, and what no client should send."""

from __future__ import annotations

import gzip
import json
import socket
import time

import pytest

from apimachinery.server.access.authentication import Tokens
from apimachinery.server.http.messages import User
from apimachinery.server.http.protocol import ConnectionLimits

BASE = "/api/v1/namespaces/ns/configmaps"


def talk(port: int, data: bytes, seconds: float = 5.0) -> bytes:
    """Sends bytes, then reads until the server closes or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as sock:
        sock.sendall(data)
        return read_all(sock)


def read_all(sock: socket.socket) -> bytes:
    got = b""
    try:
        while block := sock.recv(1 << 16):
            got += block
    except (TimeoutError, ConnectionResetError):
        pass
    return got


def request(method: str, path: str, body: bytes = b"", *extra: str, close: bool = True) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *extra]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    if close:
        lines.append("Connection: close")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def split(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines), body


def make(name: str, **data: str) -> bytes:
    return json.dumps({"metadata": {"name": name}, "data": data}).encode()


def test_crud_over_one_connection(serve):
    port = serve().port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(request("POST", BASE, make("a"), close=False))
        assert split(sock.recv(1 << 16))[0] == 201
        sock.sendall(request("GET", f"{BASE}/a", close=False))
        status, headers, body = split(sock.recv(1 << 16))
        assert (status, headers["content-type"]) == (200, "application/json")
        assert json.loads(body)["metadata"]["resourceVersion"] == "2"
        sock.sendall(request("DELETE", f"{BASE}/a"))
        assert split(read_all(sock))[0] == 200


def test_pipelined_requests_are_answered_in_order(serve):
    port = serve().port
    names = [f"n{number}" for number in range(20)]
    sent = b"".join(request("POST", BASE, make(name), close=name == names[-1]) for name in names)
    answers = talk(port, sent).split(b"HTTP/1.1 ")[1:]
    assert [json.loads(a.partition(b"\r\n\r\n")[2])["metadata"]["name"] for a in answers] == names


def test_a_request_may_come_byte_by_byte(serve):
    port = serve().port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        for byte in request("POST", BASE, make("a")):
            sock.sendall(bytes([byte]))
        assert split(read_all(sock))[0] == 201


def test_chunked_bodies_and_expect_continue(serve):
    port = serve().port
    body = make("a")
    head = request("POST", BASE, b"", "Transfer-Encoding: chunked", "Expect: 100-continue")
    chunks = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    got = talk(port, head + chunks)
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert b"HTTP/1.1 201 Created" in got


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nabc",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_http_is_400_and_closed(serve, garbage):
    status, headers, _ = split(talk(serve().port, garbage))
    assert (status, headers["connection"]) == (400, "close")


def test_an_endless_head_is_431(serve):
    status, _, _ = split(talk(serve().port, b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * (2 << 20)))
    assert status in (400, 431)


def test_a_body_over_the_limit_is_413_with_or_without_a_length(serve):
    port = serve().port
    body = make("a", k="v" * (4 << 20))
    status, headers, answer = split(talk(port, request("POST", BASE, body, close=False)))
    assert (status, headers["connection"], json.loads(answer)["reason"]) == (
        413,
        "close",
        "RequestEntityTooLarge",
    )
    head = request("POST", BASE, b"", "Transfer-Encoding: chunked", close=False)
    assert split(talk(port, head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)))[0] == 413


def test_a_hundred_megabytes_end_in_bounded_time(serve):
    port = serve().port
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" % BASE.encode()
        )
        try:
            for _ in range(100):
                sock.sendall(b"x" * 1_000_000)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert time.monotonic() - began < 10
    assert split(talk(port, request("GET", "/livez")))[0] == 200


def test_a_bug_is_500_without_a_word_of_the_inside(serve, caplog):
    status, _, body = split(talk(serve().port, request("GET", "/fail")))
    assert (status, json.loads(body)["reason"]) == (500, "InternalError")
    assert b"bug" not in body and b"Traceback" not in body
    assert "RuntimeError: a bug" in caplog.text


def test_large_answers_are_compressed_for_an_exact_gzip_token_only(serve):
    port = serve().port
    talk(port, request("POST", BASE, make("a", k="v" * 200_000)))
    for accepted in ("gzip", "br, gzip"):
        _, headers, body = split(talk(port, request("GET", f"{BASE}/a", b"", f"Accept-Encoding: {accepted}")))
        assert (headers["content-encoding"], headers["vary"]) == ("gzip", "accept-encoding")
        assert json.loads(gzip.decompress(body))["metadata"]["name"] == "a"
    for refused in ("gzip;q=0.5", "deflate", "*"):
        _, headers, _ = split(talk(port, request("GET", f"{BASE}/a", b"", f"Accept-Encoding: {refused}")))
        assert "content-encoding" not in headers


def test_head_has_the_length_and_no_body(serve):
    _, headers, body = split(talk(serve().port, request("HEAD", "/livez")))
    assert (headers["content-length"], body) == ("2", b"")


def test_an_upgrade_is_not_taken_up(serve):
    status, headers, _ = split(
        talk(serve().port, request("GET", "/livez", b"", "Connection: Upgrade", "Upgrade: h2c", close=False))
    )
    assert (status, headers["connection"]) == (200, "close")


def test_http_1_0_gets_a_watch_without_chunks(serve):
    port = serve().port
    talk(port, request("POST", BASE, make("a")))
    got = talk(port, f"GET {BASE}?watch=1&timeoutSeconds=1 HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    _, headers, body = split(got)
    assert "transfer-encoding" not in headers
    assert json.loads(body)["type"] == "ADDED"


def test_slow_and_idle_connections_are_ended(serve):
    port = serve(limits=ConnectionLimits(request_seconds=0.5, idle_seconds=0.5)).port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        assert read_all(sock) == b""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(b"GET /livez HTTP/1.1\r\nHost: loc")
        assert split(read_all(sock))[0] == 408


def test_a_handler_that_takes_too_long_is_504(serve):
    import asyncio

    from tests.server.toy_api import ToyApi

    class Slow(ToyApi):
        async def handle(self, request):
            await asyncio.sleep(60)
            return await super().handle(request)

    port = serve(limits=ConnectionLimits(request_seconds=0.5), build=Slow).port
    status, _, body = split(talk(port, request("GET", BASE)))
    assert (status, json.loads(body)["reason"]) == (504, "Timeout")


def test_a_foreign_host_is_refused_where_everybody_is_administrator(serve):
    port = serve().port
    sent = request("GET", BASE).replace(b"Host: 127.0.0.1", b"Host: evil.example.com")
    assert split(talk(port, sent))[0] == 403
    for good in (b"localhost:1", b"[::1]:7", b"127.0.0.1:80"):
        assert split(talk(port, request("GET", BASE).replace(b"Host: 127.0.0.1", b"Host: " + good)))[0] == 200


def test_tokens(serve):
    port = serve(authenticator=Tokens({"t": User("ann")})).port
    assert split(talk(port, request("GET", BASE)))[0] == 401
    assert split(talk(port, request("GET", BASE, b"", "Authorization: Bearer x")))[0] == 401
    assert split(talk(port, request("GET", BASE, b"", "Authorization: Bearer t")))[0] == 200
    assert split(talk(port, request("GET", "/readyz")))[0] == 200


def test_a_server_that_ends_closes_its_watches_cleanly(serve):
    running = serve()
    with socket.create_connection(("127.0.0.1", running.port), timeout=5) as sock:
        sock.sendall(request("GET", f"{BASE}?watch=1", close=False))
        time.sleep(0.2)
        began = time.monotonic()
        running.stop()
        assert read_all(sock).endswith(b"0\r\n\r\n")
        assert time.monotonic() - began < 3


def test_too_many_in_flight_are_429(serve, monkeypatch):
    import asyncio

    from tests.server.toy_api import ToyApi

    from apimachinery.server import app

    class Slow(ToyApi):
        async def handle(self, request):
            await asyncio.sleep(0.5)
            return await super().handle(request)

    monkeypatch.setattr(app.App.__init__, "__kwdefaults__", {"reads_in_flight": 1, "writes_in_flight": 1})
    port = serve(build=Slow).port
    with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
        sock.sendall(request("GET", BASE))
        time.sleep(0.1)
        status, headers, body = split(talk(port, request("GET", BASE)))
        assert (status, headers["retry-after"], json.loads(body)["reason"]) == (429, "1", "TooManyRequests")
        assert split(talk(port, request("GET", "/livez")))[0] == 200
        assert split(read_all(sock))[0] == 200
