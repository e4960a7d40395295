"""Work that would hold the loop goes to a thread: large bodies, long lists, whatever is computed for them.

Python runs one thread at a time, so this saves no time; but a thread gives way every moment, and the loop answers
others meanwhile. A few threads are enough to let a short piece of work pass a long one, and few enough for the loop to
get its turn. Work waits in queues by user and by weight (``flows``), so that nobody waits for all of
somebody else's. What is handed over must not change what others see: it computes with objects of the request alone.

A request may cost so much CPU time and no more (``CPU_SECONDS``, all of its work on these threads together): work that
goes on after that, or after nobody waits for it any more, is ended where it is. That is why it must leave nothing half
done that others see.

What does stop the loop is the collector of cyclic garbage, which walks over all objects there are, again and again
while a large body becomes millions of them. None of that is garbage, and it holds no cycles; so the collector waits
while such work runs, and what the work has made is frozen: the collector does not see it, and it goes when nobody
refers to it any more. What little cyclic garbage is frozen with it is collected when much has come together, and then
when nobody asks for anything, because that does walk over everything.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, Generic, ParamSpec, TypeVar

from apimachinery.http.flows import LIGHT_SECONDS, FairLines, Line, on_behalf_of

MANY_RECORDS = 1_000
"""Above this a list is joined, encoded and selected from apart."""

YOUNG_OBJECTS = 10_000
"""In a server the collector walks over new objects once they are so many more. Python's default is 700, which writes
that wait for one commit hold several times over: it would walk over them again and again, and none is garbage."""
COLLECTED_EVERY = 20
"""Pieces of work after which young objects are collected where there is always some running."""
LONG_SECONDS = 0.01
"""What work of more CPU time has made may be much: it is frozen, which takes no time, instead of looked at."""
TIDY_SECONDS = 30.0
GROWN_OBJECTS = 200_000
"""Frozen objects are looked at when they are more by a half, and by so many, than those that were kept last time..."""
IDLE_SECONDS = 5.0
"""...and nobody has asked for anything for so long..."""
MOST_FREEZES = 100_000
"""...or objects were frozen so often, whoever asks. Even to count them stops everybody for 40 ms."""
MOST_SECONDS, BUSY_OBJECTS = 5.0, 1_000_000
"""...or the work that made them took so much CPU time, and they are more by so many, some 100 MB: a test suite that
installs definitions asks all the time. To walk over so many stops everybody for half a second."""

ASKING = 2
"""Where work is done that may wait for somebody else: on threads that compute little, and step aside when they wait."""
ASKING_THREADS = 32

CPU_SECONDS = 30.0
"""What a request may cost on the threads for work."""

_P = ParamSpec("_P")
_R = TypeVar("_R")
_A = TypeVar("_A")


# Where a system has no clock for another thread, CPU time is taken to pass as all time does.
_clock_of: Callable[[int], int] = getattr(
    time, "pthread_getcpuclockid", lambda thread: getattr(time, "CLOCK_MONOTONIC", 0)
)
_read_clock: Callable[[int], float] = getattr(time, "clock_gettime", lambda clock: time.monotonic())


class _Workers:
    """A few threads, and queues by flow (``FairLines``) before them."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, "kubewright-work")
        self._idle = threads
        self._lines: FairLines[tuple[Future[Any], Callable[[], Any]]] = FairLines()
        self._running: dict[Line[Any], tuple[int, float]] = {}
        """By its queue the clock of a piece's thread, and what that showed when the piece began."""
        self._lock = threading.Lock()

    def submit(self, flow: str, size: int, work: Callable[[], _R], *, heavy: bool = False) -> Future[_R]:
        """Has work done when its turn comes, on an object of so many bytes."""
        future: Future[_R] = Future()
        with self._lock:
            self._lines.put(flow, size, (future, work), heavy=heavy)
            self._begin_next()
        return future

    def look(self) -> None:
        """Counts light pieces that last as heavy, to be called several times a second: others may begin."""
        with self._lock:
            for line, (clock, began) in self._running.items():
                if line.light and _read_clock(clock) - began > LIGHT_SECONDS:
                    self._lines.reconsider(line)
            self._begin_next()

    def _begin_next(self) -> None:
        """Has a thread begin where there is one, and something for it; each that begins has the next one begin."""
        if self._idle and self._lines.is_ready():
            self._idle -= 1
            self._pool.submit(self._work)

    def _work(self) -> None:
        """Does what there is."""
        clock = _clock_of(threading.get_ident())
        while True:
            with self._lock:
                taken = self._lines.take()
                if taken is None:
                    self._idle += 1
                    return
                line, expected, (future, work) = taken
                # Or the tuple would keep the work alive until the next piece comes.
                del taken
                began = _read_clock(clock)
                self._running[line] = clock, began
                self._begin_next()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as fault:
                    future.set_exception(fault)
            # The answer belongs to whoever waits; a reference here would keep it until the next piece.
            del future, work
            with self._lock:
                del self._running[line]
                self._lines.done(line, expected, _read_clock(clock) - began)


