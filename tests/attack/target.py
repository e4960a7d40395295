"""The server under attack: a process of its own on loopback, and what is watched of it while it is attacked."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PERIOD_SECONDS = 0.02
http.client._MAXHEADERS = 2_000  # type: ignore[attr-defined]  # an answer may have hundreds of warnings


class Target:
    """``kubewright serve`` for an administrator without credentials, on a free port, with a database in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._connections: list[http.client.HTTPConnection] = []
        self._log = (folder / "server.log").open("wb")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        command = [
            sys.executable,
            "-m",
            "kubewright.cli",
            "serve",
            "--anonymous-admin",
            "--port",
            str(self.port),
        ]
        command += ["--storage", f"sqlite:///{self._folder}/attack.db", "--log-level", "warning"]
        path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=self._log, env={**os.environ, "PYTHONPATH": path}
        )
        for _ in range(600):
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended at its start:\n{self.log()}")
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("the server did not become ready")

    def kill(self) -> None:
        """As a power cut of the process alone."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Ends it in order."""
        self.forget()
        self.process.terminate()
        self.process.wait(30)
        self._log.close()

    def connect(self, seconds: float = 60.0) -> http.client.HTTPConnection:
        """A connection of one's own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        self._connections.append(connection)
        return connection

    def forget(self) -> None:
        """Closes all connections that were made."""
        while self._connections:
            self._connections.pop().close()

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        seconds: float = 60.0,
    ) -> tuple[int, bytes]:
        """One request on a connection of its own: status and body."""
        connection = self.connect(seconds)
        try:
            connection.request(method, path, body or None, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def make(self, path: str, obj: Any) -> None:
        """Creates an object; a path that is not served yet is waited for."""
        for _ in range(200):
            status, text = self.ask(
                "POST", path, json.dumps(obj).encode(), {"Content-Type": "application/json"}
            )
            if status in (201, 409):
                return
            if status != 404:
                raise SystemExit(f"POST {path}: {status} {text[:300]!r}")
            time.sleep(0.05)
        raise SystemExit(f"{path} is not served")

    def resident(self) -> float:
        """Megabytes of memory."""
        try:
            text = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:  # it was killed
            return 0.0
        found = re.search(r"VmRSS:\s+(\d+)", text)
        return int(found[1]) / 1024 if found else 0.0

    def log(self) -> str:
        """What it has logged."""
        return (self._folder / "server.log").read_text("utf-8", "replace")

    def tracebacks(self) -> int:
        """How many of its lines have one."""
        return self.log().count("Traceback (most recent call last)")

    def cpu(self) -> float:
        """Seconds of CPU time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def figures(self, name: str) -> dict[str, float]:
        """The series of a metric that has one label, by its values."""
        text = self.ask("GET", "/metrics")[1].decode()
        return {
            label: float(value) for label, value in re.findall(rf'^{name}{{\w+="(.*)"}} (.+)$', text, re.M)
        }

    def held(self) -> dict[float, int]:
        """How often its loop was held for at most so many seconds of CPU time."""
        text = self.ask("GET", "/metrics")[1].decode()
        return {
            float(bound.replace("+Inf", "inf")): int(float(count))
            for bound, count in re.findall(
                r'^kubewright_loop_held_seconds_bucket{le="(.+)"} (.+)$', text, re.M
            )
        }

    def held_since(self, before: dict[float, int]) -> float:
        """The bound that the longest hold since then is below."""
        now = self.held()
        grown = {bound: now[bound] - before[bound] for bound in now}
        return min(bound for bound, count in grown.items() if count == grown[float("inf")])


def waited(process: int | str = "self") -> float:
    """Seconds for which the threads of a process could have run and got no CPU; 0 where the system does not say."""
    total = 0
    for path in Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            total += int(path.read_text().split()[1])
        except (OSError, IndexError):  # a thread that ended
            continue
    return total / 1e9


class Watch:
    """Asks /livez every 20 ms on a connection kept open, and keeps how long the slowest answer took, and how long it
    took less what the threads of both sides waited for a CPU (``own``): other programs make that no longer."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.slowest = self.own = 0.0
        self.peak = target.resident()
        self._thread.start()

    def _watch(self) -> None:
        connection = self._target.connect()
        while not self._ending.wait(PERIOD_SECONDS):
            lost, began = self._lost(), time.monotonic()
            try:
                connection.request("GET", "/livez")
                connection.getresponse().read()
            except OSError:
                connection.close()
                connection = self._target.connect()
            took = time.monotonic() - began
            self.slowest = max(self.slowest, took)
            if took > self.own:
                # A thread that ended takes its count with it.
                self.own = max(self.own, took - max(0.0, self._lost() - lost))
            self.peak = max(self.peak, self._target.resident())

    def _lost(self) -> float:
        return waited(self._target.process.pid) + waited()

    def end(self) -> None:
        """Asks no more."""
        self._ending.set()
        self._thread.join()
