"""Nothing ends an informer but ``stop``: refusals after the first state are waited out, and said."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.client.test_reflector import TARGET, AsyncLines, Lines, obj

from apimachinery.client.async_informer import AsyncInformer
from apimachinery.client.async_reflector import AsyncReflector
from apimachinery.client.calls import UNSTRUCTURED, Call
from apimachinery.client.config import ConfigError
from apimachinery.client.endpoint import Request, TransportError
from apimachinery.client.errors import Forbidden, Gone, InternalError, NotFound, Unauthorized
from apimachinery.client.informer import Informer
from apimachinery.client.reflector import Reflector, ReflectorOptions

FAULTS = [
    Unauthorized(401, "Unauthorized", "who are you"),
    Forbidden(403, "Forbidden", "not now"),
    NotFound(404, "NotFound", "the CRD went away"),
    InternalError(500, "InternalError", "a bad moment"),
    ConfigError('exec plugin "login" ended with 1: no network'),
    TransportError("connection reset", sent=True),
    ValueError("what nobody thought of"),
]


class Interrupted:
    """A server of one object, which refuses everything from the second watch on until it is told to recover."""

    def __init__(self, fault: Exception) -> None:
        self.fault = fault
        self.version = 1
        self.failing = False
        self.closed = False
        self.refused = 0

    def check(self) -> None:
        if self.failing:
            self.refused += 1
            raise self.fault

    def run(self, call: Call[Any]) -> Any:
        self.check()
        meta = {"resourceVersion": str(self.version)}
        return call.decode(json.dumps({"metadata": meta, "items": [obj("a", self.version)]}).encode())

    def _stream(self, request: Request) -> Any:
        self.check()
        self.closed = False
        return EndedLines(self.lines(request), self)

    def lines(self, request: Request) -> Iterator[bytes]:
        seen = int(parse_qs(urlsplit(request.target).query)["resourceVersion"][0])
        while not self.failing and not self.closed:
            if self.version != seen:
                seen = self.version
                yield json.dumps({"type": "MODIFIED", "object": obj("a", seen)}).encode()
            else:
                time.sleep(0.001)
                yield b""
        raise TransportError("cut", sent=True)


class EndedLines(Lines):
    def __init__(self, lines: Iterator[bytes], server: Interrupted) -> None:
        super().__init__(line for line in lines if line)
        self.server = server

    def close(self) -> None:
        self.server.closed = True


class AsyncAwakeLines(AsyncLines):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in super().__aiter__():
            if line:
                yield line


class AsyncInterrupted(Interrupted):
    async def run(self, call: Call[Any]) -> Any:
        return super().run(call)

    async def _stream(self, request: Request) -> Any:
        self.check()
        return AsyncAwakeLines(self.lines(request))


def until(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.002)


def names(fault: object) -> str:
    return type(fault).__name__


@pytest.mark.parametrize("fault", FAULTS, ids=names)
def test_a_passing_refusal_is_waited_out(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    server = Interrupted(fault)
    heard: list[Exception] = []
    options = ReflectorOptions(first_wait=0.001, longest_wait=0.01, on_error=heard.append)
    informer = Informer(Reflector(server, TARGET, UNSTRUCTURED, options=options))  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "kubewright.client"), informer:
        informer.wait_until_synced(60)
        until(lambda: informer.healthy)
        server.failing = True
        until(lambda: server.refused > 3)
        assert not informer.healthy
        assert informer.last_error is fault
        assert fault in heard
        assert "things" in caplog.text
        server.failing = False
        server.version = 2
        until(lambda: informer.store.get("a", namespace="ns")["metadata"]["resourceVersion"] == "2")  # type: ignore[index]
        until(lambda: informer.healthy)
        assert informer.last_error is None


@pytest.mark.parametrize("fault", FAULTS, ids=names)
def test_a_passing_refusal_is_waited_out_in_tasks(fault: Exception) -> None:
    server = AsyncInterrupted(fault)
    options = ReflectorOptions(first_wait=0.001, longest_wait=0.01)

    async def story() -> None:
        reflector = AsyncReflector(server, TARGET, UNSTRUCTURED, options=options)  # type: ignore[arg-type]
        async with AsyncInformer(reflector) as informer, asyncio.timeout(60):
            await informer.wait_until_synced(60)
            server.failing = True
            while server.refused < 4:
                await asyncio.sleep(0.002)
            assert not informer.healthy
            assert informer.last_error is fault
            server.failing = False
            server.version = 2
            while informer.store.get("a", namespace="ns")["metadata"]["resourceVersion"] != "2":  # type: ignore[index]
                await asyncio.sleep(0.002)
            while not informer.healthy:
                await asyncio.sleep(0.002)

    asyncio.run(story())


def test_a_patient_informer_waits_for_its_first_state_too() -> None:
    server = Interrupted(Forbidden(403, "Forbidden", "the role comes later"))
    server.failing = True
    options = ReflectorOptions(first_wait=0.001, longest_wait=0.01, patient=True)
    with Informer(Reflector(server, TARGET, UNSTRUCTURED, options=options)) as informer:  # type: ignore[arg-type]
        with pytest.raises(TimeoutError, match=r"not synced within 0\.05 s: .*the role comes later"):
            informer.wait_until_synced(0.05)
        server.failing = False
        informer.wait_until_synced(60)


def test_an_expired_version_is_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    server = Interrupted(Gone(410, "Expired", "too old"))
    heard: list[Exception] = []
    options = ReflectorOptions(first_wait=0.001, longest_wait=0.01, on_error=heard.append)
    with Informer(Reflector(server, TARGET, UNSTRUCTURED, options=options)) as informer:  # type: ignore[arg-type]
        informer.wait_until_synced(60)
        server.failing = True
        until(lambda: server.refused > 0)
        server.failing = False
        until(lambda: informer.healthy)
    assert not [error for error in heard if isinstance(error, Gone)]


def test_an_index_function_or_a_hook_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    server = Interrupted(InternalError(500, "InternalError", "no"))

    def fail(_: object) -> Any:
        raise RuntimeError("mine")

    options = ReflectorOptions(first_wait=0.001, longest_wait=0.01, on_error=fail)
    reflector = Reflector(server, TARGET, UNSTRUCTURED, options=options)  # type: ignore[arg-type]
    with Informer(reflector, indexers={"bad": fail}) as informer:
        informer.wait_until_synced(60)
        server.failing = True
        until(lambda: server.refused > 3)
        server.failing = False
        server.version = 3
        until(lambda: informer.store.get("a", namespace="ns")["metadata"]["resourceVersion"] == "3")  # type: ignore[index]
    assert 'index "bad"' in caplog.text


def test_stop_ends_a_long_pause() -> None:
    server = Interrupted(Forbidden(403, "Forbidden", "no"))
    reflector = Reflector(server, TARGET, UNSTRUCTURED, options=ReflectorOptions(first_wait=60.0))  # type: ignore[arg-type]
    informer = Informer(reflector).start()
    informer.wait_until_synced(60)
    server.failing = True
    until(lambda: informer.last_error is not None)
    stopping = threading.Thread(target=informer.stop)
    stopping.start()
    stopping.join(60)
    assert not stopping.is_alive()
