"""Parts start in the order of their table and stop in reverse, whichever of them fails."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.server.toy_api import ToyApi

from apimachinery.access.control import OPEN_TO_LOOPBACK
from apimachinery.meta.errors import ApiError
from apimachinery.queue.observing import Observer
from apimachinery.server.assembly.parts import Assembly, Background, Bootstrap, Looping, ServerPart
from apimachinery.server.process import Server, ServerOptions
from apimachinery.storage.interface import StorageClosed
from apimachinery.storage.memory import MemoryStorage


@dataclass
class Recorded:
    """A part that notes what is called, and raises where a row says so."""

    name: str
    seen: list[str]
    fails: tuple[str, ...] = field(default=())

    async def start(self) -> None:
        await self._do("start")

    async def stop(self) -> None:
        await self._do("stop")

    async def _do(self, what: str) -> None:
        await asyncio.sleep(0)
        self.seen.append(f"{what} {self.name}")
        if f"{what} {self.name}" in self.fails:
            raise RuntimeError(f"{what} {self.name}")


STARTED = ["start a", "start b", "start c"]
ROWS: list[tuple[tuple[str, ...], str, list[str]]] = [
    ((), "", [*STARTED, "stop c", "stop b", "stop a"]),
    (("start a",), "start a", ["start a"]),
    (("start b",), "start b", ["start a", "start b", "stop a"]),
    (("start c",), "start c", [*STARTED, "stop b", "stop a"]),
    (("start c", "stop b"), "start c", [*STARTED, "stop b", "stop a"]),
    (("stop c",), "", [*STARTED, "stop c", "stop b", "stop a"]),
    (("stop c", "stop b", "stop a"), "", [*STARTED, "stop c", "stop b", "stop a"]),
]


@pytest.mark.parametrize(("fails", "raised", "wanted"), ROWS, ids=lambda each: str(each))
@pytest.mark.parametrize("nested", [False, True])
def test_order(fails, raised, wanted, nested, caplog) -> None:
    seen: list[str] = []
    made: list[str] = []

    def make(name: str) -> ServerPart:
        made.append(name)
        return Recorded(name, seen, fails)

    a, b, c = (lambda name=name: make(name) for name in "abc")
    table: list[Any] = [a, lambda: Assembly([b, c])] if nested else [a, lambda: None, b, c]
    assembly = Assembly(table)

    async def run() -> None:
        if raised:
            with pytest.raises(RuntimeError, match=raised):
                await assembly.start()
        else:
            await assembly.start()
        await assembly.stop()
        await assembly.stop()

    asyncio.run(run())
    assert seen == wanted
    # A part is made right before it starts.
    assert made == [entry[-1] for entry in wanted if entry.startswith("start")]
    stops = [entry for entry in wanted if entry in fails and entry.startswith("stop")]
    logged = [str(record.exc_info[1]) for record in caplog.records if record.exc_info]
    assert logged == stops


def test_a_cancelled_start_stops_what_was_started() -> None:
    seen: list[str] = []

    class Waits(Recorded):
        async def start(self) -> None:
            await asyncio.Event().wait()

    async def run() -> None:
        assembly = Assembly([lambda: Recorded("a", seen), lambda: Waits("b", seen)])
        task = asyncio.create_task(assembly.start())
        while not seen:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert seen == ["start a", "stop a"]


def test_a_background_ends_when_it_stops() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            seen.append("works")
            await asyncio.Event().wait()
        finally:
            seen.append("ended")

    async def run() -> None:
        part = Background(work)
        await part.start()
        await asyncio.sleep(0)
        await part.stop()

    asyncio.run(run())
    assert seen == ["works", "ended"]


class Looped:
    """A controller that notes its start and stop."""

    def __init__(self, seen: list[str]) -> None:
        self._seen = seen

    def start(self, observer: Observer = Observer()) -> None:  # noqa: B008
        self._seen.append("start")

    async def stop(self) -> None:
        self._seen.append("stop")


PREPARED: list[tuple[Exception | None, bool, list[str]]] = [
    (None, False, ["start", "stop"]),
    (ApiError(403, "Forbidden", "no"), False, ["start", "stop"]),
    (ValueError("a stored object"), False, ["start", "stop"]),
    (StorageClosed("gone"), True, ["stop"]),
]


@pytest.mark.parametrize(("fault", "raises", "wanted"), PREPARED, ids=lambda each: type(each).__name__)
def test_only_storage_keeps_a_controller_from_starting(fault, raises, wanted) -> None:
    seen: list[str] = []

    async def prepare() -> None:
        if fault is not None:
            raise fault

    async def run(part: ServerPart) -> None:
        assembly = Assembly([lambda: part])
        if raises:
            with pytest.raises(type(fault)):
                await assembly.start()
        else:
            await assembly.start()
        await assembly.stop()

    asyncio.run(run(Looping(Looped(seen), Observer(), prepare)))
    assert seen == wanted
    asyncio.run(run(Bootstrap(prepare)))


def test_a_server_that_cannot_listen_leaves_nothing_open(monkeypatch) -> None:
    seen: list[str] = []
    close = MemoryStorage.close

    class Api(ToyApi):
        async def start(self) -> None:
            seen.append("start api")

        async def stop(self) -> None:
            seen.append("stop api")

    async def closes(self: MemoryStorage) -> None:
        seen.append("close storage")
        await close(self)

    monkeypatch.setattr(MemoryStorage, "close", closes)

    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = Server(ServerOptions(port=taken.getsockname()[1]), OPEN_TO_LOOPBACK, Api)
            with pytest.raises(OSError, match="in use"):
                await server.start()
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())
    assert seen == ["start api", "stop api", "close storage"]