THREADS = 8
"""More than pieces begin at a time: light ones that turned out to be heavy take no place of others."""
_threads = _Workers(THREADS)


class _Asking:
    """Threads for work that may wait for somebody else. So many compute at a time; who waits takes no place of theirs,
    so a webhook that hangs holds up nothing but the work that asked it."""

    def __init__(self, computing: int) -> None:
        self._free = computing
        self._idle = 0
        self._line: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._changed = threading.Condition()

    def submit(self, work: Callable[[], _R]) -> Future[_R]:
        """Has work done when there is room."""
        future: Future[_R] = Future()
        with self._changed:
            self._line.append((future, work))
            self._begin_next()
        return future

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Around a wait of one of the threads."""
        with self._changed:
            self._free += 1
            self._begin_next()
        try:
            yield
        finally:
            # It goes on at once: for a moment there may be more than so many.
            with self._changed:
                self._free -= 1

    def _begin_next(self) -> None:
        if self._free <= 0 or not self._line:
            return
        # Threads are made on demand, and end when idle: most servers never ask anybody.
        if self._idle < len(self._line):
            threading.Thread(target=self._work, name="kubewright-asking", daemon=True).start()
        self._changed.notify()

    def _work(self) -> None:
        while (piece := self._next()) is not None:
            future, work = piece
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as fault:
                    future.set_exception(fault)
            del future, work, piece
            with self._changed:
                self._free += 1

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """The next piece, None where none came for a while."""
        with self._changed:
            self._idle += 1
            try:
                if not self._changed.wait_for(lambda: self._line and self._free > 0, IDLE_SECONDS):
                    return None
            finally:
                self._idle -= 1
            self._free -= 1
            return self._line.popleft()


_asking = _Asking(ASKING_THREADS)
aside = _asking.aside


class _Collector:
    """The collector of cyclic garbage, held back while work runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._held_back = False
        self._since = 0
        self._asked_at = 0.0
        self.asked = False
        """Whether somebody has asked for something since ``tidy`` last looked."""
        self._kept = -1
        self._freezes = 0
        self._worked = 0.0
        self._tidy_at = 0.0

    def enter(self) -> None:
        """Work begins."""
        with self._lock:
            if not self._running and gc.isenabled():
                gc.disable()
                self._held_back = True
            self._running += 1

    def leave(self, cost: float) -> None:
        """Work ends that took so many seconds of CPU time."""
        with self._lock:
            self._running -= 1
            self._since += 1
            due = not self._running or self._since >= COLLECTED_EVERY
            # What other work has made meanwhile, however much that is, is among the young objects too.
            many = cost >= LONG_SECONDS or (due and self._running > 0)
            if many:
                # Freezing hides millions of objects at once; collecting would walk over them.
                self._worked += cost
                self._freeze()
            if due:
                self._since = 0
            if not self._running and self._held_back:
                gc.enable()
                self._held_back = False
        # Outside the lock: a collection may take milliseconds.
        if due and not many and gc.isenabled():
            gc.collect(0)

    def _freeze(self) -> None:
        if self._kept < 0:
            self._kept = gc.get_freeze_count()
        gc.freeze()
        self._freezes += 1

    def tidy(self) -> None:
        """Collects what was frozen and is garbage, if there can be much, while nobody waits for it or at last."""
        now = time.monotonic()
        if self.asked:
            self.asked, self._asked_at = False, now
        idle = now - self._asked_at > IDLE_SECONDS
        # Without freezes there is nothing to look at.
        if not self._freezes or self._running or now < self._tidy_at:
            return
        busy = not idle and self._freezes < MOST_FREEZES
        # While somebody asks for something, a full collection would be felt as latency.
        if busy and self._worked < MOST_SECONDS:
            return
        self._tidy_at, self._worked = now + TIDY_SECONDS, 0.0
        grown = gc.get_freeze_count() - self._kept * 3 // 2
        if busy and grown <= BUSY_OBJECTS:
            return
        self._freezes = 0
        if grown > GROWN_OBJECTS:
            gc.unfreeze()
            gc.collect()
            # What survived is kept out of the next collections again.
            gc.freeze()
            self._kept = gc.get_freeze_count()


_collector = _Collector()


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Around the start of a server: what is made meanwhile stays, so the collector never walks over it; from then on it
    collects young objects as a server needs it."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
        gc.set_threshold(YOUNG_OBJECTS)


class OverBudget(BaseException):
    """Work has cost more CPU time than a request may, or nobody waits for it any more. Not an ``Exception``: no handler
    of other faults is to take it for its own."""


class TooCostly(Exception):
    """The same, for whoever waits."""


