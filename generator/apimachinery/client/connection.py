"""The client of programs with threads: sends calls, retries by the policy, turns failures into exceptions.

Generated clients derive from it and add one property a group version. ``async_connection`` holds its twin, apart
because asyncio takes longer to import than all of this.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, Self, TypeAlias, TypeVar

from apimachinery.client.calls import Call
from apimachinery.client.closing import Closing
from apimachinery.client.config import Config
from apimachinery.client.endpoint import LineStream, Request, TransportError, TransportResponse
from apimachinery.client.errors import UnreadableObject, error_of
from apimachinery.client.links import Wire
from apimachinery.client.retry import NO_RETRIES, RetryPolicy
from apimachinery.client.throttle import Limits
from apimachinery.client.transport import Transport
from apimachinery.client.verbs import AnyKind
from apimachinery.meta.errors import ApiError
from apimachinery.meta.printing import printable
from apimachinery.queue.bucket import TokenBucket

T = TypeVar("T")

MOST_WARNINGS: Final = 1000
LONGEST_WARNING: Final = 4096
DIAL: Final = Request("POST", "/")
"""What a connection to a pod counts as for a fence: commands change things."""
READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

Fence: TypeAlias = Callable[[], float]
"""Gives for how many seconds writes are still allowed; raises an error where they are not."""
Note: TypeAlias = Callable[[Request, bytes, Any], None]
"""Takes note of a write that was answered: the request, the answer's body and what it was read as."""

_log = logging.getLogger("kubewright.client")
_log.addHandler(logging.NullHandler())  # programs say where logs go


