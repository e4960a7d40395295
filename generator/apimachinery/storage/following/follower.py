"""The driver of a reader: a copy of the present records, kept by the log of the writer, which is another process.

Theory. The log is shared in the contract's sense: somebody else writes, and events come from a stream. How far the
writer is stands on the ``board``, so ``catch_up`` asks nobody: it waits until the copy has come that far, which it
mostly has. The past beyond what the watch cache keeps is asked of the writer. It takes no writes: requests that write
go to the writer as they are.

When the writer is gone there is nothing to serve any more: ``lost`` is called.
"""

from __future__ import annotations

import asyncio
import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import count

from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.following.frames import (
    FrameConnection,
    LogPiece,
    Message,
    PastPiece,
    PastRequest,
    ProcessNote,
    StatePiece,
    StorageCondition,
    record_of,
)
from apimachinery.storage.interface import (
    Compacted,
    Event,
    FutureRevision,
    Record,
    RecordPage,
    Reset,
    RunningWatch,
    Sink,
    StorageClosed,
    StorageReadOnly,
    StorageUnreachable,
    Value,
)
from apimachinery.storage.subscribers import Subscribers

BEHIND_SECONDS = 10.0
"""How long a read waits for the log of a writer that does not come on."""
EVENTS_AT_ONCE = 2_000


_Pieces = list[PastPiece]


