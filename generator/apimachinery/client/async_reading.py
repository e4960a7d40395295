"""What lists and watches give: pages and events, awaited.

``reading``, its plain twin, is made of this file by ``build/plain.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Generic, TypeVar

from apimachinery.client import calls
from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.calls import Codec, Event, ListOptions, Page, Target
from apimachinery.client.closing import AsyncClosing
from apimachinery.client.endpoint import AsyncLineStream
from apimachinery.client.errors import UnreadableObject

T = TypeVar("T")


class AsyncPages(Generic[T]):
    """A list, read page by page as it is iterated. One snapshot: every page is of the same version. Objects that do
    not fit the model are left out and reported (``Page.unreadable``, ``Client.on_unreadable``).

    Iterating after an expired continue token raises ``Gone``: list again.
    """

    def __init__(self, client: AsyncClient, target: Target, codec: Codec[T], options: ListOptions) -> None:
        self._client = client
        self._target = target
        self._codec = codec
        self._options = options

    async def pages(self) -> AsyncIterator[Page[T]]:
        """The pages, each with its items, version and remaining count."""
        token, tokens = "", calls.Tokens()
        while True:
            page = await self.page(token)
            yield page
            token = tokens.take(page.next_token)
            if not token:
                return

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def page(self, token: str = "") -> Page[T]:
        """One page: the first, or the one that a token of the page before names."""
        page = await self._client.run(calls.list_page(self._target, self._codec, self._options, token))
        self._client._report_unreadable(page.unreadable)
        return page


class AsyncWatch(AsyncClosing, Generic[T]):
    """Events as they happen: iterate; ``close`` or leaving the ``async with`` block ends it.

    Ends by itself when the server ends it. Raises ``Gone`` where the version is too old: list again. Events of
    objects that do not fit the model are left out and reported (``Client.on_unreadable``).
    """

    def __init__(self, client: AsyncClient, stream: AsyncLineStream, codec: Codec[T]) -> None:
        self._client = client
        self._stream = stream
        self._codec = codec

    async def __aiter__(self) -> AsyncIterator[Event[T]]:
        try:
            async for line in self._stream:
                try:
                    event = calls.event(line, self._codec)
                except UnreadableObject as error:
                    self._client._report_unreadable([error])
                    continue
                yield event
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends the watch."""
        await self._stream.close()


class AsyncLogLines(AsyncClosing):
    """A log as it is written, by lines of text, undecodable bytes replaced: iterate.

    ``close`` or leaving the ``async with`` block ends it."""

    def __init__(self, stream: AsyncLineStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        try:
            async for line in self._stream:
                yield line.decode("utf-8", "replace")
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends it."""
        await self._stream.close()
