"""What concurrency is made of in programs with threads; ``async_running`` has the same names for asyncio."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

_log = logging.getLogger("kubewright.controller")


def sleep(seconds: float) -> None:
    """Waits."""
    time.sleep(seconds)


class Bell:
    """Wakes waiters, from any thread. A waiter says which ring it heard last, so that none is missed."""

    def __init__(self) -> None:
        self.rings = 0
        self._changed = threading.Condition()

    def ring(self) -> None:
        """Wakes everybody who waits."""
        with self._changed:
            self.rings += 1
            self._changed.notify_all()

    def wait(self, heard: int, seconds: float | None = None) -> None:
        """Waits for a ring after number ``heard``, at most that many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.rings != heard, seconds)


class Flag:
    """Set once; whoever waits for it goes on."""

    def __init__(self) -> None:
        self._event = threading.Event()

    @property
    def is_set(self) -> bool:
        """Whether ``set`` was called."""
        return self._event.is_set()

    def set(self) -> None:
        """Lets everybody go on; from any thread."""
        self._event.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until it is set, at most that many seconds; whether it is."""
        return self._event.wait(seconds)


class RunningGroup:
    """Things that run at the same time."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def spawn(self, name: str, function: Callable[..., None], *arguments: Any) -> None:
        """Starts ``function``; what it raises is logged."""
        thread = threading.Thread(
            target=_guarded, args=(name, function, arguments), name=f"kubewright-{name}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def cancel(self) -> None:
        """Does nothing: a thread cannot be ended from outside."""

    @property
    def ended(self) -> list[str]:
        """The names of those that have ended."""
        return [thread.name.removeprefix("kubewright-") for thread in self._threads if not thread.is_alive()]

    def join(self, seconds: float | None = None) -> bool:
        """Waits for the end of all of them; whether they ended in time. Threads that did not go on as daemons."""
        ends = None if seconds is None else time.monotonic() + seconds
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if ends is None else max(0.0, ends - time.monotonic()))
        late = [t for t in self._threads if t.is_alive() and t is not threading.current_thread()]
        self._threads = []
        return not late


def _guarded(name: str, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    try:
        function(*arguments)
    except Exception:  # nobody else is there to hear of it
        _log.exception("%s ended with an error", name)


def on_signals(call: Callable[[], None]) -> Callable[[], None]:
    """Calls on SIGTERM and SIGINT; gives what undoes that. Does nothing outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(*_: object) -> None:
        # in a thread: a handler may interrupt the main thread while it holds the very lock that ``call`` takes
        threading.Thread(target=call, daemon=True).start()

    for number in before:
        signal.signal(number, handle)

    def undo() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return undo
