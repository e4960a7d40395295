"""Work that comes from elsewhere than the API server: channels that a program writes to, and timers. No I/O."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apimachinery.controller.requests import MapContext, Request


class Channel:
    """Objects to work on, named by the program: ``send`` from any thread or task. What is sent before a controller
    listens is kept for the first that does; later on every controller that listens hears it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Request], None]] = []
        self._kept: dict[Request, None] = {}

    def send(self, request: Request) -> None:
        """Has an object looked at."""
        with self._lock:
            if not self._listeners:
                self._kept[request] = None
            for listener in self._listeners:
                listener(request)

    def listen(self, listener: Callable[[Request], None]) -> Callable[[], None]:
        """Passes on what comes; gives what ends that."""
        with self._lock:
            self._listeners.append(listener)
            for request in self._kept:
                listener(request)
            self._kept.clear()

        def end() -> None:
            with self._lock:
                self._listeners.remove(listener)

        return end


@dataclass(frozen=True, slots=True)
class Every:
    """A timer: ``requests`` names the objects to look at, each ``seconds``."""

    seconds: float
    requests: Callable[[MapContext], Iterable[Request]]

    def __post_init__(self) -> None:
        """Raises ``ValueError`` for a period that is not positive."""
        if not self.seconds > 0:
            raise ValueError(f"a timer cannot ring each {self.seconds:g} seconds")
