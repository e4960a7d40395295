"""HTTP on the socket: framing, limits, endings, and what no client should send."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import select
import socket
import ssl
import sys
import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from apimachinery.access.authentication import KnownTokens
from apimachinery.access.control import AccessOptions
from apimachinery.http import governor
from apimachinery.http.messages import Request, Response, User
from apimachinery.http.protocol import ConnectionLimits, Connections
from apimachinery.http.tls import ensure_certificate, server_context

BASE = "/api/v1/namespaces/ns/configmaps"


PATIENCE_SECONDS = 60.0
"""How long an answer may take beside busy loops: only what fails takes as long."""


def talk(port: int, data: bytes, answers: int = 0) -> bytes:
    """Sends bytes, then reads until the server closes, or so many heads are there."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_SECONDS) as sock:
        sock.sendall(data)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while (not answers or got.count(b"\r\n\r\n") < answers) and (block := sock.recv(1 << 16)):
                got += block
        return got


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
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
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
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
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
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n" % BASE.encode()
        )
        try:
            for _ in range(100):
                sock.sendall(b"x" * 1_000_000)
        except (BrokenPipeError, ConnectionResetError):
            pass
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
    offer = request("GET", "/livez", b"", "Connection: Upgrade", "Upgrade: h2c", close=False)
    status, headers, rest = split(talk(serve().port, offer + request("GET", "/livez")))
    assert (status, "connection" in headers, rest[:14]) == (200, False, b"okHTTP/1.1 200")


def test_an_upgrade_that_is_not_taken_up_keeps_its_body(serve):
    """The parser ends a message at an offer to upgrade; the body behind it must reach the handler all the same."""
    port = serve().port
    offer = (
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
    )
    status, _, body = split(talk(port, request("POST", BASE, make("up", k="v"), *offer)))
    assert (status, json.loads(body)["data"]) == (201, {"k": "v"})
    chunked = make("down", k="w")
    head = request("POST", BASE, b"", "Transfer-Encoding: chunked", *offer, close=False)
    sent = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(chunked), chunked) + request("GET", f"{BASE}/down")
    answers = talk(port, sent).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"201", b"200"]