class FollowerStorage:
    """See ``interface.Storage``. ``connection`` is the way to the writer, ``note`` is called with the notes of those
    who run it. Use ``await opened()`` before anything else."""

    def __init__(
        self,
        board: RevisionBoard,
        note: Callable[[ProcessNote], None],
        lost: Callable[[], None] = lambda: None,
    ) -> None:
        self.connection = FrameConnection(self._take, self._lose)
        self._board = board
        self._note, self._lost = note, lost
        self._records: dict[str, Record] = {}
        self._keys: list[str] | None = None
        self._revision = 0
        self._early: list[LogPiece] = []  # arrived before the state was complete
        self._opened = asyncio.Event()
        self._condition = StorageCondition("", "", {})
        self._subscribers = Subscribers()
        self._numbers = count()
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._asked: dict[int, tuple[_Pieces, asyncio.Future[_Pieces]]] = {}
        self._closed = False

    async def opened(self) -> None:
        """Returns when the state is here. Raises StorageUnreachable where the writer is gone."""
        await self._opened.wait()
        if not self._revision:
            raise StorageUnreachable("the writer ended before its state had come")

    @property
    def shared(self) -> bool:
        """Another process writes."""
        return True

    @property
    def writable(self) -> bool:
        """It takes no writes."""
        return False

    @property
    def revision(self) -> int:
        """How far the log has come here."""
        return self._revision

    @property
    def behind(self) -> bool:
        """Whether the writer has acknowledged something that is not here yet."""
        return self._board.revision > self._revision

    @property
    def compacted(self) -> int:
        """The oldest revision that the writer can read."""
        return self._board.compacted

    @property
    def failed(self) -> str:
        """Why the writer cannot write any more."""
        return "closed" if self._closed else self._condition.failed

    @property
    def trouble(self) -> str:
        """What is wrong with its storage."""
        return "closed" if self._closed else self._condition.trouble

    @property
    def unreadable(self) -> dict[str, str]:
        """What the writer cannot read."""
        return self._condition.unreadable

    # Reading.

    async def catch_up(self) -> None:
        """Waits until the copy has come to what is on the board."""
        wanted = self._board.revision
        if wanted <= self._revision:
            return
        if self._closed:
            raise StorageClosed("the storage is closed")
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The number breaks ties: futures cannot be compared.
        heapq.heappush(self._waiting, (wanted, next(self._numbers), waiter))
        try:
            async with asyncio.timeout(BEHIND_SECONDS):
                await waiter
        except TimeoutError:
            raise StorageUnreachable(
                f"the writer is at revision {wanted}, and its log came only up to {self._revision}"
            ) from None

    async def get(self, key: str, *, at: int = 0) -> Record | None:
        revision = await self._at(at)
        if revision == self._revision:
            return self._records.get(key)
        pieces = await self._ask("get", key, revision)
        return record_of(pieces[0].rows[0]) if pieces[0].rows else None

    async def list(self, prefix: str, *, at: int = 0, after: str = "", limit: int = 0) -> RecordPage:
        revision = await self._at(at)
        if revision != self._revision:
            pieces = await self._ask("list", prefix, revision, after, limit)
            records = [record_of(row) for piece in pieces for row in piece.rows]
            return RecordPage(records, *pieces[0].numbers)
        if self._keys is None:
            self._keys = sorted(self._records)
        low = max(bisect_left(self._keys, prefix), bisect_right(self._keys, after))
        end = bisect_left(self._keys, prefix + "\U0010ffff", low) if prefix else len(self._keys)
        high = min(low + limit, end) if limit else end
        return RecordPage([self._records[key] for key in self._keys[low:high]], revision, end - high)

    async def _at(self, at: int) -> int:
        """The revision to read at."""
        if at == 0 or at > self._revision:
            # Clients may know a revision from another process, which this copy reaches in a moment.
            await self.catch_up()
        if at == 0:
            return self._revision
        if at < self.compacted:
            raise Compacted(at, self.compacted)
        if at > self._revision:
            raise FutureRevision(at, self._revision)
        return at

    async def _ask(
        self, call: str, place: str, at: int, after: str = "", limit: int = 0
    ) -> Sequence[PastPiece]:
        """The pieces of the writer's answer. Raises Compacted, FutureRevision, StorageUnreachable."""
        if self.connection.closed:
            raise StorageUnreachable("the writer is gone")
        number = next(self._numbers)
        answered: asyncio.Future[_Pieces] = asyncio.get_running_loop().create_future()
        self._asked[number] = ([], answered)
        self.connection.send(PastRequest(number, call, place, at, after, limit))
        try:
            pieces = await answered
        finally:
            self._asked.pop(number, None)
        match pieces[0].fault:
            case "":
                return pieces
            case "Compacted":
                raise Compacted(*pieces[0].numbers)
            case "FutureRevision":
                raise FutureRevision(*pieces[0].numbers)
        raise StorageUnreachable(pieces[0].fault)

    # Writing, which is not done here.

    async def create(self, key: str, value: Value) -> Record:
        """Refuses."""
        raise StorageReadOnly(key)

    async def update(self, key: str, expected: int, value: Value) -> Record:
        """Refuses."""
        raise StorageReadOnly(key)

    async def delete(self, key: str, expected: int, last: Value, *, marked: bool = False) -> Record:
        """Refuses."""
        raise StorageReadOnly(key)

    async def take_turn(self, revision: int) -> bool:
        """The writer compacts."""
        return False

    async def compact(self, revision: int) -> None:
        """Leaves that to the writer."""

    # Watching.

    async def watch(self, prefix: str, after: int, sink: Sink, reset: Reset | None = None) -> RunningWatch:
        # The past comes from the writer in pieces; by the time it is here there may be more.
        while after < self._revision:
            past, after = await self.events(prefix, after, EVENTS_AT_ONCE)
            if past:
                sink(past)
        return self._subscribers.add(prefix, max(after, self._revision), sink, reset)

    async def events(self, prefix: str, after: int, limit: int) -> tuple[Sequence[Event], int]:
        if after < self.compacted:
            raise Compacted(after, self.compacted)
        until = self._revision
        if after >= until:
            return [], until
        pieces = await self._ask("events", prefix, after, limit=limit)
        found = [
            Event(record_of(row), None if before is None else record_of(before), row[5])
            for piece in pieces
            for row, before in zip(piece.rows, piece.before, strict=True)
            if row[1] <= until  # what came meanwhile is handed to the watches when it is here
        ]
        return found, min(pieces[0].numbers[0], until)

    # The log.

    def _take(self, message: Message) -> None:
        match message:
            case LogPiece():
                self._change(message)
            case StatePiece():
                self._load(message)
            case PastPiece():
                self._answered(message)
            case StorageCondition():
                self._condition = message
            case ProcessNote():
                self._note(message)

    def _load(self, piece: StatePiece) -> None:
        """Takes a piece of the state that the copy begins with."""
        self._records.update((row[0], record_of(row)) for row in piece.rows)
        if not piece.last:
            return
        self._revision = piece.revision
        early, self._early = self._early, []
        for changes in early:
            self._change(changes)
        self._opened.set()

    def _change(self, changes: LogPiece) -> None:
        if not self._revision:
            self._early.append(changes)
            return
        seen = self._revision
        # Without the changes that the state contained already.
        events = [self._apply(row) for row in changes.rows if row[1] > seen]
        if not events:
            return
        # The watches hear of an event before anybody who waits for its revision goes on.
        self._revision = events[-1].revision
        self._subscribers.publish(events)
        while self._waiting and self._waiting[0][0] <= self._revision:
            waiter = heapq.heappop(self._waiting)[2]
            if not waiter.done():
                waiter.set_result(None)

    def _apply(self, row: tuple[str, int, int, bytes, bool, bool]) -> Event:
        record = record_of(row)
        previous = self._records.get(record.key)
        if row[5]:
            self._records.pop(record.key, None)
            # The sorted keys are made again when a list needs them; most changes do not alter them.
            self._keys = None
        else:
            if previous is None:
                self._keys = None
            self._records[record.key] = record
        return Event(record, previous, row[5])

    def _answered(self, piece: PastPiece) -> None:
        asked = self._asked.get(piece.number)
        if asked is None:
            return  # whoever asked is gone
        pieces, waiter = asked
        pieces.append(piece)
        if piece.last and not waiter.done():
            waiter.set_result(pieces)

    def _lose(self) -> None:
        """Ends what waits for the writer, which is gone."""
        # Whoever waits for the state must learn that it never comes.
        self._opened.set()
        for _, waiter in self._asked.values():
            if not waiter.done():
                waiter.set_exception(StorageUnreachable("the writer is gone"))
        for _, _, late in self._waiting:
            if not late.done():
                late.set_exception(StorageUnreachable("the writer is gone"))
        self._waiting.clear()
        self._lost()

    async def close(self) -> None:
        """Ends. The connection is its owner's."""
        self._closed = True
