"""Those who use the cluster while it suffers: writers, watchers, and the wires that are cut."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import time
from collections.abc import Sequence

import aiohttp
from tests.cluster.history import Operation, Read, Refused, Write

MAPS = "/api/v1/namespaces/default/configmaps"
KEYS = 16
_EVENT = re.compile(rb'^\{"type":"([A-Z]+)".*?"metadata":\{(?:"name":"([^"]*)")?.*?"resourceVersion":"(\d+)"')


class Wires:
    """A proxy on loopback for each member, between one server and it; can be cut and healed."""

    def __init__(self, targets: Sequence[int]) -> None:
        self._targets = targets
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._cut: set[int] = set()
        self.ports: list[int] = []

    async def start(self) -> None:
        """Listens."""
        for number, target in enumerate(self._targets):
            server = await asyncio.start_server(
                lambda reader, writer, number=number, target=target: self._serve(
                    number, target, reader, writer
                ),
                "127.0.0.1",
                0,
            )
            self._servers.append(server)
            self.ports.append(server.sockets[0].getsockname()[1])

    def cut(self, numbers: Sequence[int]) -> None:
        """Nothing passes to these members any more, in either direction; connections stay open, as where a cable is
        pulled."""
        self._cut |= set(numbers)

    def heal(self) -> None:
        """Connections of before are lost; new ones pass."""
        self._cut.clear()
        for writer in list(self._writers):
            writer.close()

    async def stop(self) -> None:
        """Ends."""
        for server in self._servers:
            server.close()
        self.heal()

    async def _serve(
        self, number: int, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, back}
        await asyncio.gather(self._pump(number, reader, back), self._pump(number, there, writer))
        self._writers -= {writer, back}

    async def _pump(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                while number in self._cut:
                    await asyncio.sleep(0.05)
                writer.write(data)
                await writer.drain()
        writer.close()


class Writer:
    """Reads an object and writes it with what it read, again and again, through any server."""

    def __init__(
        self, number: int, urls: Sequence[str], session: aiohttp.ClientSession, pause: float
    ) -> None:
        self.operations: list[Operation] = []
        self.failed = 0
        self._number = number
        self._urls = urls
        self._session = session
        self._pause = pause
        self._random = random.Random(number)
        self._count = 0

    async def run(self, until: asyncio.Event) -> None:
        """Works until told to end."""
        while not until.is_set():
            await self.step()
            await asyncio.sleep(self._pause * self._random.random() * 2)

    async def step(self) -> None:
        """One read, and one write of what was read."""
        key = f"cm-{self._random.randrange(KEYS)}"
        began = time.monotonic()
        read = await self._ask("GET", f"{MAPS}/{key}", None)
        if read is None or read[0] != 200:
            self.failed += 1
            return
        obj = read[1]
        version = int(obj["metadata"]["resourceVersion"])
        self.operations.append(Read(key, began, time.monotonic(), version, obj["data"]["v"]))
        self._count += 1
        content = f"{self._number}-{self._count}"
        obj["data"]["v"] = content
        began = time.monotonic()
        answer = await self._ask("PUT", f"{MAPS}/{key}", obj)
        ended = time.monotonic()
        if answer is not None and answer[0] == 200:
            written = int(answer[1]["metadata"]["resourceVersion"])
            self.operations.append(Write(key, began, ended, version, written, content))
        elif answer is not None and answer[0] == 409:
            self.operations.append(Refused(key, began, ended, version))
        else:
            self.failed += 1
            self.operations.append(Write(key, began, ended, version, 0, content))

    async def _ask(self, method: str, path: str, body: object) -> tuple[int, dict] | None:
        try:
            url = self._random.choice(self._urls)
            async with self._session.request(method, url + path, json=body) as answer:
                return answer.status, json.loads(await answer.read())
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return None


Span = tuple[int, int, list[tuple[int, str]]]


class Watcher:
    """Follows all objects from a revision, from server to server; ``spans`` is what it saw."""

    def __init__(self, number: int, urls: Sequence[str], session: aiohttp.ClientSession, after: int) -> None:
        self.spans: list[Span] = []
        self.at = after
        self.relisted = 0
        self._urls = urls
        self._session = session
        self._random = random.Random(1000 + number)
        self._start, self._events = after, []  # type: int, list[tuple[int, str]]

    async def run(self) -> None:
        """Watches until cancelled."""
        try:
            while True:
                try:
                    await self._watch(self._random.choice(self._urls))
                except (aiohttp.ClientError, OSError, TimeoutError):
                    await asyncio.sleep(0.2 * self._random.random())
        finally:
            self._close_span()

    def _close_span(self) -> None:
        self.spans.append((self._start, self.at, self._events))

    async def _watch(self, url: str) -> None:
        query = {
            "watch": "1",
            "resourceVersion": str(self.at),
            "timeoutSeconds": str(self._random.randint(20, 60)),
        }
        async with self._session.get(
            url + MAPS, params=query, timeout=aiohttp.ClientTimeout(sock_connect=5, sock_read=70)
        ) as answer:
            if answer.status != 200:
                raise TimeoutError
            async for line in answer.content:
                found = _EVENT.match(line)
                if line.startswith(b'{"type":"ERROR"'):
                    await self._list_again(url)
                    return
                if found is None:
                    raise TimeoutError
                self.at = int(found[3])
                self._events.append((self.at, (found[2] or b"").decode()))

    async def _list_again(self, url: str) -> None:
        """What was between is unknown: the versions of before are compacted."""
        async with self._session.get(url + MAPS, params={"limit": "1"}) as answer:
            if answer.status != 200:
                raise TimeoutError
            version = int(json.loads(await answer.read())["metadata"]["resourceVersion"])
        self._close_span()
        self.relisted += 1
        self._start, self._events, self.at = version, [], version
