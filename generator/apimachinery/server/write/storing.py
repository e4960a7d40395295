"""How much of a user is stored at a time: what others write waits for all that was handed to the storage before it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

USER_BYTES = 1 << 20
"""Objects of so many bytes are on their way to the storage at a time, or one that is larger."""
_R = TypeVar("_R")


class _User:
    """What is under way of a user, and what waits, first come first."""

    __slots__ = ("size", "waiting")

    def __init__(self) -> None:
        self.size = 0
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()


class Storing:
    """Lets large writes of a user begin in turn. A write that was let in has its bytes counted until it ended."""

    def __init__(self) -> None:
        self._users: dict[str, _User] = {}

    async def in_turn(self, user: str, size: int, write: Coroutine[Any, Any, _R]) -> _R:
        """What a write of so many bytes answers or raises."""
        try:
            await self._enter(user, size)
        except BaseException:
            write.close()
            raise
        try:
            return await write
        finally:
            self._leave(user, size)

    async def _enter(self, name: str, size: int) -> None:
        user = self._users.get(name)
        if user is None:
            user = self._users[name] = _User()
        elif user.waiting or user.size + size > USER_BYTES:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            user.waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._leave(name, size)  # it was let in just now, and does not come
                raise
            return
        user.size += size

    def _leave(self, name: str, size: int) -> None:
        user = self._users[name]
        user.size -= size
        while user.waiting:
            wanted, turn = user.waiting[0]
            if not turn.done():
                if user.size and user.size + wanted > USER_BYTES:
                    return
                user.size += wanted
                turn.set_result(None)
            user.waiting.popleft()
        if not user.size:
            del self._users[name]
