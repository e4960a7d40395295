"""Ten explorers open at once, beside somebody who writes a hundred times a second: what their pages ask of the server.

Each page reads what is served and a schema, lists a kind as a Table in pages, watches it, and asks again and again for
the past of the kind and of an object. On a server of its own, which keeps versions.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.attack.target import Target, Watch

PAGES, OBJECTS, WRITES = 10, 2_000, 600
PERIOD_SECONDS = 0.01
GROWN_MEGABYTES = 80.0
MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
HISTORY = "application/json;as=History;g=kubewright.dev;v=v1"
OPENS = [("/api", DISCOVERY), ("/apis", DISCOVERY), ("/openapi/v3/apis/apps/v1", "application/json")]
ASKS = [(f"{MAPS}?limit=200", HISTORY), (f"{MAPS}/m7", HISTORY), (f"{MAPS}/m7", "application/json")]


class Page:
    """One open page, on two threads: one watches, one clicks."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._ending = threading.Event()
        self.wrong: list[str] = []
        self.events = 0
        self.watches = threading.Event()
        self.saw_last = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._follow, self._click)]
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Clicks no more, and closes."""
        self._ending.set()
        for thread in self._threads:
            thread.join(60.0)

    def _follow(self) -> None:
        connection = self._connect()
        token, version = "", ""
        while token or not version:
            listed = self._read(connection, f"{MAPS}?limit=500&continue={token}", TABLE)
            metadata: dict[str, str] = listed.get("metadata", {})
            token, version = metadata.get("continue", ""), metadata.get("resourceVersion", "failed")
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={version}"
        connection.request("GET", f"{MAPS}?{query}", headers={"Accept": TABLE})
        answer = connection.getresponse()
        if answer.status != 200:
            self.wrong.append(f"a watch: {answer.status}")
        self.watches.set()
        # The writer's last write ends it; a server that says nothing ends the connection's patience.
        while line := answer.readline():
            self.events += 1
            rows = json.loads(line)["object"].get("rows") or [{}]
            if rows[0].get("object", {}).get("metadata", {}).get("labels", {}).get("last") == "yes":
                self.saw_last.set()
                break
        connection.close()

    def _click(self) -> None:
        connection = self._connect()
        for path, accept in OPENS:
            self._read(connection, path, accept)
        while not self._ending.wait(0.2):
            for path, accept in ASKS:
                self._read(connection, path, accept)
        connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._target.port, timeout=60.0)

    def _read(self, connection: http.client.HTTPConnection, path: str, accept: str) -> dict[str, Any]:
        connection.request("GET", path, headers={"Accept": accept})
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            self.wrong.append(f"{path}: {answer.status} {content[:200]!r}")
            return {}
        found: dict[str, object] = json.loads(content)
        return found


def ten_pages(target: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    """What the pages did to the server, and what they did not get."""
    with tempfile.TemporaryDirectory(prefix="kubewright-explorers-") as folder:
        own = Target(Path(folder), ("--anonymous-admin", "--keep-history", "1h"))
        try:
            for number in range(OBJECTS):
                data = {"k": "v" * 200}
                own.make(MAPS, {"metadata": {"name": f"m{number}"}, "data": data})
            yield from _measured(own, chance, options)
        finally:
            own.end()


def _measured(own: Target, chance: random.Random, options: argparse.Namespace) -> Iterator[str]:
    writer = own.connect()
    _write(writer, chance, WRITES // 4, last=False)
    before, resident, watch = own.held(), own.resident(), Watch(own)
    pages = [Page(own) for _ in range(PAGES)]
    for page in pages:
        page.watches.wait(60.0)
    cpu = own.running()
    _write(writer, chance, WRITES, last=True)
    for page in pages:
        if not page.saw_last.wait(60.0):
            yield f"a page saw {page.events} events, and not the last"
    cpu = own.running() - cpu
    for page in pages:
        page.end()
        yield from page.wrong[:3]
    watch.end()
    held, grown = own.held_since(before), watch.peak - resident
    print(
        f"    {PAGES} pages, {WRITES} writes: CPU {cpu:.1f} s  held {held * 1000:.0f} ms at most  "
        f"/livez {watch.own * 1000:.0f} ms  {grown:.0f} MB more",
        flush=True,
    )
    if held > options.stall:
        yield f"the loop was held for more than {options.stall} s of CPU time (up to {held} s)"
    if watch.own > options.health:
        yield f"/livez took {watch.own:.2f} s of the server's own time"
    if grown > GROWN_MEGABYTES:
        yield f"{grown:.0f} MB for {PAGES} pages"
    if own.tracebacks():
        yield f"tracebacks in the log; the last: {own.last_traceback()}"


def _write(connection: http.client.HTTPConnection, chance: random.Random, count: int, *, last: bool) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    for number in range(count):
        change: dict[str, object] = {"data": {"k": str(number)}}
        if last and number == count - 1:
            change["metadata"] = {"labels": {"last": "yes"}}
        path = f"{MAPS}/m{chance.randrange(OBJECTS // 10)}"
        connection.request("PATCH", path, json.dumps(change), headers)
        connection.getresponse().read()
        time.sleep(PERIOD_SECONDS)
