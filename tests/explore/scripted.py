"""A cluster that answers what a test tells it: tables of any size, events when told, connections that break."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

from apimachinery.http.listening import Listener
from apimachinery.http.messages import Request, Response, StreamResponse
from apimachinery.http.protocol import ConnectionLimits

Json = dict[str, Any]
COLUMNS = [{"name": name, "type": "string", "priority": 0, "description": ""} for name in ("Name", "Data")]
END = "END"
"""In place of an event: the watch ends."""


class ScriptedCluster:
    """Serves ConfigMaps alone. ``start`` and ``stop`` are called on its loop, all else from the test."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self.objects: dict[str, Json] = {}
        self.lists = 0
        self.watched_from: list[str] = []
        self.broken = False
        self.refusals = threading.Semaphore(0)
        """Released once for each request that is refused while the cluster is broken."""
        self.version = 1
        self._watches: list[asyncio.Queue[Any]] = []
        self._untold: list[Any] = []
        """What happened while nobody watched, for whoever does next."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener = Listener(self, ConnectionLimits())

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._listener.start()

    async def stop(self) -> None:
        self._tell(END)
        await self._listener.stop(1.0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.port}"

    def row(self, name: str, data: str = "1") -> Json:
        self.version += 1
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(self.version)}
        return {"cells": [name, data], "object": {"metadata": metadata}}

    def send(self, kind: str, row: Json) -> None:
        """An event to every watch, or the next one where there is none."""
        self.say({"type": kind, "object": {"kind": "Table", "rows": [row]}})

    def say(self, event: Any) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._tell, event)

    def _tell(self, event: Any) -> None:
        if not self._watches and event is not END:
            self._untold.append(event)
        for queue in self._watches:
            queue.put_nowait(event)
        if event is END:
            self._watches.clear()

    async def answer(self, request: Request, oversized: bool) -> Response | StreamResponse:
        if self.broken:
            self.refusals.release()
            return Response(503, b'{"kind":"Status","message":"gone for a moment","code":503}')
        if request.path in ("/api", "/apis"):
            return _json(_discovery(request.path))
        if request.first("watch"):
            self.watched_from.append(request.first("resourceVersion"))
            queue: asyncio.Queue[Any] = asyncio.Queue()
            for event in self._untold:
                queue.put_nowait(event)
            self._untold.clear()
            self._watches.append(queue)
            return StreamResponse(200, _events(queue))
        name = request.path.rpartition("/configmaps/")[2]
        if name in self.objects:
            return _json(self.objects[name])
        if not request.path.endswith("/configmaps"):
            return Response(404, b'{"kind":"Status","message":"not found","code":404}')
        self.lists += 1
        first = int(request.first("continue") or 0)
        limit = int(request.first("limit") or len(self.rows))
        left = first + limit < len(self.rows)
        metadata = {"resourceVersion": str(self.version), "continue": str(first + limit) if left else ""}
        rows = self.rows[first : first + limit]
        return _json({"kind": "Table", "metadata": metadata, "columnDefinitions": COLUMNS, "rows": rows})

    def timed_out(self, request: Request) -> Response:
        return Response(504)

    def knows(self, request: Request) -> bool:
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


async def _events(queue: asyncio.Queue[Any]) -> AsyncIterator[bytes]:
    while (event := await queue.get()) is not END:
        yield json.dumps(event).encode() + b"\n"


def _json(value: Json) -> Response:
    return Response(200, json.dumps(value).encode())


def _discovery(path: str) -> Json:
    resource = {
        "resource": "configmaps",
        "responseKind": {"kind": "ConfigMap"},
        "scope": "Namespaced",
        "verbs": ["list", "watch", "get"],
    }
    group = {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [resource]}]}
    return {"kind": "APIGroupDiscoveryList", "items": [group] if path == "/api" else []}
