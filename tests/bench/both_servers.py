"""CPU of a request to ``kubewright serve`` and to kube-apiserver with etcd, over TLS by one client, by turns.

The requests are those of ``api_requests.py``. What counts is the CPU time of the server's processes, less what they
use in the same time while nobody asks.
"""

from __future__ import annotations

import http.client
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.bench.api_requests import LINES, seeds
from tests.bench.server_load import TLS, TOKEN, running

from apimachinery.http.messages import Request
from kubewright.testing.ports import free_ports

ROUNDS, EACH, IDLE = 2, 100, 2.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, its processes, and the CPU seconds that they use in a second without requests."""

    name: str
    port: int
    token: str
    processes: Sequence[int]

    def cpu(self) -> float:
        """The CPU seconds of its processes so far."""
        tasks = [task for process in self.processes for task in Path(f"/proc/{process}/task").iterdir()]
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9

    def ask(self, requests: Sequence[Request]) -> None:
        """Sends requests over one connection; each must succeed, or be about something that is there already."""
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=TLS)
        for each in requests:
            path = f"{each.path}?{urllib.parse.urlencode(each.query, doseq=True)}".rstrip("?")
            head = {"Content-Type": each.headers["content-type"], "Authorization": f"Bearer {self.token}"}
            connection.request(each.method, path, each.body or None, head)
            answer = connection.getresponse()
            said = answer.read()
            if answer.status >= 300 and answer.status != 409:
                raise SystemExit(f"{self.name}: {each.method} {path}: {answer.status} {said[:300]!r}")
        connection.close()

    def idle(self) -> float:
        """The CPU seconds that it uses in a second without requests."""
        cpu = self.cpu()
        time.sleep(IDLE)
        return (self.cpu() - cpu) / IDLE


def measured(reference: Path) -> dict[str, tuple[float, float]]:
    """Microseconds of CPU of each request, ours and the reference's: the least of some rounds."""
    token = (reference / "tokens.csv").read_text().partition(",")[0]
    pids = [int((reference / f"{name}.pid").read_text()) for name in ("api", "etcd")]
    theirs = Server("the reference", port_of(pids[0]), token, pids)
    with running("sqlite:///FOLDER/bench.db", True, [], free_ports(1)[0]) as target:
        port = urllib.parse.urlsplit(target.url).port
        assert port is not None
        servers = (Server("ours", port, TOKEN, [target.process.pid]), theirs)
        return {name: (ours, other) for name, (ours, other) in _measured(servers)}


def _measured(servers: Sequence[Server]) -> Iterator[tuple[str, list[float]]]:
    for server in servers:
        namespace, *others = seeds()
        server.ask([namespace])
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(server.ask, (others[number::8] for number in range(8))))
    idle = [server.idle() for server in servers]
    for name, (make, _) in LINES.items():
        first, costs = time.time_ns() % 10**9, [float("inf")] * len(servers)
        for turn in range(ROUNDS + 1):
            requests = [make(first + turn * EACH + number) for number in range(EACH)]
            for index, server in enumerate(servers):
                cpu, began = server.cpu(), time.monotonic()
                server.ask(requests)
                took = server.cpu() - cpu - idle[index] * (time.monotonic() - began)
                if turn:  # the first one warms up
                    costs[index] = min(costs[index], took / EACH * 1e6)
        yield name, costs


def port_of(process: int) -> int:
    """The port that kube-apiserver was told to serve at."""
    words = Path(f"/proc/{process}/cmdline").read_text().split("\0")
    return int(next(word.partition("=")[2] for word in words if word.startswith("--secure-port=")))