class Connection:
    """What both clients hold: where to go, and the defaults of calls."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
        limits: Limits | None = None,
        on_unreadable: Callable[[UnreadableObject], None] | None = None,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """``config`` as kubectl would find it if None; ``timeout`` bounds each try, in seconds;
        ``field_manager`` is the default of every write; ``on_unreadable`` is called with objects that lists and watches
        leave out because they do not fit their model, ``on_warning`` of the server's ``Warning`` headers (without
        it they are logged, each once). Raises ``ConfigError``."""
        self.config = config if config is not None else Config.load()
        self.timeout = timeout
        self.retry = retry if retry is not None else RetryPolicy()
        self.field_manager = field_manager
        self.on_unreadable = on_unreadable
        self.unreadable_count = 0
        self.on_warning = on_warning
        self.limits = limits if limits is not None else Limits()
        self._seconds: float | None = None
        self._fence: Fence | None = None
        self._note: Note | None = None
        self._bucket = TokenBucket(self.limits.qps, self.limits.burst)
        self._warned: set[str] = set()
        self._open()

    def _open(self) -> None:
        """Makes the transport."""
        raise NotImplementedError

    def _report_unreadable(self, objects: Iterable[UnreadableObject]) -> None:
        """Counts, logs and passes on what a list or watch had to leave out."""
        for found in objects:
            self.unreadable_count += 1
            _log.warning("%s/%s is left out: %s", found.namespace, found.name, found)
            if self.on_unreadable is not None:
                try:
                    self.on_unreadable(found)
                except Exception:  # somebody else's hook must not end a list or watch
                    _log.exception("on_unreadable failed")

    def _read(self, call: Call[T], response: TransportResponse) -> T:
        """What an answer says; a write is taken note of. Raises the ``ApiError`` of a failure."""
        body = self._accept(response).body
        value = call.decode(body)
        if self._note is not None and call.request.method not in READS:
            self._note(call.request, body, value)
        return value

    def _accept(self, response: TransportResponse) -> TransportResponse:
        """An answer that is not a failure; raises the ``ApiError`` of one that is. Warnings are passed on."""
        if "warning" in response.headers:
            self._warn(response.headers["warning"])
        if response.code >= 400:
            raise error_of(response)
        return response

    def _warn(self, header: str) -> None:
        for text in warnings_of(header):
            if self.on_warning is not None:
                try:
                    self.on_warning(text)
                except Exception:  # somebody else's hook must not end a call
                    _log.exception("on_warning failed")
            elif text not in self._warned and len(self._warned) < MOST_WARNINGS:
                self._warned.add(text)
                _log.warning("the server warns: %s", text)

    def within(self, seconds: float) -> Self:
        """This client with another time limit: ``seconds`` for each call as a whole, with all its tries. Connections,
        limits and credentials are shared; closing it closes them. Raises ValueError for a limit that is not positive.
        """
        if not seconds > 0:
            raise ValueError(f"a call cannot be done within {seconds:g} seconds")
        made = self._copied()
        made._seconds = seconds
        made.retry = replace(self.retry, budget=min(self.retry.budget, seconds))
        return made

    def _fenced(self, fence: Fence) -> Self:
        """This client, whose writes and connections to pods need the leave of ``fence``: before each try, and no try
        lasts longer than ``fence`` says. What it raises is raised to the caller. Reads pass."""
        made = self._copied()
        made._fence = fence
        return made

    def _noting(self, note: Note) -> Self:
        """This client, with ``note`` called for each write that succeeded."""
        made = self._copied()
        made._note = note
        return made

    def _separate(self) -> Self:
        """The same client over connections and limits of its own, so that no other call holds up its calls; close
        it too. Nothing is retried."""
        made = self._copied()
        made.retry = NO_RETRIES
        made._bucket = TokenBucket(self.limits.qps, self.limits.burst)
        made._open()
        return made

    def _copied(self) -> Self:
        made = copy(self)
        for name in [
            name for name in vars(made) if isinstance(getattr(type(made), name, None), cached_property)
        ]:
            del vars(made)[name]  # groups of resources that hold the client they are of
        return made

    def _ends(self) -> float | None:
        """When a call that begins now has to be done (``time.monotonic``); None where only tries are limited."""
        return None if self._seconds is None else time.monotonic() + self._seconds

    def _left(self, request: Request, ends: float | None) -> float:
        """For how many seconds a request may go on. Raises what the fence raises."""
        left = float("inf") if ends is None else max(ends - time.monotonic(), 0.001)
        if self._fence is not None and request.method not in READS:
            left = min(left, self._fence())
        return left

    def _timed(self, request: Request, ends: float | None) -> Request:
        """The request of a try, with its time limit."""
        return replace(request, timeout=min(self.timeout, self._left(request, ends)))

    def _held_up(self, request: Request, ends: float | None) -> float:
        """How long the client's own rate limit holds a request up. Raises ``TransportError`` where that is longer
        than the call may take."""
        wait = self._bucket.reserve()
        if wait and wait > self._left(request, ends):
            text = f"{request.method} {request.path}: the client's own limit holds it up for {wait:.1f} s"
            raise TransportError(text, sent=False, timed_out=True)
        return wait


class Client(Connection, AnyKind, Closing):
    """A connection to one API server, for threads."""

    _transport: Transport

    def _open(self) -> None:
        self._transport = Transport(self.config, self.limits)

    def run(self, call: Call[T]) -> T:
        """Sends a call and reads its answer. Raises ``ApiError`` (by reason) and ``TransportError``."""
        ends, patience = self._ends(), self.retry.start()
        wait: float | None
        while True:
            if wait := self._held_up(call.request, ends):
                time.sleep(wait)
            try:
                return self._read(call, self._transport.send(self._timed(call.request, ends)))
            except (ApiError, TransportError) as error:
                wait = patience.wait_before_next(error, repeatable=call.repeatable)
                if wait is None or wait > self._left(call.request, ends):
                    raise
            time.sleep(wait)

    def _stream(self, request: Request) -> LineStream:
        """Opens an answer that goes on (a watch, a log). Raises as ``run`` does; nothing is retried."""
        if wait := self._held_up(request, None):
            time.sleep(wait)
        stream = self._transport.stream(request)
        if stream.code >= 400:
            try:
                raise error_of(TransportResponse(stream.code, stream.headers, stream.read()))
            finally:
                stream.close()
        if "warning" in stream.headers:
            self._warn(stream.headers["warning"])
        return stream

    def _dial(self) -> Wire:
        """A connection of its own for another protocol (websockets). Raises ``TransportError``, ``ConfigError``."""
        return self._transport.dial(min(self.timeout, self._left(DIAL, self._ends())))

    def close(self) -> None:
        """Closes pooled connections."""
        self._transport.close()


_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def warnings_of(header: str) -> list[str]:
    """The texts of ``Warning`` headers (RFC 7234, section 5.5; kube-apiserver sends code 299 alone), fit for a
    terminal: control characters are written as escapes, and no text is longer than that of a kube-apiserver."""
    found = (re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(header))
    return [printable(text[:LONGEST_WARNING]) for text in found]
