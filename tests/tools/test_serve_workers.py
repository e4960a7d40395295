"""``serve --workers``: processes that one command starts, and that end with it."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apimachinery.http.handshakes import bound_sockets
from apimachinery.server.catalog.options import OptionError
from kubewright.tools.serve.workers import check_workers
from tests.tools.test_serve_names import given

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="--workers is for Linux")
MAPS = "/api/v1/namespaces/default/configmaps"
SECONDS = 60.0


class Served:
    """A command, its lines on stderr as they are written to a file, and its processes."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.log = folder / "log"
        with self.log.open("wb") as errors:
            self.command = subprocess.Popen(
                [sys.executable, "-m", "kubewright", "serve", "--port", "0", "--tls", "off", *words],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.command.stdout is not None
        self.port = 0
        for line in self.command.stdout:
            if line.startswith("serving on "):
                self.port = int(line.partition(";")[0].rpartition(":")[2])
            if line.startswith("next: ") or "no kubeconfig" in line:
                break
        assert self.port, self.log.read_text()

    def lines(self, message: str) -> list[dict[str, Any]]:
        """The lines of the log that say this."""
        found = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in found if line["message"] == message]

    def ask(self, method: str, path: str, obj: Any = None) -> tuple[int, Any]:
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        body = None if obj is None else json.dumps(obj)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        finally:
            connection.close()

    def below(self) -> list[int]:
        """The processes that it started, the nursery first."""
        found = _children(self.command.pid)
        return found + [reader for nursery in found for reader in _children(nursery)]


def _children(process: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    return []


def until(holds: Callable[[], bool]) -> None:
    """Returns when something holds."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextlib.contextmanager
def served(folder: Path, *words: str) -> Iterator[Served]:
    running = Served(folder, *words)
    try:
        yield running
    finally:
        running.command.kill()
        running.command.wait(SECONDS)
        assert running.command.stdout is not None
        running.command.stdout.close()


def test_a_killed_reader_loses_nothing_and_a_killed_writer_leaves_nobody(tmp_path):
    storage = f"sqlite:///{tmp_path}/log.db"
    with served(tmp_path, "--anonymous-admin", "--storage", storage, "--workers", "3") as server:
        until(lambda: len(server.lines("a reader serves")) == 2)
        nursery, *readers = server.below()
        assert len(readers) == 2
        made = []
        for number in range(8):
            code, obj = server.ask("POST", MAPS, {"metadata": {"name": f"m{number}"}})
            assert code == 201
            made.append(obj["metadata"]["resourceVersion"])
            if number == 3:
                os.kill(readers[0], signal.SIGKILL)
            code, found = server.ask("GET", MAPS)
            assert code == 200
            listed = [each["metadata"] for each in found["items"] if each["metadata"]["name"][0] == "m"]
            assert [each["resourceVersion"] for each in listed] == made
        until(lambda: len(server.lines("a reader serves")) == 3)
        first, *others = server.below()
        assert first == nursery and len(others) == 2 and readers[0] not in others
        assert len(server.lines("a reader ended; it is started again")) == 1
        processes = server.below()
        server.command.kill()
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes))


def test_it_ends_in_order_and_so_do_all_of_its_processes(tmp_path):
    with served(tmp_path, "--anonymous-admin", "--storage", "memory://", "--workers", "2") as server:
        until(lambda: len(server.lines("a reader serves")) == 1)
        processes = server.below()
        server.command.send_signal(signal.SIGTERM)
        assert server.command.wait(SECONDS) == 0
        until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes))
        assert [line.get("worker") for line in server.lines("ended")] == [1, None]


def test_a_port_in_use_is_refused_though_the_kernel_would_share_it():
    async def run() -> None:
        ((first,), (second,)) = await bound_sockets("127.0.0.1", 0, 2)
        port = first.getsockname()[1]
        assert second.getsockname()[1] == port
        try:
            first.listen()
            with pytest.raises(OSError, match="in use"):
                await bound_sockets("127.0.0.1", port, 2)
        finally:
            first.close()
            second.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--workers", "0"], "--workers 0: give 1 to 64"),
        (["--workers", "65"], "--workers 65: give 1 to 64"),
        (
            ["--workers", "2", "--storage", "etcd://127.0.0.1:1"],
            "--workers 2: etcd is for several servers already; start as many servers over it behind a load balancer",
        ),
        (
            ["--workers", "2", "--audit-log-path", "-", "--audit-log-mode", "blocking-strict"],
            "--workers 2: --audit-log-mode blocking-strict works with one process only",
        ),
        (
            ["--workers", "2", "--tracing-config-file", "traces.yaml"],
            "--workers 2: --tracing-config-file works with one process only",
        ),
        (
            ["--workers", "2", "--delegate", "kubeconfig"],
            "--workers 2: --delegate works with one process only",
        ),
    ],
)
def test_what_cannot_be_is_refused(words, told):
    with pytest.raises(OptionError, match=f"^{re.escape(told)}$"):
        check_workers(given(*words))
