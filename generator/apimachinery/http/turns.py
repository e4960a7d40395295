"""Turns of the loop: work of many steps that stays on the loop goes on a step at a time, and others are served between.

Of all that waits in a ``Rota`` one step is begun in a turn of the loop. Flows take turns, and of a flow whoever came
first is next: nobody's next step waits for all that somebody else does.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from weakref import WeakKeyDictionary

from apimachinery.http.flows import on_behalf_of

TURN_SECONDS = 0.002
"""How long work that has to stay on the loop goes on before others have their turn."""


class Rota:
    """Who waits for a turn of the running loop, by flow."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, deque[Callable[[], None]]] = {}
        """By flow, in the order of their turns."""

    def put(self, flow: Hashable, begin: Callable[[], None]) -> None:
        """Has a step begun when its turn comes, in the next turn of the loop at the earliest."""
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._turn)
        self._lines.setdefault(flow, deque()).append(begin)

    async def turn(self, flow: Hashable) -> None:
        """Waits for a turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.put(flow, partial(_wake, turn))
        await turn

    def _turn(self) -> None:
        # dicts keep their order of insertion, so the first flow is the one that waited longest.
        flow = next(iter(self._lines))
        line = self._lines.pop(flow)
        begin = line.popleft()
        if line:
            self._lines[flow] = line  # behind the others
        # Scheduled before the step runs: a step that raises must not stop the others.
        if self._lines:
            asyncio.get_running_loop().call_soon(self._turn)
        begin()


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # who waits for it may have been cancelled
        turn.set_result(None)


_rotas: WeakKeyDictionary[asyncio.AbstractEventLoop, Rota] = WeakKeyDictionary()


class Turns:
    """Work of many steps that stays on the loop, because what it reads may change otherwise. Of all such work one piece
    goes on in a turn of the loop."""

    def __init__(self) -> None:
        self._since = time.thread_time()

    async def give_way(self) -> None:
        """Lets others have a turn of the loop once this one has taken its time; call it after each step."""
        if time.thread_time() - self._since > TURN_SECONDS:
            loop = asyncio.get_running_loop()
            rota = _rotas.get(loop)
            if rota is None:
                rota = _rotas[loop] = Rota()
            await rota.turn(on_behalf_of.get())
            self._since = time.thread_time()
