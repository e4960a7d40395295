"""One way to tell a story to sync and async clients: the sync one, as if it were to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from apimachinery.client.async_connection import AsyncClient
from apimachinery.client.async_resource import AsyncPages, AsyncWatch
from apimachinery.client.connection import Client
from apimachinery.client.resource import Pages, Watch


class Api:
    """A resource's client of either kind: methods are awaited, lists and watches iterated with ``async for``."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._api, name)

        def call(*arguments: Any, **options: Any) -> Any:
            answer = method(*arguments, **options)
            if isinstance(answer, AsyncPages):
                return answer
            if isinstance(answer, Pages):
                return Iterated(answer)
            return _awaited(answer)

        return call


class Iterated:
    """Pages of the sync client, iterated as those of the async one."""

    def __init__(self, pages: Pages[Any]) -> None:
        self._pages = pages

    async def __aiter__(self) -> AsyncIterator[Any]:
        for item in self._pages:
            yield item

    async def page(self, token: str = "") -> Any:
        return self._pages.page(token)


async def _awaited(answer: Any) -> Any:
    return await answer if isinstance(answer, Awaitable) else answer


async def take_until(watch: Watch[Any] | AsyncWatch[Any], kind: str) -> list[Any]:
    """The events of a watch up to the first of a kind; the watch is then closed."""
    found: list[Any] = []
    if isinstance(watch, AsyncWatch):
        async with watch:
            async for event in watch:
                found.append(event)
                if event.type == kind:
                    break
        return found
    with watch:
        for event in watch:
            found.append(event)
            if event.type == kind:
                break
    return found


async def take(watch: Watch[Any] | AsyncWatch[Any], count: int) -> list[Any]:
    """The first events of a watch, which is then closed."""
    found: list[Any] = []
    if isinstance(watch, AsyncWatch):
        async with watch:
            async for event in watch:
                found.append(event)
                if len(found) == count:
                    break
        return found
    with watch:
        for event in watch:
            found.append(event)
            if len(found) == count:
                break
    return found


async def close(client: Client | AsyncClient) -> None:
    """Closes either."""
    if isinstance(client, AsyncClient):
        await client.close()
    else:
        client.close()
