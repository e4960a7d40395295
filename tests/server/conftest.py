"""A toy server on a free port, on its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from tests.server.toy_api import ToyApi

from apimachinery.server.authentication import LoopbackAdmin
from apimachinery.server.process import Server, ServerOptions


class Running:
    """A server on a thread, and its loop."""

    def __init__(self, options: ServerOptions, build=ToyApi, authenticator=None) -> None:
        self.server = Server(options, authenticator or LoopbackAdmin(), build)
        self._ready = threading.Event()
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        try:
            await self.server.start()
        except BaseException as fault:
            self._fault = fault
            self._ready.set()
            return
        self._ready.set()
        await self._end.wait()
        await self.server.stop()

    @property
    def port(self) -> int:
        return self.server.port

    def stop(self) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._end.set)
            self._thread.join(20)


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(**options) -> Running:
        build = options.pop("build", ToyApi)
        authenticator = options.pop("authenticator", None)
        running.append(Running(ServerOptions(**options), build, authenticator))
        return running[-1]

    yield start
    for server in running:
        server.stop()
