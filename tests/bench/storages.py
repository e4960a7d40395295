"""CPU of a request to one server over SQLite and one over etcd, by turns, under one connection and under many.

    python -m tests.bench.storages [--connections 1,64] [--only get,apply] [--rounds 3]

The requests are those of ``api_requests.py``. What counts is the CPU time of the server's process alone, less what it
uses in the same time while nobody asks; the least of some rounds. etcd is one member on loopback that does not fsync.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.api_requests import LINES, seeds
from tests.bench.server_load import TOKEN, running

from apimachinery.http.messages import Request
from kubewright.testing.etcd import EtcdMembers
from kubewright.testing.ports import free_ports

COUNTED = ("get", "list", "create", "apply", "pod", "status")
IDLE = 2.0


class Server:
    """A running server."""

    def __init__(self, port: int, process: int) -> None:
        self._port = port
        self._process = process

    def cpu(self) -> float:
        """The CPU seconds of its threads so far."""
        tasks = Path(f"/proc/{self._process}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def idle(self) -> float:
        """The CPU seconds that it uses in a second without requests."""
        cpu = self.cpu()
        time.sleep(IDLE)
        return (self.cpu() - cpu) / IDLE

    def ask(self, requests: Sequence[Request], connections: int) -> None:
        """Sends requests over some connections; each must succeed, or be about something that is there already."""
        asyncio.run(self._ask([_sent(each) for each in requests], connections))

    async def _ask(self, requests: Sequence[bytes], connections: int) -> None:
        shares = [requests[number::connections] for number in range(connections)]
        await asyncio.gather(*(self._ask_in_turn(share) for share in shares))

    async def _ask_in_turn(self, requests: Sequence[bytes]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 24)
        for each in requests:
            writer.write(each)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line[15:]) for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"
            )
            said = await reader.readexactly(length)
            status = int(head[9:12])
            if status >= 300 and status != 409:
                raise SystemExit(f"{each.partition(bytes(2))[0][:100]!r}: {status} {said[:300]!r}")
        writer.close()


def _sent(each: Request) -> bytes:
    path = f"{each.path}?{urllib.parse.urlencode(each.query, doseq=True)}".rstrip("?")
    head = f"{each.method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    kind = each.headers["content-type"]
    return f"{head}Content-Type: {kind}\r\nContent-Length: {len(each.body)}\r\n\r\n".encode() + each.body


@contextmanager
def both() -> Iterator[dict[str, Server]]:
    """Both servers, with what the requests are about."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubewright-bench-")))
        members = stack.enter_context(EtcdMembers(folder))
        servers = {}
        for name, url in (("sqlite", "sqlite:///FOLDER/bench.db"), ("etcd", members.url)):
            port = free_ports(1)[0]
            target = stack.enter_context(running(url, False, ["--packages", "kubernetes_api"], port))
            server = servers[name] = Server(port, target.process.pid)
            namespace, *others = seeds()
            server.ask([namespace], 1)
            server.ask(others, 8)
        yield servers


def measured(
    names: Sequence[str], connections: Sequence[int], rounds: int
) -> Iterator[tuple[str, int, list[float]]]:
    """Microseconds of CPU of each request, over SQLite and over etcd."""
    with both() as servers:
        idle = {name: server.idle() for name, server in servers.items()}
        for name in names:
            for together in connections:
                make, first, each = LINES[name][0], time.time_ns() % 10**9, max(300, 20 * together)
                costs = dict.fromkeys(servers, float("inf"))
                for turn in range(rounds + 1):
                    requests = [make(first + turn * each + number) for number in range(each)]
                    for storage, server in servers.items():
                        cpu, began = server.cpu(), time.monotonic()
                        server.ask(requests, together)
                        used = server.cpu() - cpu - idle[storage] * (time.monotonic() - began)
                        if turn:  # the first one warms up
                            costs[storage] = min(costs[storage], used / each * 1e6)
                yield name, together, list(costs.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--connections", default="1,64")
    parser.add_argument("--only", default=",".join(COUNTED))
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    connections = [int(each) for each in options.connections.split(",")]
    for name, together, (sqlite, etcd) in measured(options.only.split(","), connections, options.rounds):
        print(
            f"{name:10s} {together:4d} connections  sqlite {sqlite:7,.0f}  etcd {etcd:7,.0f} µs of CPU"
            f"  {etcd / sqlite:5.2f} x  {etcd - sqlite:+7,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
