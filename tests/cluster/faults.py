"""A cluster of three members and two servers under load while its parts fail; nothing acknowledged may be lost.

    python -m tests.cluster.faults --rounds 50 --writers 8 --watchers 500

Each round breaks one thing and heals it. In the end all that clients were answered is held against ``history``: no
write lost, no event lost, doubled or out of order, no stale read. Exit code 1 where a fault was found.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
from tests.cluster.clients import KEYS, MAPS, Watcher, Wires, Writer
from tests.cluster.history import Read, Write, faults_of_history, faults_of_watches

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection
from apimachinery.storage.etcd.options import EtcdOptions
from apimachinery.storage.interface import StorageError
from kubewright.testing.cluster import Cluster
from kubewright.testing.ports import free_ports

MEMBERS, SERVERS = 3, 2
FAULT_SECONDS = 4.0
SETTLE_SECONDS = 1.0
END_SECONDS = 30.0


class Story:
    """A cluster, those who use it, and what is done to it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._random = random.Random(options.seed)
        self.done: Counter[str] = Counter()
        self.faults: list[str] = []
        self._wires: list[Wires] = []

    async def run(self) -> int:
        """Plays all rounds; the exit code."""
        folder = Path(self._options.folder)
        shutil.rmtree(folder, ignore_errors=True)
        ports = free_ports(2 * MEMBERS + SERVERS)
        for _ in range(SERVERS):
            self._wires.append(Wires(ports[:MEMBERS]))
            await self._wires[-1].start()
        self._cluster = Cluster(
            folder, MEMBERS, SERVERS, ports=ports, through=[wires.ports for wires in self._wires]
        )
        self._etcd = EtcdConnection(EtcdOptions(tuple(f"127.0.0.1:{port}" for port in ports[:MEMBERS])))
        try:
            await asyncio.to_thread(self._cluster.start)
            timeout = aiohttp.ClientTimeout(total=20)
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
                await self._play(session)
        finally:
            await self._etcd.close()
            await asyncio.to_thread(self._cluster.stop)
            for wires in self._wires:
                await wires.stop()
        for fault in self.faults[:50]:
            print("FAULT", fault)
        print(f"{len(self.faults)} faults")
        return 1 if self.faults else 0

    async def _play(self, session: aiohttp.ClientSession) -> None:
        urls = self._cluster.urls
        operations = []
        for number in range(KEYS):
            began = time.monotonic()
            body = {"metadata": {"name": f"cm-{number}"}, "data": {"v": "new"}}
            async with session.post(urls[0] + MAPS, json=body) as answer:
                made = json.loads(await answer.read())
            version = int(made["metadata"]["resourceVersion"])
            operations.append(Write(f"cm-{number}", began, time.monotonic(), 0, version, "new"))
        writers = [Writer(n, urls, session, self._options.pause) for n in range(self._options.writers)]
        watchers = [Watcher(n, urls, session, version) for n in range(self._options.watchers)]
        ending = asyncio.Event()
        writing = [asyncio.create_task(writer.run(ending)) for writer in writers]
        watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
        kinds = list(self._kinds().items())
        if self._options.only:
            kinds = [pair for pair in kinds if pair[0] == self._options.only]
        for number in range(self._options.rounds):
            name, act = kinds[number % len(kinds)]
            began = time.monotonic()
            await act()
            await self._settle(name)
            self.done[name] += 1
            made = sum(isinstance(o, Write) and o.revision > 0 for w in writers for o in w.operations)
            print(
                f"round {number + 1}: {name}, {time.monotonic() - began:.1f} s, {made} writes so far",
                flush=True,
            )
        ending.set()
        await asyncio.gather(*writing)
        operations += [operation for writer in writers for operation in writer.operations]
        await self._end(session, operations, watchers)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        answered = [(o.revision, o.key) for o in operations if isinstance(o, Write) and o.revision > version]
        self.faults += faults_of_history(operations)
        self.faults += faults_of_watches([watcher.spans for watcher in watchers], answered)
        events = sum(len(span[2]) for watcher in watchers for span in watcher.spans)
        unknown = sum(isinstance(o, Write) and not o.revision for o in operations)
        reads = sum(isinstance(o, Read) for o in operations)
        print(
            f"{self._options.rounds} rounds ({dict(self.done)}): {len(answered)} writes acknowledged, {unknown} "
            f"without an answer, {reads} reads, {events} events at {len(watchers)} watchers, "
            f"{sum(w.relisted for w in watchers)} lists after 410, {sum(w.failed for w in writers)} requests failed"
        )

    async def _end(self, session: aiohttp.ClientSession, operations: list, watchers: list[Watcher]) -> None:
        """Reads all objects once more through each server, and waits for the watchers."""
        newest = 0
        for url in self._cluster.urls:
            for number in range(KEYS):
                began = time.monotonic()
                async with session.get(f"{url}{MAPS}/cm-{number}") as answer:
                    obj = json.loads(await answer.read())
                version = int(obj["metadata"]["resourceVersion"])
                newest = max(newest, version)
                operations.append(Read(f"cm-{number}", began, time.monotonic(), version, obj["data"]["v"]))
        until = time.monotonic() + END_SECONDS
        while (late := [w for w in watchers if w.at < newest]) and time.monotonic() < until:
            await asyncio.sleep(0.2)
        if late:
            self.faults.append(f"{len(late)} watchers did not come to revision {newest} in {END_SECONDS} s")

    async def _settle(self, name: str) -> None:
        for number in range(SERVERS):
            try:
                await asyncio.to_thread(self._cluster.wait_ready, number, 30.0)
            except TimeoutError as fault:
                self.faults.append(f"after {name}: {fault}")
        await asyncio.sleep(SETTLE_SECONDS)

    # What is done.

    def _kinds(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {
            "kill a member": self._kill_member,
            "cut off a server": self._cut_off,
            "kill the leader": self._kill_leader,
            "kill a server": self._kill_server,
            "pause a member": self._pause_member,
            "compact": self._compact,
            "cut one wire": self._cut_wire,
            "compact while a server is cut off": self._compact_cut_off,
        }

    async def _kill_member(self, number: int | None = None) -> None:
        number = self._random.randrange(MEMBERS) if number is None else number
        self._cluster.etcd.signal_member(number, signal.SIGKILL)
        await asyncio.sleep(FAULT_SECONDS)
        await asyncio.to_thread(self._cluster.etcd.start_member, number)

    async def _kill_leader(self) -> None:
        for number, endpoint in enumerate(self._etcd.options.endpoints):
            try:
                status = await self._etcd.ask(messages.STATUS, messages.StatusRequest(), endpoint)
            except StorageError:
                continue
            if status.leader == status.header.member_id:
                await self._kill_member(number)
                return

    async def _kill_server(self) -> None:
        number = self._random.randrange(SERVERS)
        self._cluster.kill_server(number)
        await asyncio.sleep(1.0)
        self._cluster.start_server(number)

    async def _pause_member(self) -> None:
        number = self._random.randrange(MEMBERS)
        self._cluster.etcd.signal_member(number, signal.SIGSTOP)
        await asyncio.sleep(FAULT_SECONDS)
        self._cluster.etcd.signal_member(number, signal.SIGCONT)

    async def _cut_off(self) -> None:
        number = self._random.randrange(SERVERS)
        self._wires[number].cut(range(MEMBERS))
        until = time.monotonic() + 12.0
        while await asyncio.to_thread(self._cluster.is_ready, number):
            if time.monotonic() > until:
                self.faults.append("a server that was cut off for 12 s says that it is ready")
                break
            await asyncio.sleep(0.2)
        self._wires[number].heal()

    async def _cut_wire(self) -> None:
        number = self._random.randrange(SERVERS)
        self._wires[number].cut([self._random.randrange(MEMBERS)])
        await asyncio.sleep(FAULT_SECONDS)
        self._wires[number].heal()

    async def _compact(self) -> None:
        answer = await self._etcd.read(messages.RANGE, messages.RangeRequest(key=b"x", count_only=True))
        request = messages.CompactionRequest(revision=answer.header.revision, physical=True)
        await self._etcd.read(messages.COMPACT, request)

    async def _compact_cut_off(self) -> None:
        number = self._random.randrange(SERVERS)
        self._wires[number].cut(range(MEMBERS))
        await asyncio.sleep(FAULT_SECONDS)
        await self._compact()
        self._wires[number].heal()


def main() -> int:
    """See the header."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--watchers", type=int, default=500)
    parser.add_argument("--pause", type=float, default=0.3, help="seconds that a writer rests, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="one kind of fault")
    parser.add_argument("--folder", default="build/faults")
    return asyncio.run(Story(parser.parse_args()).run())


if __name__ == "__main__":
    sys.exit(main())
