"""/debug: what the process is doing, for those who may ask (a path like any other: authorization says who).

    /debug/pprof/                     what there is
    /debug/pprof/profile?seconds=30   where time goes: stacks of the loop's thread and the workers, sampled; one line a
                                      stack with its count, the form that flame graph tools read
    /debug/pprof/goroutine            what every task and thread waits for, now
    /debug/pprof/heap                 which kinds of objects there are most of
    /debug/flags/v                    PUT a word: the level of the log from now on

The paths are kube-apiserver's, the formats Python's. A profile costs a few percent while it runs, and one runs at a
time.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from types import FrameType

from apimachinery.http.messages import Request, Response
from apimachinery.http.steps import LONG, compute

TEXT = "text/plain; charset=utf-8"
PERIOD_SECONDS = 0.005
USUAL_SECONDS = 30.0
MOST_SECONDS = 55.0
"""Less than a request may take."""
DEPTH = 100
LEVELS = ("debug", "info", "warning", "error")
INDEX = """\
/debug/pprof/profile?seconds=30   sampled stacks, for flame graphs
/debug/pprof/goroutine            tasks and threads
/debug/pprof/heap                 objects by type
"""


class Debug:
    """Answers the paths below /debug; ``pages`` are more of them."""

    def __init__(self, pages: Mapping[str, Callable[[], str]] | None = None) -> None:
        self._profiling = False
        self._pages = pages or {}

    async def answer(self, request: Request) -> Response | None:
        """The answer, None for a path that is none."""
        match request.path:
            case "/debug/pprof" | "/debug/pprof/":
                return Response(200, INDEX.encode(), TEXT)
            case "/debug/pprof/profile":
                return await self._profile(request)
            case "/debug/pprof/goroutine":
                return Response(200, _waiting().encode(), TEXT)
            case "/debug/pprof/heap":
                return Response(200, (await compute(LONG, _heap)).encode(), TEXT)
            case "/debug/flags/v":
                return _set_level(request)
        page = self._pages.get(request.path)
        return Response(200, page().encode(), TEXT) if page is not None else None

    async def _profile(self, request: Request) -> Response:
        text = request.first("seconds", str(USUAL_SECONDS))
        try:
            seconds = float(text)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= MOST_SECONDS:
            fault = f"seconds={text}: give a number above 0, and {MOST_SECONDS:g} at most\n"
            return Response(400, fault.encode(), TEXT)
        if self._profiling:
            return Response(409, b"a profile is being taken; one at a time\n", TEXT)
        self._profiling = True
        try:
            stacks = await asyncio.to_thread(_sample, seconds, threading.get_ident())
        finally:
            self._profiling = False
        lines = [f"{stack} {count}\n" for stack, count in stacks.most_common()]
        return Response(200, "".join(lines).encode(), TEXT)


def _sample(seconds: float, loop: int) -> Counter[str]:
    """Stacks and how often they were seen; of threads but this one."""
    own, stacks = threading.get_ident(), Counter[str]()
    names = {loop: "loop"}
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        time.sleep(PERIOD_SECONDS)
        for identity, frame in sys._current_frames().items():
            if identity != own:
                stacks[_folded(names.get(identity, "worker"), frame)] += 1
    return stacks


def _folded(thread: str, frame: FrameType | None) -> str:
    """A stack on a line, outermost first."""
    parts: list[str] = []
    while frame is not None and len(parts) < DEPTH:
        code = frame.f_code
        module = frame.f_globals.get("__name__", "?")
        parts.append(f"{module}.{code.co_qualname}:{frame.f_lineno}".replace(";", ",").replace(" ", "_"))
        frame = frame.f_back
    return ";".join([thread, *reversed(parts)])


def _waiting() -> str:
    """What tasks and threads wait for, the same stacks together."""
    stacks: Counter[str] = Counter()
    for task in asyncio.all_tasks():
        frames = task.get_stack(limit=DEPTH)
        places = [
            f"    {frame.f_code.co_qualname} {frame.f_code.co_filename}:{frame.f_lineno}" for frame in frames
        ]
        stacks["\n".join(places)] += 1
    lines = [f"{sum(stacks.values())} tasks"]
    for stack, count in stacks.most_common():
        lines.append(f"{count} x\n{stack}")
    for identity, frame in sys._current_frames().items():
        name = next((thread.name for thread in threading.enumerate() if thread.ident == identity), "?")
        lines.append(f"thread {name}\n{''.join(traceback.format_stack(frame)).rstrip()}")
    return "\n".join(lines) + "\n"


def _heap() -> str:
    kinds: Counter[str] = Counter(
        f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects()
    )
    lines = [f"{count:10d} {name}" for name, count in kinds.most_common(100)]
    return "\n".join([f"{sum(kinds.values())} objects that the collector follows", *lines]) + "\n"


def _set_level(request: Request) -> Response:
    """Shows the level of the log, or sets it."""
    logger = logging.getLogger("kubewright")
    if request.method == "GET":
        return Response(200, f"{logging.getLevelName(logger.getEffectiveLevel()).lower()}\n".encode(), TEXT)
    if request.method != "PUT":
        return Response(406, b"unrecognized http method\n", TEXT)
    level = request.body.decode("utf-8", "replace").strip().lower()
    if level not in LEVELS:
        return Response(400, f"the level is one of {', '.join(LEVELS)}\n".encode(), TEXT)
    logger.setLevel(level.upper())
    return Response(200, f"successfully set the level of the log to {level}\n".encode(), TEXT)
