"""Several watches as one answer: what happens to the objects of many kinds, as lines of JSON.

    POST /explorer/follow  {"paths": ["/api/v1/namespaces/shop/configmaps", …], "labels": "app=web"}

    {"path", "type": "ADDED" | "MODIFIED" | "DELETED", "metadata": {…}}     an event
    {"path", "refused": "…"}                                                the cluster says no to this path
    {}                                                                      nothing happened for a while

A browser opens six connections to one origin, and a namespace has sixty kinds: so the watches are the explorer's, with
the rights of whoever asks. Each begins with what happens from now on, goes on from the version it saw last where it
ends, and begins anew where that is too old. The lines have the metadata alone, and of ``managedFields`` who and when.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any
from urllib.parse import quote, urlencode

from apimachinery.client.config import ConfigError
from apimachinery.http.messages import Request, StreamResponse
from apimachinery.http.outgoing import CallFailed
from kubewright.tools.explore.upstream import Upstream

MOST_PATHS = 500
LINE_BYTES = 16 << 20
UNREAD_LINES = 1_000
"""That wait for the page; then the watches wait too."""
ALIVE_SECONDS = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0
_METADATA = "as=PartialObjectMetadata{};v=v1;g=meta.k8s.io"
LIST, EVENTS = (f"application/json;{_METADATA.format(suffix)}" for suffix in ("List", ""))
_FINAL = (400, 401, 403, 404, 405, 406)
_GONE = 410
Json = dict[str, Any]


def follow(upstream: Upstream, request: Request, asked: Json) -> StreamResponse:
    """The answer. Raises ValueError for a question that is none."""
    paths, labels = asked.get("paths"), str(asked.get("labels") or "")
    if not isinstance(paths, list) or not all(
        isinstance(each, str) and each.startswith("/") and not set("?#") & set(each) for each in paths
    ):
        raise ValueError("paths: a list of paths without queries is wanted")
    if len(paths) > MOST_PATHS:
        raise ValueError(f"paths: {len(paths)} are more than {MOST_PATHS}")
    return StreamResponse(200, _lines(upstream, request, paths, labels))


async def _lines(upstream: Upstream, request: Request, paths: list[str], labels: str) -> AsyncIterator[bytes]:
    queue: asyncio.Queue[Json] = asyncio.Queue(UNREAD_LINES)
    watches = [_Watch(upstream, request, path, labels, queue) for path in dict.fromkeys(paths)]
    tasks = [asyncio.create_task(each.run()) for each in watches]
    try:
        yield b"{}\n"
        while True:
            try:
                line = await asyncio.wait_for(queue.get(), ALIVE_SECONDS)
            except TimeoutError:
                line = {}
            yield json.dumps(line).encode() + b"\n"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Watch:
    """One of the paths."""

    def __init__(
        self, upstream: Upstream, request: Request, path: str, labels: str, queue: asyncio.Queue[Json]
    ) -> None:
        self._upstream = upstream
        self._request = request
        self._path = path
        self._selected = {"labelSelector": labels} if labels else {}
        self._queue = queue
        self._version = ""

    async def run(self) -> None:
        """Follows until it is cancelled or refused."""
        pause = FIRST_PAUSE
        while True:
            try:
                if not self._version:
                    self._version = await self._newest()
                if await self._watch():
                    pause = FIRST_PAUSE
            except (CallFailed, ConfigError, ValueError) as fault:
                code = fault.status if isinstance(fault, CallFailed) else 0
                if code in _FINAL:
                    await self._queue.put({"path": self._path, "refused": str(fault)})
                    return
                if code == _GONE:
                    self._version = ""
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _address(self, **query: str) -> str:
        return f"{self._path}?{urlencode({**query, **self._selected}, quote_via=quote)}"

    async def _newest(self) -> str:
        """The version from which a watch goes on. Raises CallFailed, ConfigError."""
        listed = await self._upstream.ask(self._request, self._address(limit="1"), accept=LIST)
        return str((listed.get("metadata") or {}).get("resourceVersion") or "")

    async def _watch(self) -> bool:
        """Hands on what happens until the watch ends; whether anything did. Raises CallFailed, ConfigError,
        ValueError."""
        came = False
        address = self._address(watch="true", allowWatchBookmarks="true", resourceVersion=self._version)
        async with aclosing(self._upstream.lines(self._request, address, EVENTS, LINE_BYTES)) as lines:
            async for line in lines:
                came = True
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise CallFailed(
                        str(event["object"].get("message")), int(event["object"].get("code") or 0)
                    )
                metadata = event["object"]["metadata"]
                self._version = str(metadata.get("resourceVersion") or self._version)
                if event["type"] != "BOOKMARK":
                    await self._queue.put(
                        {"path": self._path, "type": event["type"], "metadata": _shown(metadata)}
                    )
        return came


def _shown(metadata: Json) -> Json:
    managers = [
        {name: value for name, value in each.items() if name != "fieldsV1"}
        for each in metadata.get("managedFields") or ()
    ]
    kept = {name: metadata.get(name) for name in ("name", "namespace", "resourceVersion", "labels")}
    return {**kept, "managedFields": managers}
