"""The readers of a server of several processes, as the writer sees them: started, told things, started again.

Theory. One process, the *writer*, does all that one process does, and hands its log to *readers*. These are made by a
fork of a process that was forked before there were threads (``Spawn``). A reader is given two things: sockets bound to
the server's address, and a *door*, a socket over which it sends the other ends of the connections that it wants to have
with the writer:

    L   the log: the state, events, notes (``storage/following``)
    R   requests that it hands on (``http/handing_on``)

So no connection of this sort has an address that anybody else could open, and the end of the door is the end of the
reader. The writer keeps the sockets too: what waits in their queues outlives the reader. While there is no reader for
them, at the start and after one was killed, the writer accepts what comes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence

from apimachinery.http.handing_on import HandedConnection
from apimachinery.http.handshakes import PlainListener, TlsListener, listen_on
from apimachinery.http.protocol import Connections
from apimachinery.metrics import with_others
from apimachinery.storage.following.frames import FrameConnection, Message, PastRequest, ProcessNote
from apimachinery.storage.following.leading import Leader

log = logging.getLogger("kubewright.server")

LOG, REQUESTS = b"L", b"R"
READY, END, METRICS, AUDIT = "ready", "end", "metrics", "audit"
"""Notes: the reader listens; it is to end; its metrics, asked for and told; an event of its audit."""
FIRST_PAUSE, LAST_PAUSE, STEADY_SECONDS = 0.1, 5.0, 10.0
METRICS_SECONDS = 2.0
FILES_AT_ONCE = 8
Spawn = Callable[[int, Sequence[socket.socket]], None]
"""Starts the reader of a number, with its end of the door and its listening sockets. Raises OSError."""


class Readers:
    """``sockets`` has those of each reader; ``audit`` takes an event of theirs."""

    def __init__(
        self,
        spawn: Spawn,
        leader: Leader,
        connections: Connections,
        tls: ssl.SSLContext | None,
        sockets: Sequence[list[socket.socket]],
        audit: Callable[[bytes], None],
        end_seconds: float,
    ) -> None:
        self.leader, self.connections, self.tls, self.audit = leader, connections, tls, audit
        self._spawn, self._end_seconds = spawn, end_seconds
        self.ending = False
        self._readers = [_Reader(self, number, own) for number, own in enumerate(sockets, 1)]

    async def start(self) -> None:
        """Starts them; they are ready some time later."""
        for reader in self._readers:
            await reader.stand_in()
            reader.spawn(self._spawn)

    async def stop(self) -> None:
        """Waits until they have ended, and ends those that do not."""
        self.tell_end()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._end_seconds):
                for reader in self._readers:
                    await reader.gone.wait()
        for reader in self._readers:
            reader.close()

    def tell_end(self) -> None:
        """Asks them to end: no new connections, answers to what is under way."""
        if not self.ending:
            self.ending = True
            for reader in self._readers:
                reader.tell(ProcessNote(END))

    async def all_metrics(self, own: str) -> str:
        """A page of metrics with those of the readers, as far as they answer in time."""
        asked = {str(reader.number): reader.ask_metrics() for reader in self._readers}
        await asyncio.wait(asked.values(), timeout=METRICS_SECONDS)
        pages = {number: page.result() for number, page in asked.items() if page.done()}
        return with_others(own, pages)

    def again(self, reader: _Reader, lasted: float) -> None:
        """Starts one again that is gone."""
        reader.note_end(lasted)
        log.error("a reader ended; it is started again", extra={"worker": reader.number})
        reader.run(self._again(reader))

    async def _again(self, reader: _Reader) -> None:
        await reader.stand_in()
        await asyncio.sleep(reader.pause)
        if not self.ending:
            reader.spawn(self._spawn)


class _Reader:
    """One reader, whichever process it is at the time."""

    def __init__(self, readers: Readers, number: int, sockets: list[socket.socket]) -> None:
        self.number = number
        self.pause = FIRST_PAUSE
        self.gone = asyncio.Event()
        self.gone.set()
        self._readers, self._sockets = readers, sockets
        self._door: socket.socket | None = None
        self._log: FrameConnection | None = None
        self._started = 0.0
        self._stand_in: TlsListener | PlainListener | None = None
        self._metrics: asyncio.Future[str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def note_end(self, lasted: float) -> None:
        """Waits longer each time where it ends soon after it began, so that a fault at the start costs no core."""
        self.pause = FIRST_PAUSE if lasted > STEADY_SECONDS else min(self.pause * 2, LAST_PAUSE)

    def run(self, work: Awaitable[None]) -> None:
        """Runs something besides."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stand_in(self) -> None:
        """Accepts in this process what comes for the reader."""
        if self._stand_in is None:
            copies = [each.dup() for each in self._sockets]
            self._stand_in = await listen_on(self._readers.connections, self._readers.tls, copies)

    def spawn(self, spawn: Spawn) -> None:
        """Starts the process."""
        own, theirs = socket.socketpair()
        try:
            spawn(self.number, (theirs, *self._sockets))
        except OSError as fault:
            own.close()
            log.error("a reader cannot be started", extra={"worker": self.number, "reason": str(fault)})
            return
        finally:
            theirs.close()
        own.setblocking(False)
        self._door, self._started = own, time.monotonic()
        self.gone.clear()
        asyncio.get_running_loop().add_reader(own, self._open)

    def tell(self, note: ProcessNote) -> bool:
        """Sends a note; False where nobody would take it."""
        if self._log is None or self._log.closed:
            return False
        self._log.send(note)
        return True

    def ask_metrics(self) -> asyncio.Future[str]:
        """Its page of metrics, when it comes; empty where it ends before."""
        metrics = self._metrics
        if metrics is None:
            metrics = self._metrics = asyncio.get_running_loop().create_future()
            if not self.tell(ProcessNote(METRICS)):
                self._tell_metrics("")
        return metrics

    def _tell_metrics(self, page: str) -> None:
        waiting, self._metrics = self._metrics, None
        if waiting is not None and not waiting.done():
            waiting.set_result(page)

    def close(self) -> None:
        """Ends the process, if it has not ended by itself, by the end of its connections."""
        self._shut_door()
        self._leave()
        for task in tuple(self._tasks):
            task.cancel()
        if self._log is not None:
            self._log.abort()
        for each in self._sockets:
            each.close()

    # What comes through the door.

    def _open(self) -> None:
        door = self._door
        assert door is not None
        try:
            kind, files, _, _ = socket.recv_fds(door, 1, FILES_AT_ONCE)
        except BlockingIOError:
            return
        except OSError:
            kind, files = b"", []
        if not kind:
            self._shut_door()
            return
        for file in files:
            given = socket.socket(fileno=file)
            given.setblocking(False)
            self.run(self._take(kind, given))

    async def _take(self, kind: bytes, given: socket.socket) -> None:
        loop, readers = asyncio.get_running_loop(), self._readers
        with contextlib.suppress(OSError):
            if kind == REQUESTS:
                await loop.connect_accepted_socket(lambda: HandedConnection(readers.connections), given)
                return
            connection = FrameConnection(self._message, self._lost)
            await loop.connect_accepted_socket(lambda: connection, given)
            self._log = connection
            readers.leader.add(connection)
            if readers.ending:
                connection.send(ProcessNote(END))

    def _message(self, message: Message) -> None:
        connection = self._log
        match message:
            case PastRequest() if connection is not None:
                self._readers.leader.answer(connection, message)
            case ProcessNote(topic, body) if topic == READY:
                log.info("a reader serves", extra={"worker": self.number})
                self._leave()
            case ProcessNote(topic, body) if topic == METRICS:
                self._tell_metrics(body.decode())
            case ProcessNote(topic, body) if topic == AUDIT:
                self._readers.audit(body)

    def _leave(self) -> None:
        standing, self._stand_in = self._stand_in, None
        if standing is not None:
            standing.leave()

    def _lost(self) -> None:
        connection, self._log = self._log, None
        if connection is not None:
            self._readers.leader.remove(connection)
        self._tell_metrics("")
        self._shut_door()  # without its log it is of no use

    def _shut_door(self) -> None:
        door, self._door = self._door, None
        if door is not None:
            asyncio.get_running_loop().remove_reader(door)
            door.close()
            self.gone.set()
            if not self._readers.ending:
                self._readers.again(self, time.monotonic() - self._started)
