"""The server under attack: a process of its own on loopback, and what is watched of it while it is attacked."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kubewright.testing.ports import free_ports
from tests.attack.quiet import used

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 180.0
"""How long a start may take on a busy machine, which is not judged."""
http.client._MAXHEADERS = 2_000  # type: ignore[attr-defined]  # an answer may have hundreds of warnings


class Target:
    """``kubewright serve`` on a free port, with a database in ``folder``. Without other options whoever asks is the
    administrator."""

    def __init__(self, folder: Path, options: Sequence[str] = ("--anonymous-admin",)) -> None:
        self._folder = folder
        self._options = options
        self.token = ""
        self._connections: list[http.client.HTTPConnection] = []
        self._log = (folder / "server.log").open("wb")
        [self.port] = free_ports(1)
        self.watches: list[Watch] = []
        self._asking = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("livez.py")), str(self.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answered = time.monotonic()
        self.start()
        self._noting = threading.Thread(target=self._note_livez, daemon=True)
        self._noting.start()

    def start(self) -> None:
        """Starts it, and waits until it is ready."""
        command = [
            sys.executable,
            "-m",
            "kubewright.cli",
            "serve",
            *self._options,
            "--port",
            str(self.port),
        ]
        command += ["--storage", f"sqlite:///{self._folder}/attack.db", "--log-level", "warning"]
        path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=self._log, env={**os.environ, "PYTHONPATH": path}
        )
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise SystemExit(f"the server ended at its start:\n{self.log()}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                if self.ask("GET", "/readyz")[0] == 200:
                    break
            time.sleep(0.05)
        else:
            raise SystemExit("the server did not become ready")
        if self._asking.stdin is not None:
            print(self.process.pid, file=self._asking.stdin, flush=True)

    def _note_livez(self) -> None:
        for line in self._asking.stdout or ():
            now, took, own = map(float, line.split())
            resident = self.resident()
            for watch in tuple(self.watches):
                watch.note(took, own, resident)
            self._answered = now

    def wait_for_livez(self) -> None:
        """Until an answer of /livez came that was asked for before now, or the server does not run."""
        now = time.monotonic()
        while self._answered < now and self._asking.poll() is None and self.process.poll() is None:
            time.sleep(0.005)

    def kill(self) -> None:
        """As a power cut of the process alone."""
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        """Ends it in order."""
        self.forget()
        if self._asking.stdin is not None:
            self._asking.stdin.close()
        self._asking.wait(90)
        self._noting.join()
        if self._asking.stdout is not None:
            self._asking.stdout.close()
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
            known = {"Authorization": f"Bearer {self.token}"} if self.token else {}
            connection.request(method, path, body or None, known | (headers or {}))
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

    def last_traceback(self) -> str:
        """The last of them, to its end or 3,000 characters of it."""
        return self.log().rpartition("Traceback (most recent call last)")[2][:3000]

    def cpu(self) -> float:
        """Seconds of CPU time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def running(self) -> float:
        """The same to the nanosecond."""
        return used(self.process.pid)

    def metrics(self) -> str:
        """What /metrics says; asked again where the server has no room for the question."""
        for _ in range(100):
            try:
                status, text = self.ask("GET", "/metrics")
                if status == 200:
                    return text.decode()
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.1)
        raise SystemExit("/metrics was not answered for 10 s")

    def figures(self, name: str) -> dict[str, float]:
        """The series of a metric that has one label, by its values."""
        found = re.findall(rf'^{name}{{\w+="(.*)"}} (.+)$', self.metrics(), re.M)
        return {label: float(value) for label, value in found}

    def held(self) -> dict[float, int]:
        """How often its loop was held for at most so many seconds of CPU time."""
        return {
            float(bound.replace("+Inf", "inf")): int(float(count))
            for bound, count in re.findall(
                r'^kubewright_loop_held_seconds_bucket{le="(.+)"} (.+)$', self.metrics(), re.M
            )
        }

    def held_since(self, before: dict[float, int]) -> float:
        """The bound that the longest hold since then is below."""
        now = self.held()
        grown = {bound: now[bound] - before[bound] for bound in now}
        return min(bound for bound, count in grown.items() if count == grown[float("inf")])


class Watch:
    """What others see of a server meanwhile: how long the slowest answer of /livez took, how long less what threads
    waited for a CPU (``own``), and the most memory."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.slowest = self.own = 0.0
        self.peak = target.resident()
        target.watches.append(self)

    def note(self, took: float, own: float, resident: float) -> None:
        """Takes one answer of /livez, and the memory in megabytes at that moment."""
        self.slowest, self.own = max(self.slowest, took), max(self.own, own)
        self.peak = max(self.peak, resident)

    def end(self) -> None:
        """Waits for what was asked before now."""
        self._target.wait_for_livez()
        self._target.watches.remove(self)
