"""The writer of a server of several processes: all that one process is, and the readers next to it (``readers``)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from apimachinery.access.control import AccessOptions
from apimachinery.http.handshakes import bound_sockets, listen_on
from apimachinery.server.assembly.parts import Background, Ends, Make
from apimachinery.server.assembly.readers import Readers, Spawn
from apimachinery.server.assembly.server import MakeAudit, Server
from apimachinery.server.backend import BuildApi, ServerOptions
from apimachinery.server.fairness.fairness import ServerLimits
from apimachinery.storage.following.board import RevisionBoard
from apimachinery.storage.following.leading import Leader
from apimachinery.storage.interface import Storage

END_SECONDS = 5.0
"""How much longer than a server the readers may take to end."""


def share_of(limits: ServerLimits, workers: int, *, writes: bool) -> ServerLimits:
    """What one process lets in: its part of the reads, and all writes or none."""
    return ServerLimits(max(1, -(-limits.reads // workers)), limits.writes if writes else 0)


class LeadingServer(Server):
    """``workers`` processes answer, this one included."""

    def __init__(
        self,
        options: ServerOptions,
        access: AccessOptions,
        build: BuildApi,
        make_audit: MakeAudit | None,
        workers: int,
        board: RevisionBoard,
        spawn: Spawn,
    ) -> None:
        self._workers, self._board, self._spawn = workers, board, spawn
        self._leader: Leader | None = None
        self._reader_sockets: list[list[socket.socket]] = []
        options = replace(options, in_flight=share_of(options.in_flight, workers, writes=True))
        super().__init__(options, access, build, make_audit)

    def table(self) -> list[Make]:
        leader = self._led
        return [
            *super().table(),
            lambda: Ends(stop=leader().close),
            lambda: Background(lambda: leader().tell_condition()),
            lambda: self._readers,
        ]

    async def stop(self) -> None:
        """Ends in order, the readers at the same time; harmless when repeated."""
        if "_readers" in self.__dict__:
            self._readers.tell_end()
        await super().stop()

    def _led(self) -> Leader:
        assert self._leader is not None, "the storage is not open yet"
        return self._leader

    async def _make_storage(self) -> Storage:
        storage = await super()._make_storage()
        self._leader = Leader(storage, self._board)
        await self._leader.start()
        return storage

    async def _listen(self) -> None:
        options = self._options
        own, *others = await bound_sockets(options.host, options.port, self._workers)
        self._reader_sockets = others
        self._listener = await listen_on(self._connections, options.tls, own)
        self.port = self._listener.sockets[0].getsockname()[1]

    @cached_property
    def _readers(self) -> Readers:
        options = self._options
        return Readers(
            self._spawn,
            self._led(),
            self._connections,
            options.tls,
            self._reader_sockets,
            self._take_audit(),
            options.shutdown_delay_seconds + options.shutdown_seconds + END_SECONDS,
        )

    def _take_audit(self) -> Callable[[bytes], None]:
        audit = self._audit
        return (lambda event: None) if audit is None else audit.take_event

    async def _all_metrics(self, own: str) -> str:
        return await self._readers.all_metrics(own)