class Spending:
    """What one request has cost on the threads, in seconds of CPU time; ``size`` is how many bytes it is about, and
    ``made`` what its work has answered and raised, where that is kept."""

    __slots__ = ("limit", "made", "size", "spent")

    def __init__(self, limit: float = CPU_SECONDS) -> None:
        self.limit = limit
        self.spent = 0.0
        self.size = 0
        self.made: list[Any] | None = None

    def keep(self, made: Any) -> None:
        """Keeps an answer or a fault if it may be large in parts."""
        if self.made is not None and not isinstance(made, bytes | str | None):
            self.made.append(made)


_spending: ContextVar[Spending | None] = ContextVar("spending", default=None)
_windows = threading.Lock()
_running: set[_Piece[Any]] = set()


def begin_request(*, keeps_what_is_made: bool = False) -> None:
    """Starts counting the work of this task as one request. With ``keeps_what_is_made``, what the work answers and
    raises is kept until ``made_for_request``."""
    spending = Spending()
    if keeps_what_is_made:
        spending.made = []
    _spending.set(spending)
    _collector.asked = True


def weigh(size: int) -> None:
    """Says that this task's request is about so many bytes more. Heavy work waits apart from light work."""
    spending = _spending.get()
    if spending is not None:
        spending.size += size


def end_costly() -> None:
    """Ends what has cost too much, and tidies up; to be called several times a second."""
    _collector.tidy()
    _threads.look()
    for piece in tuple(_running):
        piece.check()


class _Piece(Generic[_R]):
    """One piece of work. It can be ended while its window is open, by an exception that its thread raises soon."""

    def __init__(self, work: Callable[[], _R], spending: Spending | None) -> None:
        self._work = work
        self._spending = spending
        self._thread = 0
        self._clock = 0
        self._since = self._began = 0.0
        self._open = False
        self._ended = False

    def __call__(self) -> _R:
        """Does it. Raises what it raises, TooCostly."""
        _collector.enter()
        self._began = time.thread_time()
        try:
            if self._ended:
                # Ended while it waited in the queue.
                raise TooCostly
            self._thread = threading.get_ident()
            self._clock = _clock_of(self._thread)
            self._since = _read_clock(self._clock)
            # The exception may strike at any bytecode: the window is closed in a finally, and again in the handler.
            try:
                self._open = True
                try:
                    return self._work()
                finally:
                    self._close()
            except OverBudget:
                self._close()
                raise TooCostly from None
        finally:
            cost = time.thread_time() - self._began
            if self._spending is not None:
                self._spending.spent += cost
            _collector.leave(cost)

    def _close(self) -> None:
        """Closes the piece, so that nothing ends the thread's next one in its place."""
        with _windows:
            self._open = False
            # A pending exception that has not been raised yet would hit the thread's next piece.
            if self._ended:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)

    def check(self) -> None:
        """Ends it where it has cost too much."""
        if self._spending is None or not self._open or self._ended:
            return
        cost = self._spending.spent + _read_clock(self._clock) - self._since
        if cost > self._spending.limit:
            self.end()

    def end(self) -> None:
        """Ends it, or does not let it begin."""
        with _windows:
            if self._ended:
                return
            self._ended = True
            # Only while the window is open: outside it the thread runs somebody else's work.
            if self._open:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(OverBudget)
                )


def made_for_request() -> list[Any]:
    """What was kept of this task's request; from now on nothing is."""
    spending = _spending.get()
    if spending is None or spending.made is None:
        return []
    made, spending.made = spending.made, None
    return made


def on_thread(work: Callable[[_A], object], of: _A) -> None:
    """Has it done on a thread for work, on whose account nobody waits; what a user waits for passes it."""
    _threads.submit(on_behalf_of.get(), 0, lambda: work(of), heavy=True)


async def apart(work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """Runs ``work`` on a thread and returns what it returns. Raises what it raises, and TooCostly."""
    spending = _spending.get()
    piece = _Piece(lambda: work(*args, **kwargs), spending)
    _running.add(piece)
    try:
        size = 0 if spending is None else spending.size
        made = await asyncio.wrap_future(_threads.submit(on_behalf_of.get(), size, piece))
    except asyncio.CancelledError:
        # Nobody waits for the answer any more; the thread must not go on computing it.
        piece.end()
        raise
    except Exception as fault:
        if spending is not None:
            spending.keep(fault)
        raise
    finally:
        _running.discard(piece)
    if spending is not None:
        spending.keep(made)
    return made


async def apart_if(where: int, work: Callable[_P, _R], *args: _P.args, **kwargs: _P.kwargs) -> _R:
    """The same: here and now where ``where`` is false, on one of the other threads where it is ``ASKING``."""
    if not where:
        return work(*args, **kwargs)
    if where == ASKING:
        context = copy_context()  # Calls are made on behalf of whoever asks for this work.
        return await asyncio.wrap_future(_asking.submit(lambda: context.run(work, *args, **kwargs)))
    return await apart(work, *args, **kwargs)
