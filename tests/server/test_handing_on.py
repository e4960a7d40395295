"""Requests that one process hands on to another: what arrives, and what comes back."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from apimachinery.http.handing_on import HandedConnection, HandingOn
from apimachinery.http.messages import BrokenOff, Request, Response, StreamResponse
from apimachinery.http.outgoing import CallFailed
from apimachinery.http.protocol import Connections

CERTIFICATES = (b"\x30\x00\n , \xff", b"\r\n")


class Other:
    """The process that answers: keeps the requests, and counts its connections."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.opened = 0

    async def answer(self, request: Request, oversized: bool) -> Any:
        self.requests.append(request)
        match request.path:
            case "/parts":
                return StreamResponse(200, parts(), "text/plain")
            case "/broken":
                return StreamResponse(200, parts(broken=True), "text/plain")
        headers = (("Warning", '299 - "a"'), ("Warning", '299 - "b"'), ("Cache-Control", "public"))
        return Response(418, request.body * 2, "text/x", headers)

    def timed_out(self, request: Request) -> Response:
        return Response(504)

    def knows(self, request: Request) -> bool:
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


async def parts(*, broken: bool = False) -> AsyncIterator[bytes]:
    for number in range(3):
        yield b"%d" % number * 100_000
        if broken:
            raise BrokenOff("gone")


def told(story: Callable[[HandingOn, Other], Awaitable[None]]) -> None:
    async def run() -> None:
        other = Other()
        connections = Connections(other)

        async def connect() -> socket.socket:
            own, theirs = socket.socketpair()
            own.setblocking(False)
            theirs.setblocking(False)
            other.opened += 1
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: HandedConnection(connections), theirs)
            return own

        handing_on = HandingOn(connect)
        try:
            async with asyncio.timeout(30):
                await story(handing_on, other)
        finally:
            handing_on.close()
            await connections.end(0)

    asyncio.run(run())


def asked(path: str = "/x", **fields: Any) -> Request:
    given = {"headers": {"host": "h"}, "uri": path.encode(), "source": "10.1.2.3"} | fields
    return Request(given.pop("method", "GET"), path, **given)


def test_a_request_arrives_as_it_came():
    headers = {
        "host": "h",
        "authorization": "Bearer t",
        "x-a": "1, 2",
        "x-umlaut": "\xe4\tb",
        "te": "trailers",
    }
    headers |= {
        "connection": "x-gone, close",
        "x-gone": "1",
        "accept-encoding": "gzip",
        "expect": "100-continue",
    }
    path = "/%C3%A4 b"

    async def story(handing_on: HandingOn, other: Other) -> None:
        request = asked(path, method="PUT", headers=headers, body=b"ab\r\n" * 500_000, peer=CERTIFICATES)
        request.uri, request.query_string = b"/%25C3%25A4%20b?q=%2f&q", "q=%2f&q"
        request.repeated = {"x-a": ["1", "2"]}
        answer = await handing_on.answer(request)
        assert isinstance(answer, Response)
        assert (answer.status, answer.content_type, answer.body) == (418, "text/x", request.body * 2)
        assert answer.headers == (
            ("warning", '299 - "a"'),
            ("warning", '299 - "b"'),
            ("cache-control", "public"),
        )
        (came,) = other.requests
        assert (came.method, came.path, came.query_string) == ("PUT", path, "q=%2f&q")
        assert (came.uri, came.body) == (request.uri, request.body)
        assert (came.source, came.peer, came.repeated) == ("10.1.2.3", CERTIFICATES, {"x-a": ["1", "2"]})
        assert came.headers == {
            "host": "h",
            "authorization": "Bearer t",
            "x-a": "1, 2",
            "x-umlaut": "\xe4\tb",
            "content-length": str(len(request.body)),
        }

    told(story)


def test_a_connection_is_of_one_client_alone():
    async def story(handing_on: HandingOn, other: Other) -> None:
        clients: list[dict[str, Any]] = [{}, {"peer": CERTIFICATES}, {"source": "10.9.9.9"}, {"source": ""}]
        for _ in range(3):
            for client in clients:
                await handing_on.answer(asked(**client))
        assert other.opened == len(clients)
        wanted = [(each.get("source", "10.1.2.3"), each.get("peer", ())) for each in clients] * 3
        assert [(each.source, each.peer) for each in other.requests] == wanted
        await asyncio.gather(*(handing_on.answer(asked(body=b"%d" % n, method="PUT")) for n in range(5)))
        assert other.opened == len(clients) + 4

    told(story)


def test_parts_come_as_they_are_sent_and_what_is_not_whole_is_broken_off():
    async def story(handing_on: HandingOn, other: Other) -> None:
        answer = await handing_on.answer(asked("/parts"))
        assert isinstance(answer, StreamResponse)
        assert b"".join([part async for part in answer.parts]) == b"".join([part async for part in parts()])
        answer = await handing_on.answer(asked("/broken"))
        assert isinstance(answer, StreamResponse)
        with pytest.raises(BrokenOff):
            async for _ in answer.parts:
                pass

    told(story)


@pytest.mark.parametrize("value", ["a\r\nx-b: c", "a\nb", "a\rb"])
def test_no_field_can_become_two(value):
    async def story(handing_on: HandingOn, other: Other) -> None:
        with pytest.raises(CallFailed, match="a line end"):
            await handing_on.answer(asked(headers={"host": "h", "x-a": value}))
        assert not other.requests

    told(story)
