# Made from async_reading.py by build/plain.py: edit that one.
"""What lists and watches give: pages and events, for threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from apimachinery.client import calls
from apimachinery.client.calls import Codec, Event, ListOptions, Page, Target
from apimachinery.client.closing import Closing
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import LineStream
from apimachinery.client.errors import UnreadableObject

T = TypeVar("T")


class Pages(Generic[T]):
    """A list, read page by page as it is iterated. One snapshot: every page is of the same version. Objects that do
    not fit the model are left out and reported (``Page.unreadable``, ``Client.on_unreadable``).

    Iterating after an expired continue token raises ``Gone``: list again.
    """

    def __init__(self, client: Client, target: Target, codec: Codec[T], options: ListOptions) -> None:
        self._client = client
        self._target = target
        self._codec = codec
        self._options = options

    def pages(self) -> Iterator[Page[T]]:
        """The pages, each with its items, version and remaining count."""
        token, tokens = "", calls.Tokens()
        while True:
            page = self.page(token)
            yield page
            token = tokens.take(page.next_token)
            if not token:
                return

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def page(self, token: str = "") -> Page[T]:
        """One page: the first, or the one that a token of the page before names."""
        page = self._client.run(calls.list_page(self._target, self._codec, self._options, token))
        self._client._report_unreadable(page.unreadable)
        return page


class Watch(Closing, Generic[T]):
    """Events as they happen: iterate; ``close`` (from any thread) or leaving the ``with`` block ends it.

    Ends by itself when the server ends it. Raises ``Gone`` where the version is too old: list again. Events of
    objects that do not fit the model are left out and reported (``Client.on_unreadable``).
    """

    def __init__(self, client: Client, stream: LineStream, codec: Codec[T]) -> None:
        self._client = client
        self._stream = stream
        self._codec = codec

    def __iter__(self) -> Iterator[Event[T]]:
        try:
            for line in self._stream:
                try:
                    event = calls.event(line, self._codec)
                except UnreadableObject as error:
                    self._client._report_unreadable([error])
                    continue
                yield event
        finally:
            self.close()

    def close(self) -> None:
        """Ends the watch."""
        self._stream.close()


class LogLines(Closing):
    """A log as it is written, by lines of text, undecodable bytes replaced: iterate.

    ``close`` (from any thread) or leaving the ``with`` block ends it."""

    def __init__(self, stream: LineStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[str]:
        try:
            for line in self._stream:
                yield line.decode("utf-8", "replace")
        finally:
            self.close()

    def close(self) -> None:
        """Ends it."""
        self._stream.close()
