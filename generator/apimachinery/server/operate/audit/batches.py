"""Events that wait in memory and leave in batches; and the backend that sends them to a webhook.

A batch leaves when it is full, or when its first event has waited long enough. Batches leave one after the other, so
order is kept, and not faster than the throttle allows (a bucket that fills at ``qps`` and holds ``burst``). What waits
is bounded in events and in bytes; what comes on top is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from apimachinery.http.outgoing import CallFailed, Endpoint
from apimachinery.metrics import Count

log = logging.getLogger("kubewright.server")

WAITING_BYTES = 64 << 20
ATTEMPTS = 5
Deliver = Callable[[Sequence[bytes]], Awaitable[None]]
Post = Callable[[Endpoint, bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Batching:
    """Events and seconds; ``qps`` batches a second on average, 0 for no throttle."""

    buffer: int = 10_000
    batch: int = 400
    wait_seconds: float = 30.0
    qps: float = 10.0
    burst: int = 15


class Batches:
    """A backend that hands batches to ``deliver``, which raises CallFailed or OSError where they are lost."""

    strict = False

    def __init__(self, name: str, deliver: Deliver, batching: Batching, lost: Count) -> None:
        self.name = name
        self._deliver = deliver
        self._batching = batching
        self._lost = lost
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._full = asyncio.Event()
        self._closing = False
        self._complained = False
        self._tokens = float(batching.burst)
        self._filled = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def write(self, event: bytes) -> None:
        if len(self._waiting) >= self._batching.buffer or self._bytes + len(event) > WAITING_BYTES:
            self._lost.value += 1
            if not self._complained:
                self._complained = True
                log.error("audit events are lost: the buffer is full", extra={"backend": self.name})
            return
        self._waiting.append(event)
        self._bytes += len(event)
        if len(self._waiting) == 1 or len(self._waiting) >= self._batching.batch:
            self._full.set()

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while not (self._closing and not self._waiting):
            await self._ripe()
            if not self._waiting:
                continue
            await self._throttle()
            await self._send(self._take())

    async def _ripe(self) -> None:
        """Waits for a batch that is full or has waited long enough."""
        if not self._waiting and not self._closing:
            self._full.clear()
            await self._full.wait()
        until = time.monotonic() + self._batching.wait_seconds
        while len(self._waiting) < self._batching.batch and not self._closing:
            left = until - time.monotonic()
            if left <= 0:
                return
            self._full.clear()
            try:
                await asyncio.wait_for(self._full.wait(), left)
            except TimeoutError:
                return

    async def _throttle(self) -> None:
        if not self._batching.qps or self._closing:
            return
        now = time.monotonic()
        self._tokens = min(
            float(self._batching.burst), self._tokens + (now - self._filled) * self._batching.qps
        )
        self._filled = now
        if self._tokens < 1:
            await asyncio.sleep((1 - self._tokens) / self._batching.qps)
            self._tokens = 1.0
            self._filled = time.monotonic()
        self._tokens -= 1

    def _take(self) -> list[bytes]:
        batch = [self._waiting.popleft() for _ in range(min(self._batching.batch, len(self._waiting)))]
        self._bytes -= sum(map(len, batch))
        return batch

    async def _send(self, batch: list[bytes]) -> None:
        try:
            await self._deliver(batch)
            self._complained = False
        except (CallFailed, OSError) as fault:
            self._lost.value += len(batch)
            log.error("audit events are lost: %s", fault, extra={"backend": self.name, "events": len(batch)})

    async def close(self, seconds: float = 30.0) -> None:
        """Delivers what is queued. What cannot be delivered in time is lost, and counted."""
        self._closing = True
        self._full.set()
        if self._task is None:
            return
        done, _ = await asyncio.wait((self._task,), timeout=seconds)
        if not done:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._lost.value += len(self._waiting)


class AuditWebhook:
    """Sends batches to an endpoint as EventLists, again after a growing while where it fails."""

    def __init__(self, endpoint: Endpoint, post: Post, *, backoff: float = 10.0) -> None:
        self._endpoint = endpoint
        self._backoff = backoff
        self._post = post

    async def deliver(self, batch: Sequence[bytes]) -> None:
        """Delivers a batch. Raises CallFailed when it was tried often enough."""
        items = b",".join(event.rstrip() for event in batch)
        body = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[' + items + b"]}"
        wait = self._backoff
        for attempt in range(ATTEMPTS):
            try:
                await self._post(self._endpoint, body)
                return
            except CallFailed:
                if attempt == ATTEMPTS - 1:
                    raise
            await asyncio.sleep(wait * (1 + 0.2 * random.random()))
            wait *= 1.5


def log_delivery(write: Callable[[bytes], None]) -> Deliver:
    """Hands a batch to a log file in one write."""

    async def deliver(batch: Sequence[bytes]) -> None:
        await asyncio.get_running_loop().run_in_executor(None, write, b"".join(batch))

    return deliver
