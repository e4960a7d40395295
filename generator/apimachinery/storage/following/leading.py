"""The writer's side: hands its log to the readers, and answers what they ask about the past.

It watches the storage before the watch cache does, so the board has a revision before anybody hears of it, and the
events are in the readers' sockets before a write is acknowledged. A reader that does not take them is cut off rather
than kept for: it is started again with the state of then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence

from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.following.frames import (
    FrameConnection,
    PastPiece,
    PastRequest,
    StatePiece,
    StorageCondition,
    changes_of,
    framed,
    row_of,
)
from apimachinery.storage.interface import Compacted, Event, FutureRevision, Record, Storage, StorageError

log = logging.getLogger("kubewright.storage")

PIECE_RECORDS, PIECE_BYTES = 500, 1 << 20
UNSENT_BYTES = 256 << 20
CONDITION_SECONDS = 0.2


class Leader:
    """Serves the log of a storage that this process owns."""

    def __init__(self, storage: Storage, board: RevisionBoard) -> None:
        assert not storage.shared, "who follows a shared log needs its driver"
        self._storage, self._board = storage, board
        self._followers: set[FrameConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = self._condition()

    async def start(self) -> None:
        """Watches the storage; to be called before anybody else does."""
        self._note_revision(self._storage.revision)
        self._watch = await self._storage.watch("", self._storage.revision, self._publish)

    def add(self, connection: FrameConnection) -> None:
        """Sends the state, and from now on every change."""
        self._followers.add(connection)
        connection.send(self._condition())
        # The state is sent in a task: changes that happen meanwhile go out between its pieces, and the reader keeps
        # them.
        self._run(self._send_state(connection))

    def remove(self, connection: FrameConnection) -> None:
        """Forgets a follower."""
        self._followers.discard(connection)

    def answer(self, connection: FrameConnection, asked: PastRequest) -> None:
        """Answers what a follower asks, when it is read."""
        self._run(self._answer(connection, asked))

    async def tell_condition(self) -> None:
        """Tells how the storage is whenever that changes, for ever."""
        while True:
            await asyncio.sleep(CONDITION_SECONDS)
            self.look()

    def look(self) -> None:
        """Tells how the storage is, if that has changed."""
        self._board.compacted = self._storage.compacted
        condition = self._condition()
        if condition != self._told:
            self._told = condition
            data = framed(condition)
            for each in tuple(self._followers):
                each.send_framed(data)

    async def close(self) -> None:
        """Ends."""
        self._watch.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _run(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _note_revision(self, revision: int) -> None:
        self._board.revision = revision
        self._board.compacted = self._storage.compacted

    def _publish(self, events: Sequence[Event]) -> None:
        # Before the readers hear of it, as the board requires.
        self._note_revision(events[-1].revision)
        if not self._followers:
            return
        data = framed(changes_of(events))
        for each in tuple(self._followers):
            each.send_framed(data)
            if each.unsent > UNSENT_BYTES:
                log.error("a reader does not take the log; it is started again")
                # A slow reader would make the writer hold its log for it without bound.
                each.abort()

    def _condition(self) -> StorageCondition:
        storage = self._storage
        return StorageCondition(storage.failed, storage.trouble, dict(storage.unreadable))

    async def _send_state(self, connection: FrameConnection) -> None:
        page = await self._storage.list("")
        for low, high in _pieces(page.records):
            rows = [row_of(record) for record in page.records[low:high]]
            connection.send(StatePiece(page.revision, rows, high == len(page.records)))
            await connection.drain()
            # Others have their turn between two pieces.
            await asyncio.sleep(0)

    async def _answer(self, connection: FrameConnection, asked: PastRequest) -> None:
        try:
            records, before, numbers, deleted = await _CALLS[asked.call](self._storage, asked)
        except (Compacted, FutureRevision) as fault:
            other = fault.oldest if isinstance(fault, Compacted) else fault.current
            connection.send(PastPiece(asked.number, [], True, type(fault).__name__, (fault.revision, other)))
            return
        except StorageError as fault:
            connection.send(PastPiece(asked.number, [], True, str(fault)))
            return
        for low, high in _pieces(records):
            rows = [
                row_of(record, gone)
                for record, gone in zip(records[low:high], deleted[low:high], strict=True)
            ]
            earlier = [None if each is None else row_of(each) for each in before[low:high]]
            connection.send(PastPiece(asked.number, rows, high == len(records), "", numbers, earlier))
            await connection.drain()
            await asyncio.sleep(0)


def _pieces(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """Where the pieces begin and end in which records are sent; one that is empty where there are none."""
    low, size = 0, 0
    for place, record in enumerate(records):
        if place > low and (place - low == PIECE_RECORDS or size + len(record.value) > PIECE_BYTES):
            yield low, place
            low, size = place, 0
        size += len(record.value)
    yield low, len(records)


_Found = tuple[Sequence[Record], Sequence[Record | None], tuple[int, int], Sequence[bool]]


async def _get(storage: Storage, asked: PastRequest) -> _Found:
    record = await storage.get(asked.place, at=asked.at)
    records = [] if record is None else [record]
    return records, [], (0, 0), [False] * len(records)


async def _list(storage: Storage, asked: PastRequest) -> _Found:
    page = await storage.list(asked.place, at=asked.at, after=asked.after, limit=asked.limit)
    return page.records, [], (page.revision, page.remaining), [False] * len(page.records)


async def _events(storage: Storage, asked: PastRequest) -> _Found:
    events, reached = await storage.events(asked.place, asked.at, asked.limit)
    return (
        [event.record for event in events],
        [event.previous for event in events],
        (reached, 0),
        [event.deleted for event in events],
    )


_CALLS: dict[str, Callable[[Storage, PastRequest], Awaitable[_Found]]] = {
    "get": _get,
    "list": _list,
    "events": _events,
}
