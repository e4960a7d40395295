"""Hosts with several addresses: one that is silent or refuses does not hold up the others (RFC 8305)."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.test_wire import MAPS, QUICK
from tests.client.wires import ScriptedServer, answer

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncDynamicResource
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.errors import TransportError
from apimachinery.client.resource import DynamicResource
from apimachinery.http import async_dialing, dialing
from apimachinery.http.async_dialing import async_dial
from apimachinery.http.dialing import dial, taking_turns

HOST = "several.example"
MAP = answer(200, b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}')
NEVER = 1e6


@contextmanager
def silent(host: str, port: int) -> Iterator[None]:
    """An address that answers no attempt: its queue of connections is full."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as stack:
        stack.enter_context(socket.create_server((host, port), family=family, backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket(family))
            waiting.setblocking(False)
            waiting.connect_ex((host, port))
        yield


def resolves_to(monkeypatch: pytest.MonkeyPatch, addresses: Sequence[str]) -> None:
    real = socket.getaddrinfo

    def lookup(
        host: Any, port: int, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> list[Any]:
        if host != HOST.encode():
            return real(host, port, family, type, proto, flags)
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror("a name")
        return [found for each in addresses for found in real(each, port, type=socket.SOCK_STREAM)]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)


def get(mode: str, port: int, timeout: float = 600.0) -> object:
    """A call of a client; it has ten minutes, so waiting for a silent address would not end."""
    config = Config(server=f"http://{HOST}:{port}")
    if mode == "sync":
        with Client(config, retry=QUICK, timeout=timeout) as client:
            return DynamicResource(client, MAPS).get("a")

    async def story() -> object:
        async with AsyncClient(config, retry=QUICK, timeout=timeout) as client:
            return await AsyncDynamicResource(client, MAPS).get("a")

    return asyncio.run(story())


def connect(mode: str, port: int, seconds: float) -> str:
    """Connects, and returns the address of the other side."""
    sock = dial(HOST, port, seconds) if mode == "sync" else asyncio.run(async_dial(HOST, port, seconds))
    with sock:
        return str(sock.getpeername()[0])


@pytest.fixture(autouse=True)
def long_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apimachinery.client.links.CONNECT_SECONDS", 600.0)
    monkeypatch.setattr("apimachinery.client.async_links.CONNECT_SECONDS", 600.0)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("first", ["127.0.0.2", "::1"])
def test_a_silent_address_does_not_hold_up_the_next(
    mode: str, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer([MAP]) as server, silent(first, server.port):
        resolves_to(monkeypatch, [first, "127.0.0.1"])
        assert get(mode, server.port)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_an_address_that_refuses_is_followed_at_once(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "HEAD_START", NEVER)
    monkeypatch.setattr(async_dialing, "HEAD_START", NEVER)
    with socket.create_server(("127.0.0.1", 0)) as server:
        resolves_to(monkeypatch, ["127.0.0.2", "127.0.0.3", "127.0.0.1", "127.0.0.4"])
        assert connect(mode, server.getsockname()[1], NEVER) == "127.0.0.1"


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_host_refuses_when_each_address_does(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    resolves_to(monkeypatch, ["127.0.0.1", "::1", "127.0.0.2"])
    with pytest.raises(ConnectionRefusedError):
        connect(mode, port, 600.0)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_silent_addresses_alone_end_with_the_time_of_the_call(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with silent("127.0.0.2", port), silent("127.0.0.3", port):
        resolves_to(monkeypatch, ["127.0.0.2", "127.0.0.3"])
        with pytest.raises(TransportError) as late:
            get(mode, port, 0.1)
        assert late.value.timed_out and not late.value.sent


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("host", ["a" * 70, "ü" * 70, "a..b"])
def test_what_is_no_host_name_is_a_failed_connection(mode: str, host: str) -> None:
    with pytest.raises(OSError, match=r"a|ü"):
        dial(host, 80, 5.0) if mode == "sync" else asyncio.run(async_dial(host, 80, 5.0))


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["127.0.0.2", "127.0.0.1", "127.0.0.3"]])
def test_no_socket_is_lost_wherever_it_is_cancelled(
    addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[socket.socket] = []

    def open_socket(address: Any) -> socket.socket:
        opened.append(dialing.socket_for(address))
        return opened[-1]

    async def story(port: int, steps: int) -> socket.socket | None:
        dialled = asyncio.ensure_future(async_dial(addresses[0] if len(addresses) == 1 else HOST, port, 60.0))
        for _ in range(steps):
            await asyncio.sleep(0)
        dialled.cancel()
        [made] = await asyncio.gather(dialled, return_exceptions=True)
        return made if isinstance(made, socket.socket) else None

    monkeypatch.setattr(async_dialing, "socket_for", open_socket)
    resolves_to(monkeypatch, addresses)
    outcomes = set()
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        for steps in range(40):
            made = asyncio.run(story(server.getsockname()[1], steps))
            assert [each for each in opened if each.fileno() >= 0 and each is not made] == []
            outcomes.add(made is not None)
            if made is not None:
                made.close()
    assert False in outcomes
    assert (
        True in outcomes or len(addresses) > 1
    )  # looking up a name takes a thread, and so any number of steps


@given(st.lists(st.tuples(st.sampled_from([socket.AF_INET, socket.AF_INET6]), st.integers())))
def test_families_take_turns(addresses: list[tuple[Any, ...]]) -> None:
    tried = taking_turns(addresses)
    assert tried[:1] == addresses[:1]
    for family in (socket.AF_INET, socket.AF_INET6):
        assert [each for each in tried if each[0] == family] == [e for e in addresses if e[0] == family]
    for number, (one, two) in enumerate(itertools.pairwise(tried)):
        if one[0] == two[0]:
            assert all(each[0] == one[0] for each in tried[number:])
