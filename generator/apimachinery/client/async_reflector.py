"""The reflector of asyncio programs; the theory is in ``reflector``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Generic, TypeVar

from apimachinery.client import calls
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.calls import Codec, ListOptions, RawEvent, Target
from apimachinery.client.endpoint import AsyncLineStream, TransportError
from apimachinery.client.errors import UnreadableObject
from apimachinery.client.reflector import Change, InitialEvents, Mirror, ReflectorOptions, ReflectorPlan

T = TypeVar("T")


class AsyncReflector(Generic[T]):
    """Mirrors a selection, in the task that iterates it; cancel the task or leave the loop to stop."""

    def __init__(
        self,
        client: AsyncClient,
        target: Target,
        codec: Codec[T],
        selection: ListOptions | None = None,
        options: ReflectorOptions | None = None,
    ) -> None:
        self._client = client
        self._plan = ReflectorPlan(target, codec, selection or ListOptions(), options or ReflectorOptions())
        self.synced = asyncio.Event()

    @property
    def mirror(self) -> Mirror[T]:
        """The state so far."""
        return self._plan.mirror

    @property
    def namespace(self) -> str:
        """The namespace that it mirrors; empty for all of them."""
        return self._plan.target.namespace

    @property
    def last_error(self) -> Exception | None:
        """What the last try ran into; None while the server answers."""
        return self._plan.last_error

    async def __aiter__(self) -> AsyncIterator[Sequence[Change[T]]]:
        """As iterating a ``Reflector``."""
        plan = self._plan
        while True:
            try:
                if not plan.listed:
                    async for batch in self._start():
                        yield batch
                began, events = time.monotonic(), 0
                async for event in self._events(plan.mirror.version, initial=False):
                    events += 1
                    plan.heard(event)
                    changes = self._apply(event)
                    if changes:
                        yield changes
                await asyncio.sleep(plan.ended(events, time.monotonic() - began))
            except Exception as error:  # nothing but stop ends a mirror; Plan.failed says which are raised
                await asyncio.sleep(plan.failed(error))

    async def _start(self) -> AsyncIterator[Sequence[Change[T]]]:
        plan = self._plan
        if plan.streaming:
            initial = InitialEvents(plan.codec)
            async for event in self._events("", initial=True):
                if event.initial_events_end:
                    yield self._listed(plan.mirror.replace(*initial.state(event.resource_version)))
                    return
                initial.take(event)
            raise TransportError("the streaming list ended before its state was complete", sent=True)
        found: list[T] = []
        unreadable: list[UnreadableObject] = []
        version, token, tokens = "", "", calls.Tokens()
        while True:
            page = await self._client.run(calls.list_page(plan.target, plan.codec, plan.selection, token))
            found += page.items
            unreadable += page.unreadable
            version = version or page.resource_version
            token = tokens.take(page.next_token)
            if not token:
                break
        yield self._listed(plan.mirror.replace(found, version, unreadable))

    def _listed(self, changes: Sequence[Change[T]]) -> Sequence[Change[T]]:
        self._plan.listed = self._plan.synced = True
        self._plan.succeeded()
        if unreadable := self._plan.mirror.unreadable:
            self._client._report_unreadable(unreadable.values())
        self.synced.set()
        return changes

    def _apply(self, event: RawEvent) -> list[Change[T]]:
        plan = self._plan
        try:
            return plan.mirror.apply(event.decoded(plan.codec))
        except UnreadableObject as error:
            self._client._report_unreadable([error])
            return plan.mirror.leave_out(error, event.type)

    async def _events(self, version: str, *, initial: bool) -> AsyncIterator[RawEvent]:
        self._plan.following = False
        stream: AsyncLineStream = await self._client._stream(
            self._plan.watch_request(version, initial=initial)
        )
        self._plan.succeeded(following=not initial)
        try:
            async for line in stream:
                yield calls.raw_event(line)
        finally:
            await stream.close()