WEBSOCKET = (
    "Connection: Upgrade",
    "Upgrade: WebSocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


@pytest.mark.parametrize("framing", ["Content-Length: 41", "Transfer-Encoding: chunked"])
def test_the_body_of_an_offer_of_websockets_is_no_request(serve, framing):
    """What somebody else's proxy sent as a body must not be read as another user's request."""
    hidden = request("DELETE", "/a", close=False)
    hidden += b" " * (41 - len(hidden))
    body = hidden if "Length" in framing else b"%x\r\n%b\r\n0\r\n\r\n" % (len(hidden), hidden)
    sent = request("GET", "/livez", b"", framing, *WEBSOCKET, close=False) + body + request("GET", "/readyz")
    answers = talk(serve().port, sent).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200"]


UNUSUAL = [
    ("505", b"GET /livez HTTP/2.0\r\nHost: localhost\r\n\r\n"),
    ("505", b"GET /livez HTTP/2.0\r\n\r\n"),
    ("505", b"GET /livez\r\n\r\n"),
    ("501", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("501", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"),
    ("413", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551615\r\n\r\n"),
    ("413", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 00000000000000000009000000\r\n\r\n"),
    (
        "413",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: %021d\r\n\r\n"
        % 9_000_000,
    ),
    ("417", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nExpect: 200-ok\r\n\r\n"),
    ("200", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n\r\n"),
    ("200", b"GET /livez HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\na"),
    (
        "100",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n" + b"Expect: 100-Continue\r\n" * 2 + b"\r\n",
    ),
]


@pytest.mark.parametrize("number", range(len(UNUSUAL)))
def test_unusual_heads(serve, number):
    status, sent = UNUSUAL[number]
    assert talk(serve().port, sent, 1)[9:12].decode() == status


TRAILERS = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
ENDLESS = {
    "one trailer": TRAILERS + b"X: " + b"y" * (30 << 20),
    "many trailers": TRAILERS + b"a:\r\n" * (3 << 20),
    "many fields": b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a:\r\n" * (1 << 18),
    "a chunk extension": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;"
    + b"x" * (30 << 20),
}


@pytest.mark.parametrize("what", ENDLESS)
def test_what_surrounds_a_body_is_bounded(serve, what):
    """A head of a million fields, and trailers without end, are refused before they cost time."""
    port = serve().port
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        began = time.process_time()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            sock.sendall(ENDLESS[what])
        assert split(read_all(sock))[0] == 431
        assert time.process_time() - began < 2.0  # 24 s of trailers before they were counted
    assert split(talk(port, request("GET", "/livez")))[0] == 200


def test_repeated_fields_are_joined(serve):
    lines = [f"Accept: application/x{number}" for number in range(1900)]
    assert split(talk(serve().port, request("GET", BASE, b"", *lines)))[0] == 200


def test_a_body_of_many_pieces_is_whole(serve):
    port = serve().port
    body = make("pieces", k="v" * 3000)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = request("POST", BASE, b"", "Transfer-Encoding: chunked")
    status, _, answer = split(talk(port, head + chunks))
    assert (status, len(json.loads(answer)["data"]["k"])) == (201, 3000)


def test_large_bodies_are_read_of_those_who_are_known_only(serve):
    """A stranger is answered at the head, or where a chunked body passes the limit, and nothing of it is kept."""
    running = serve(
        access=AccessOptions(
            tokens=[KnownTokens({"t": User("ann")})], modes=("AlwaysAllow",), anonymous=False
        )
    )
    port = running.port
    large = make("a", k="v" * 500_000)
    head = f"POST {BASE} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(large)}\r\n\r\n".encode()
    assert split(talk(port, head))[0] == 401
    chunked = request("POST", BASE, b"", "Transfer-Encoding: chunked", close=False)
    assert split(talk(port, chunked + b"%x\r\n%b" % (len(large), large[:100_000])))[0] == 401
    assert split(talk(port, request("POST", BASE, large, "Authorization: Bearer t")))[0] == 201


def test_a_connection_that_idles_holds_nothing_of_what_was_asked(serve):
    port = serve().port
    sent = request("GET", "/livez", b"", "X: " + "y" * 900_000, close=False)
    bad = b"GET /livez HTTP/9.9\r\nHost: a\r\nX: " + b"y" * 900_000 + b"\r\n\r\n"
    with contextlib.ExitStack() as held:
        tracemalloc.start()
        try:
            for number in range(20):
                sock = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
                sock.sendall(sent if number % 2 else bad)
                assert sock.recv(1 << 16)
            del sent, bad
            assert tracemalloc.get_traced_memory()[0] < 4 << 20
        finally:
            tracemalloc.stop()


def test_all_heads_together_are_bounded(serve, monkeypatch):
    """Of requests that go on, too; these heads come whole, in a piece each."""
    monkeypatch.setattr(governor, "HEAD_BYTES", 500_000)
    running = serve()
    watch = request("GET", f"{BASE}?watch=1", b"", "X: " + "y" * 50_000, close=False)
    with contextlib.ExitStack() as held:
        answers = set()
        for _ in range(30):
            sock = held.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=60))
            sock.sendall(watch)
            answers.add(sock.recv(1 << 16)[9:12])
    assert answers == {b"200", b"429"}


def test_all_bodies_together_are_bounded(serve):
    port = serve(limits=ConnectionLimits(buffered_bytes=4_000_000)).port
    head = f"POST {BASE} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n\r\n".encode()
    half_sent = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(6)]
    for sock in half_sent:
        sock.sendall(head + b" " * 1_500_000)
    # Of what came first some is held, so one of those that follow is refused.
    with contextlib.ExitStack() as held:
        refused = b""
        while not refused:
            sock = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                sock.sendall(head + b" " * 1_500_000)
            ready, _, _ = select.select([sock], [], [], 0.2)
            refused = sock.recv(1 << 16) if ready else b""
    status, headers, _ = split(refused)
    assert (status, headers["retry-after"]) == (429, "1")
    for sock in half_sent:
        sock.close()
    create = request("POST", BASE, make("a", k="v" * 1_500_000))
    ends = time.monotonic() + PATIENCE_SECONDS
    while split(talk(port, create))[0] != 201:  # until the server has seen that they left
        assert time.monotonic() < ends


def is_held(port: int, sock: socket.socket) -> bool:
    """Whether the server has not ended its side of a connection, which Linux calls established (01)."""
    wanted = f":{port:04X}", f":{sock.getsockname()[1]:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, state, *_ = line.split()
        if (local[-5:], remote[-5:]) == wanted:
            return state == "01"
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a connection is asked of Linux")
def test_who_takes_nothing_is_disconnected(serve):
    port = serve(limits=ConnectionLimits(stall_seconds=1.0)).port
    talk(port, request("POST", BASE, make("a", k="v" * 1_500_000)))
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(request("GET", f"{BASE}/a", close=False) * 40)
        ends = time.monotonic() + PATIENCE_SECONDS
        while is_held(port, sock):
            assert time.monotonic() < ends
            time.sleep(0.05)
        got = 0
        with pytest.raises(ConnectionResetError):
            while block := sock.recv(1 << 16):
                got += len(block)
            raise ConnectionResetError
        assert got < 40 * 1_500_000


def test_a_half_sent_request_does_not_hold_up_the_end(serve):
    running = serve(shutdown_seconds=200.0)
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nab")
        time.sleep(0.3)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 100


def test_who_does_not_read_does_not_hold_up_the_end(serve, tmp_path):
    """Over TLS a connection is closed when both have said so; nobody reads a pool of idle ones."""
    running = serve(tls=server_context(*ensure_certificate(tmp_path, "localhost")), shutdown_seconds=200.0)
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with contextlib.ExitStack() as held:
        for sent in (request("GET", "/livez", close=False), b"GET /livez HTTP/1.1\r\nHo"):
            plain = held.enter_context(socket.create_connection(("127.0.0.1", running.port), timeout=60))
            secure = held.enter_context(trusting.wrap_socket(plain))
            secure.sendall(sent)
        time.sleep(0.3)
        began = time.monotonic()
        running.stop()
        assert time.monotonic() - began < 100


def test_who_expects_100_continue_with_a_body_over_the_limit_is_answered_at_once(serve):
    sent = request("POST", BASE, b"", "Content-Length: 9000000", "Expect: 100-continue")
    answer = talk(serve().port, sent)
    assert split(answer)[0] == 413 and b"100 Continue" not in answer


def test_100_continue_does_not_overtake_an_earlier_answer(serve):
    port = serve().port
    body = make("b")
    first = request("POST", BASE, make("a"), close=False)
    second = request("POST", BASE, b"", f"Content-Length: {len(body)}", "Expect: 100-continue")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(first + second)
        got = b""
        while b"100 Continue" not in got:
            got += sock.recv(1 << 16) or pytest.fail("the connection ended")
        assert got.startswith(b"HTTP/1.1 201") and got.endswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        sock.sendall(body)
        assert split(read_all(sock))[0] == 201


def test_targets_and_hosts(serve):
    port = serve().port
    assert split(talk(port, f"GET http://localhost{BASE} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 1))[0] == 200
    foreign = f"GET http://evil.example.com{BASE} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    assert split(talk(port, foreign, 1))[0] == 403
    assert split(talk(port, f"GET {BASE} HTTP/1.1\r\nHost: LocalHost\r\n\r\n".encode(), 1))[0] == 200
    assert split(talk(port, f"GET {BASE} HTTP/1.1\r\n\r\n".encode()))[0] == 400
    twice = f"GET {BASE} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n".encode()
    assert split(talk(port, twice))[0] == 400
    assert split(talk(port, f"GET {BASE} HTTP/1.0\r\n\r\n".encode()))[0] == 200


PAGES = [
    (403, ("Origin: http://evil.example.com",)),
    (403, ("Origin: null",)),
    (403, ("Origin: http://localhost:3000",)),
    (403, ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")),
    (403, ("Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: cors")),
    (403, ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")),
    (403, ("User-Agent: Mozilla/5.0 (old)",)),
    (201, ("User-Agent: kubectl/v1.36",)),
    (201, ("Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1", "Content-Type: application/json")),
    (201, ("Sec-Fetch-Site: none", "Content-Type: application/json")),
]


@pytest.mark.parametrize("number", range(len(PAGES)))
def test_pages_of_others_cannot_write_where_everybody_is_administrator(serve, number):
    """A POST without a type needs no preflight: any page could send it to 127.0.0.1."""
    expected, fields = PAGES[number]
    assert split(talk(serve().port, request("POST", BASE, make("a"), *fields)))[0] == expected


def test_a_link_from_another_page_is_followed(serve):
    sent = request("GET", BASE, b"", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")
    assert split(talk(serve().port, sent))[0] == 200


def test_no_answer_is_guessed_at_by_a_browser(serve):
    assert split(talk(serve().port, request("GET", BASE)))[1]["x-content-type-options"] == "nosniff"


def test_http_1_0_gets_a_watch_without_chunks(serve):
    port = serve().port
    talk(port, request("POST", BASE, make("a")))
    got = talk(port, f"GET {BASE}?watch=1&timeoutSeconds=1 HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    _, headers, body = split(got)
    assert "transfer-encoding" not in headers
    assert json.loads(body)["type"] == "ADDED"


def test_slow_and_idle_connections_are_ended(serve):
    port = serve(limits=ConnectionLimits(request_seconds=0.5, idle_seconds=0.5)).port
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        assert read_all(sock) == b""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
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
    port = serve(
        access=AccessOptions(
            tokens=[KnownTokens({"t": User("ann")})], modes=("AlwaysAllow",), anonymous=False
        )
    ).port
    assert split(talk(port, request("GET", BASE)))[0] == 401
    assert split(talk(port, request("GET", BASE, b"", "Authorization: Bearer x")))[0] == 401
    assert split(talk(port, request("GET", BASE, b"", "Authorization: Bearer t")))[0] == 200
    assert split(talk(port, request("GET", "/readyz")))[0] == 401


def test_a_server_that_ends_closes_its_watches_cleanly(serve):
    running = serve(shutdown_seconds=200.0)
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as sock:
        sock.sendall(request("GET", f"{BASE}?watch=1", close=False))
        time.sleep(0.2)
        began = time.monotonic()
        running.stop()
        assert read_all(sock).endswith(b"0\r\n\r\n")
        assert time.monotonic() - began < 100


def test_too_many_in_flight_are_429(serve):
    import asyncio

    from tests.server.toy_api import ToyApi

    from apimachinery.server.fairness.fairness import ServerLimits

    entered, leave = threading.Event(), threading.Event()

    class Slow(ToyApi):
        async def handle(self, request):
            entered.set()
            while not leave.is_set():
                await asyncio.sleep(0.01)
            return await super().handle(request)

    port = serve(build=Slow, in_flight=ServerLimits(1, 1)).port
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(request("GET", BASE))
        assert entered.wait(PATIENCE_SECONDS)
        status, headers, body = split(talk(port, request("GET", BASE)))
        assert (status, headers["retry-after"], json.loads(body)["reason"]) == (429, "1", "TooManyRequests")
        assert split(talk(port, request("GET", "/livez")))[0] == 200
        leave.set()
        assert split(read_all(sock))[0] == 200


@pytest.mark.parametrize("slices", [1, 3, 1 << 20])
def test_a_long_message_is_the_same_however_it_is_read(serve, monkeypatch, slices):
    """Others get their turn after each slice; what is in slices and what is behind the message stays in order."""
    from apimachinery.http import protocol

    monkeypatch.setattr(protocol, "HEAD_SLICE_BYTES", slices)
    monkeypatch.setattr(protocol, "SLICE_BYTES", slices)
    monkeypatch.setattr(protocol, "TURN_SECONDS", 0.0)
    port = serve().port
    body = make("turns", k="v")
    head = request("POST", BASE, b"", "Transfer-Encoding: chunked", close=False)
    chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    upgrade = request("GET", f"{BASE}/turns", b"", "Connection: Upgrade", "Upgrade: h2c", close=False)
    got = talk(port, head + chunked + upgrade + request("GET", f"{BASE}/turns"))
    assert [part.split(b" ", 1)[0] for part in got.split(b"HTTP/1.1 ")[1:]] == [b"201", b"200", b"200"]
    assert b'"k":"v"' in got.rpartition(b"\r\n\r\n")[2]


def test_thousands_of_requests_in_one_piece_are_answered_in_order(serve):
    port = serve().port
    chance = random.Random(1)
    paths = [chance.choice(("/livez", f"{BASE}/none")) for _ in range(2_000)]
    sent = b"".join(request("GET", path, close=False) for path in paths) + request("GET", "/livez")
    answers = talk(port, sent).split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] == b"200" for answer in answers] == [path == "/livez" for path in paths] + [True]


class Wire(asyncio.Transport):
    """A socket that takes everything."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.sent = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Echo:
    """An application that notes which requests it has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    async def answer(self, request: Request, oversized: bool) -> Response:
        self.begun.append(request.headers["authorization"])
        return Response(200, b"")

    def timed_out(self, request: Request) -> Response:
        return Response(504, b"")

    def knows(self, request: Request) -> bool:
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


def test_of_what_is_sent_ahead_one_request_is_begun_in_a_turn_of_the_loop():
    """Forty connections with thousands of requests made a turn of the loop last 50 ms."""

    async def story() -> None:
        echo = Echo()
        connections = Connections(echo)
        for number in range(40):
            user = "quiet" if number == 39 else "hostile"
            connection = connections()
            connection.connection_made(Wire())
            connection.data_received(request("GET", "/", b"", f"Authorization: {user}", close=False) * 1_000)
            # Nor is all that came in one piece read: each request that waits was work, and is some.
            assert len(connection._waiting) < 100
        await asyncio.sleep(0)
        assert len(echo.begun) == 40  # the first of each was not sent ahead of anything
        for _ in range(200):
            before = len(echo.begun)
            await asyncio.sleep(0)
            assert len(echo.begun) <= before + 1
        ahead = echo.begun[40:]
        assert len(ahead) > 60
        assert ahead[:40].count("quiet") >= 10  # flows take turns

    asyncio.run(story())
