"""Tunnels to somebody who reads nothing, through the proxy of pods: what they hold, and that others pass."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from kubewright.testing.ports import free_ports
from tests.attack.target import ROOT, Target

TUNNELS, MEGABYTES = 16, 30
PODS = "/api/v1/namespaces/default/pods"
AGREED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
OFFER = (
    b"POST %b/tunnels/proxy/%%b HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer attack\r\n"
    b"Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n" % PODS.encode()
)


class Proxying:
    """A server that hands requests on to loopback."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "server.log"
        tokens = folder / "tokens.csv"
        tokens.touch(0o600)
        tokens.write_text('attack,attack,1,"system:masters"\n')
        [self.port] = free_ports(1)
        command = [
            sys.executable,
            "-m",
            "kubewright.cli",
            "serve",
            "--port",
            str(self.port),
            "--token-file",
            str(tokens),
        ]
        command += ["--proxy-allow-network", "127.0.0.0/8", "--log-level", "warning"]
        command += ["--tls", "off", "--storage", f"sqlite:///{folder}/a.db"]
        path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=log, env={**os.environ, "PYTHONPATH": path}
            )
        until = time.monotonic() + 60
        while time.monotonic() < until and self._process.poll() is None:
            with contextlib.suppress(OSError):
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            time.sleep(0.05)
        raise SystemExit(f"the server did not become ready:\n{self.log()}")

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, str]:
        """One request: status and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Authorization": "Bearer attack", "Content-Type": kind}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def resident(self) -> float:
        """Megabytes of memory."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self._process.pid}/status").read_text())
        return int(found[1]) / 1024 if found else 0.0

    def held(self, sort: str) -> float:
        """Bytes of a sort that it holds for clients."""
        found = re.search(
            rf'^kubewright_held_bytes{{sort="{sort}"}} (.+)$', self.ask("GET", "/metrics")[1], re.M
        )
        return float(found[1]) if found else 0.0

    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text("utf-8", "replace")

    def end(self) -> None:
        """Ends it."""
        self._process.terminate()
        self._process.wait(30)


class Backend:
    """Agrees to every offer; then it sends back what comes where the path says so, and else reads nothing."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(TUNNELS)
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self._open.append(sock)
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    head += sock.recv(1) or b"\r\n\r\n"
                sock.sendall(AGREED)
                if b"/echo" in head:
                    threading.Thread(target=self._echo, args=(sock,), daemon=True).start()

    def _echo(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := sock.recv(4096):
                sock.sendall(data)

    def end(self) -> None:
        """Closes all."""
        self._listener.close()
        for sock in self._open:
            sock.close()


def non_takers(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """16 tunnels that are filled while the other side takes nothing; then one that it does take from."""
    del target, chance, options
    backend = Backend()
    with tempfile.TemporaryDirectory(prefix="kubewright-tunnels-") as folder:
        own = Proxying(Path(folder))
        try:
            yield from _fill(own, backend)
            backend.end()
            until = time.monotonic() + 10
            while held := own.held("tunnels") + own.held("tunneled"):
                if time.monotonic() > until:
                    yield f"{held} bytes of tunnels that have ended are still held"
                    break
                time.sleep(0.1)
            if "Traceback" in own.log():
                yield "tracebacks in the log"
        finally:
            backend.end()
            own.end()


def _fill(own: Proxying, backend: Backend) -> Iterator[str]:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": backend.port}]}
    own.ask("POST", PODS, {"metadata": {"name": "tunnels"}, "spec": {"containers": [container]}})
    status = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    own.ask("PATCH", f"{PODS}/tunnels/status", status, "application/merge-patch+json")
    before = own.resident()
    open_: list[socket.socket] = []
    try:
        for _ in range(TUNNELS):
            open_.append(_opened(own, b"deaf"))
            with contextlib.suppress(OSError):
                for _ in range(400):
                    open_[-1].sendall(b"x" * (1 << 16))
        grown = own.resident() - before
        if grown > MEGABYTES:
            yield f"{grown:.0f} MB for {TUNNELS} tunnels of which nothing is taken"
        open_.append(_opened(own, b"echo"))
        open_[-1].settimeout(5)
        open_[-1].sendall(b"hello")
        if open_[-1].recv(100) != b"hello":
            yield "a tunnel next to them does not pass"
    finally:
        for sock in open_:
            sock.close()


def _opened(own: Proxying, path: bytes) -> socket.socket:
    sock = socket.socket()
    sock.settimeout(5)
    sock.connect(("127.0.0.1", own.port))
    sock.sendall(OFFER % path)
    got = b""
    while not got.endswith(b"\r\n\r\n") and (data := sock.recv(1)):
        got += data
    if not got.startswith(b"HTTP/1.1 101 "):
        raise SystemExit(f"no tunnel: {got + sock.recv(4096)!r}")
    sock.settimeout(0.05)
    return sock
