"""Many kinds at once: each holds as much memory as it may, and all of them together must stay within one budget."""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import socket
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.attack import crowd
from tests.attack.inputs import CONFIG_MAPS
from tests.attack.target import Target, Watch

SECONDS = 20.0
BUDGET_MEGABYTES = 1024 + 200
"""What the governor allows (docs/security.md), and what Python needs to work on it."""
TABLE = f"application/json;as=Table;{crowd.META}"
JSON, MERGE = "application/json", "application/merge-patch+json"


class _Crowd:
    """Threads that attack until they are told to end, and the answers that they got."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.ending = threading.Event()
        self.answers: Counter[str] = Counter()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []

    def go(self, times: int, act: Callable[[], object]) -> None:
        def work() -> None:
            while not self.ending.is_set():
                with contextlib.suppress(OSError):
                    act()

        for _ in range(times):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> None:
        connection = self.target.connect(10.0)
        try:
            connection.request(method, path, body or None, headers)
            self.answers[f"{method} {connection.getresponse().status}"] += 1
        finally:
            connection.close()

    def leave(self, data: bytes, receive: int = 4096) -> None:
        """Sends something on a connection that is kept and never read."""
        if len(self._sockets) > 1_500:
            time.sleep(0.05)
            return
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        sock.settimeout(1.0)
        sock.connect(("127.0.0.1", self.target.port))
        self._sockets.append(sock)
        sock.sendall(data)
        time.sleep(0.02)

    def end(self) -> None:
        self.ending.set()
        for sock in self._sockets:
            sock.close()
        for thread in self._threads:
            thread.join(15)


def _get(path: str, accept: str = JSON) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n".encode()


def many_kinds(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """Half-sent heads and bodies, watchers and lists that nobody reads, dense bodies and patches of a dense object, for
    some seconds; a server of its own, with many objects."""
    del target
    with tempfile.TemporaryDirectory(prefix="kubewright-crowd-") as folder:
        crowd.fill(Path(folder) / "attack.db", config_maps=20_000, pods=2_000)
        own = Target(Path(folder))
        try:
            yield from _attacked(own, chance, options)
        finally:
            own.end()


def _attacked(own: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    base = own.resident()
    watch = Watch(own)
    crowd_ = _Crowd(own)
    body = f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2900000\r\n\r\n".encode()
    dense = json.dumps({"metadata": {"name": "x"}, "data": {"a": [[] for _ in range(700_000)]}}).encode()
    crowd_.go(4, lambda: crowd_.leave(body + b" " * 2_000_000))
    crowd_.go(4, lambda: crowd_.leave(b"GET / HTTP/1.1\r\nX: " + b"y" * 1_000_000))
    crowd_.go(
        4, lambda: crowd_.leave(_get(f"{crowd.CROWD}?limit=15000&labelSelector=n!%3D{chance.random()}"))
    )
    crowd_.go(4, lambda: crowd_.leave(_get(crowd.CROWD, TABLE)))
    crowd_.go(4, lambda: crowd_.leave(_get(f"{crowd.CROWD}?watch=1&labelSelector=n!%3D{chance.random()}")))
    crowd_.go(4, lambda: crowd_.leave(_get("/livez") * 2_000))
    crowd_.go(8, lambda: crowd_.ask("POST", CONFIG_MAPS, dense, {"Content-Type": JSON}))
    patch = json.dumps({"metadata": {"labels": {"a": "b"}}}).encode()
    crowd_.go(
        32, lambda: crowd_.ask("PATCH", f"{crowd.CROWD}/dense?dryRun=All", patch, {"Content-Type": MERGE})
    )
    noise = json.dumps({"data": {"a": "x" * 500_000}}).encode()
    crowd_.go(2, lambda: crowd_.ask("PATCH", f"{crowd.CROWD}/c000001", noise, {"Content-Type": MERGE}))
    time.sleep(SECONDS)
    held = own.figures("kubewright_held_bytes")
    crowd_.end()
    watch.end()
    for _ in range(60):  # what was asked last is still worked on
        time.sleep(1.0)
        after = own.figures("kubewright_held_bytes")
        if not (after["heads"] or after["bodies"] or after["work"]):
            break
    if options.verbose:
        print(f"    answers {dict(crowd_.answers)}", flush=True)
        print(f"    held in MB { ({name: round(size / 2**20) for name, size in held.items()}) }", flush=True)
        print(f"    afterwards { ({name: round(size / 2**20) for name, size in after.items()}) }", flush=True)
        print(
            f"    {base:.0f} MB before, {watch.peak:.0f} at most, {own.resident():.0f} afterwards; slowest /livez "
            f"{watch.slowest * 1000:.0f} ms (own {watch.own * 1000:.0f} ms)",
            flush=True,
        )
    if watch.peak - base > BUDGET_MEGABYTES:
        yield f"{watch.peak - base:.0f} MB of memory for many kinds at once"
    if watch.own > options.health:
        yield f"/livez took {watch.own:.2f} s of the server's own time"
    for name in ("heads", "bodies", "work"):
        if after[name]:
            yield f"{after[name]} bytes of {name} are counted when nobody asks for anything"
    if not any(answer.endswith("429") for answer in crowd_.answers):
        yield "nobody was told to come again: the attack was none"
    if own.tracebacks():
        yield f"{own.tracebacks()} tracebacks in the log; the last: {own.last_traceback()}"
