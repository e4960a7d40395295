"""The stream of events: one watch of all keys below the prefix, followed for as long as the driver is open.

Theory. One watch for all resources gives their events in the order of revisions, so one number, the revision of the
last event, says how far this process has seen. Between events it grows by progress notifications. A stream that breaks
is opened again behind that revision, with the next member; where the revision is compacted by then the driver reads the
state again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from apimachinery.storage.etcd import messages
from apimachinery.storage.etcd.connection import EtcdConnection
from apimachinery.storage.etcd.keys import Keys
from apimachinery.storage.etcd.rpc import MessageStream, RpcFailed

log = logging.getLogger("kubewright.storage")

FIRST_PAUSE, LAST_PAUSE = 0.05, 1.0


class Follower:
    """The stream. ``take`` is given raw events, ``progress`` the revision up to which there are no others;
    ``compacted`` is awaited where the stream cannot go on."""

    def __init__(
        self,
        connection: EtcdConnection,
        keys: Keys,
        seen: Callable[[], int],
        take: Callable[[Sequence[Any]], None],
        progress: Callable[[int], None],
        compacted: Callable[[int], Awaitable[None]],
    ) -> None:
        self._connection = connection
        self._keys = keys
        self._seen = seen
        self._take = take
        self._progress = progress
        self._compacted = compacted
        self._stream: MessageStream | None = None
        self._endpoint = ""
        self._started = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    async def started(self) -> None:
        """Returns when a stream runs."""
        await self._started.wait()

    def ask_progress(self) -> None:
        """Asks the member for a progress notification; harmless where no stream runs."""
        if self._stream is not None:
            self._stream.write(messages.WatchRequest(progress_request=messages.WatchProgressRequest()))

    def restart(self) -> None:
        """Opens the stream again, with the next member: this one says nothing."""
        if self._stream is not None:
            self._connection.move_on(self._endpoint)
            self._stream.cancel()

    async def close(self) -> None:
        """Ends."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            before = self._seen()
            try:
                await self._follow()
            except RpcFailed as fault:
                log.warning("the stream of events broke: %s", fault)
                self._connection.move_on(self._endpoint)
            except Exception:
                log.exception("the stream of events broke")
            finally:
                stream, self._stream = self._stream, None
                if stream is not None:
                    stream.cancel()
            # A stream that brought something is opened again at once; one that fails each time waits longer.
            pause = FIRST_PAUSE if self._seen() > before else min(pause * 2, LAST_PAUSE)
            await asyncio.sleep(pause)

    async def _follow(self) -> None:
        self._endpoint = self._connection.endpoint
        stream = self._stream = await self._connection.watch(self._endpoint)
        request = messages.WatchCreateRequest(
            key=self._keys.start,
            range_end=self._keys.end,
            start_revision=self._seen() + 1,
            progress_notify=True,
            # fragment: etcd splits answers above its limit for messages instead of breaking the stream.
            fragment=True,
        )
        stream.write(messages.WatchRequest(create_request=request))
        held: list[Any] = []
        while True:
            response = await stream.read()
            if response is None:
                return
            if response.created:
                self._started.set()
            if response.canceled:
                if response.compact_revision:
                    await self._compacted(response.compact_revision)
                else:
                    log.warning("the watch was cancelled: %s", response.cancel_reason)
                return
            if response.fragment:  # the rest may be of the same revision
                held += response.events
            elif response.events:
                self._take([*held, *response.events] if held else response.events)
                held = []
            elif not response.created:
                self._progress(response.header.revision)
