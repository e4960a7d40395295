"""What was found out once, by a key that clients had a part in: bounded by what the keys weigh, not by their number.

A name, a token or a path of a request may be as long as a head (1 MiB), so that a few thousand of them would take
gigabytes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from apimachinery.http.messages import User

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

REMEMBERED_BYTES = 8 << 20
ENTRY_BYTES = 500
"""What an entry takes besides its key."""


def weight_of_key(key: object) -> int:
    """What a text, a user, or tuples of them take in memory at most."""
    if isinstance(key, str | bytes):
        return 60 + 4 * len(key)
    if isinstance(key, User):
        key = (key.name, key.uid, key.groups, key.extra)
    if isinstance(key, tuple | frozenset):
        return 100 + sum(map(weight_of_key, key))
    return 60


class Remembered(Generic[Key, Value]):
    """Values by key. Past ``REMEMBERED_BYTES`` all go: they are found out again."""

    def __init__(self) -> None:
        self._values: dict[Key, Value] = {}
        self.get = self._values.get
        self.weight = 0

    def put(self, key: Key, value: Value) -> None:
        """Keeps a value, unless its key alone is too large."""
        if key in self._values:
            self._values[key] = value
            return
        size = ENTRY_BYTES + weight_of_key(key)
        if self.weight + size > REMEMBERED_BYTES:
            self.clear()
        # One huge key would push all others out.
        if size <= REMEMBERED_BYTES // 8:
            self._values[key] = value
            self.weight += size

    def clear(self) -> None:
        """Forgets all."""
        self._values.clear()
        self.weight = 0


class SharedQuestions(Generic[Value]):
    """Questions that several ask at the same time: one is asked, and all are given its answer."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Value]] = {}

    async def once(self, key: Hashable, ask: Callable[[], Coroutine[Any, Any, Value]]) -> Value:
        """The answer to the question of this key that is under way, or to a new one. Raises what that raises. Whoever
        gives up does not end it for the others."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(ask())
            task.add_done_callback(lambda done: self._end(key, done))
        return await asyncio.shield(task)

    def _end(self, key: Hashable, task: asyncio.Task[Value]) -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # Nobody may be left who takes it.
