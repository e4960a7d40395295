"""Large bodies are read a few at a time: what sixty sockets have ready would take all of a turn of the loop.

A connection that delivers much is paused until its turn; those that deliver little are never paused. Flows take turns,
and of a flow the connection that delivered first is next: nobody's next request waits for all that somebody else sends.
So a turn of the loop reads about ``TURN_BYTES`` of large bodies, however many there are: what others wait for takes
some turns, each of which has to be short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Protocol

from apimachinery.http.turns import Rota

MUCH_BYTES = 32 << 10
"""What one delivery has of a large body; the rest of the system reads 64 to 256 KiB at once."""
TURN_BYTES = 64 << 10


class Pausable(Protocol):
    """A connection whose socket can be left unread for a while."""

    def pause(self) -> None:
        """Leaves it unread."""

    def resume(self) -> None:
        """Reads it again, if nothing else keeps it from being read."""


class Reading:
    """Whose turn it is to be read."""

    def __init__(self) -> None:
        self._rota = Rota()
        self._left = TURN_BYTES
        self._taking = False

    def took(self, connection: Pausable, flow: Hashable, size: int) -> None:
        """Counts what a connection of a flow delivered; it may have to wait for its next turn."""
        if size < MUCH_BYTES:
            return
        self._left -= size
        if not self._taking:
            self._taking = True
            # The next turn begins when everything that is ready now has been served.
            asyncio.get_running_loop().call_soon(self._begin_turn)
        if self._left <= 0:
            connection.pause()
            self._rota.put(flow, connection.resume)

    def _begin_turn(self) -> None:
        self._left, self._taking = TURN_BYTES, False
