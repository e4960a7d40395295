"""What is on its way to the storage: how much of a user at a time, since what others write waits for all that was
handed over before it; and which keys, since who changes an object that is being written would compute in vain."""

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


class KeysUnderWay:
    """The keys that are being written. Whoever wants to change an object waits until nobody writes it, and then reads:
    what is computed from an object that somebody replaces meanwhile has to be computed again.

    Nothing is locked: who had his turn may write, or not, or late. So those who wait are let on one after the other, in
    the order in which they came, each in a turn of the loop, until one of them writes.
    """

    def __init__(self) -> None:
        self._writes: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def begin(self, key: str) -> None:
        """Notes that a write of the key begins."""
        self._writes[key] = self._writes.get(key, 0) + 1

    def end(self, key: str) -> None:
        """Notes that it has ended, and lets on who waits for that."""
        others = self._writes.pop(key) - 1
        if others:
            self._writes[key] = others
        elif key in self._waiting:
            self._let_on(key)

    def is_free(self, key: str) -> bool:
        """Whether nobody writes the key, nor waits for that."""
        return key not in self._writes and key not in self._waiting

    async def turn(self, key: str) -> None:
        """Returns when whoever came before has written or does not write, and nobody writes the key now."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, deque()).append(turn)
        await turn
        while key in self._writes:  # somebody was faster, who had not to wait
            turn = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(key, deque()).appendleft(turn)
            await turn

    def _let_on(self, key: str) -> None:
        if key in self._writes or (waiting := self._waiting.get(key)) is None:
            return  # the end of that write lets on
        while waiting:
            turn = waiting.popleft()
            if not turn.done():  # who waited may have been cancelled
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._let_on, key)
                return
        del self._waiting[key]
