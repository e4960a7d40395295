"""A storage that is written in one place and read where its log is followed, as by the processes of one server."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.following.follower import FollowerStorage
from apimachinery.storage.following.frames import FrameConnection, Message, PastRequest, ProcessNote
from apimachinery.storage.following.leading import Leader
from apimachinery.storage.interface import Record, Storage, Value


async def follow(leader: Leader, board: RevisionBoard) -> tuple[FollowerStorage, list[ProcessNote]]:
    """A follower of a leader, over a socket; and the notes that it gets."""
    notes: list[ProcessNote] = []
    follower = FollowerStorage(board, notes.append)
    own, theirs = socket.socketpair()
    for each in (own, theirs):
        each.setblocking(False)

    def asked(message: Message) -> None:
        if isinstance(message, PastRequest):
            leader.answer(connection, message)

    connection = FrameConnection(asked, lambda: leader.remove(connection))
    loop = asyncio.get_running_loop()
    await loop.create_unix_connection(lambda: follower.connection, sock=own)
    await loop.connect_accepted_socket(lambda: connection, theirs)
    leader.add(connection)
    await follower.opened()
    return follower, notes


class FollowedStorage:
    """See ``interface.Storage``: writes go to the leader, reads and watches to the follower."""

    shared, writable = False, True

    def __init__(self, storage: Storage, board: RevisionBoard) -> None:
        self.storage, self.leader = storage, Leader(storage, board)
        self.follower: Any = None

    @classmethod
    async def over(cls, storage: Storage) -> Any:
        board = RevisionBoard()
        followed = cls(storage, board)
        await followed.leader.start()
        followed.follower, _ = await follow(followed.leader, board)
        return followed

    def __getattr__(self, name: str) -> Any:
        return getattr(self.follower, name)

    async def create(self, key: str, value: Value) -> Record:
        return await self._done(self.storage.create(key, value))

    async def update(self, key: str, expected: int, value: Value) -> Record:
        return await self._done(self.storage.update(key, expected, value))

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        return await self._done(self.storage.delete(key, expected, last, marked=marked))

    async def take_turn(self, revision: int) -> bool:
        return await self.storage.take_turn(revision)

    async def compact(self, revision: int) -> None:
        await self.storage.compact(revision)
        self.leader.look()

    async def _done(self, write: Any) -> Any:
        try:
            return await write
        finally:
            await self.follower.catch_up()

    async def close(self) -> None:
        await self.leader.close()
        await self.follower.close()
        self.follower.connection.abort()
        await self.storage.close()
