"""The client of programs with threads: sends calls, retries by the policy, turns failures into exceptions.

Generated clients derive from it and add one property a group version. ``async_connection`` holds its twin, apart
because asyncio takes longer to import than all of this.
"""

from __future__ import annotations

import time
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from apimachinery.client.calls import Call
from apimachinery.client.config import Config
from apimachinery.client.errors import error_of
from apimachinery.client.retry import RetryPolicy
from apimachinery.client.transport import (
    LineStream,
    Request,
    Response,
    SyncTransport,
    TransportError,
)
from apimachinery.meta.errors import ApiError

T = TypeVar("T")


class Connection:
    """What both clients hold: where to go, and the defaults of calls."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
    ) -> None:
        """``config`` as kubectl would find it if None; ``timeout`` bounds each try, in seconds;
        ``field_manager`` is the default of every write. Raises ``ConfigError``."""
        self.config = config if config is not None else Config.load()
        self.timeout = timeout
        self.retry = retry if retry is not None else RetryPolicy()
        self.field_manager = field_manager

    def timed(self, call: Call[T]) -> Request:
        """The request of a call, with this client's time limit."""
        return replace(call.request, timeout=self.timeout)


class Client(Connection):
    """A connection to one API server, for threads."""

    def __init__(
        self,
        config: Config | None = None,
        *,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        field_manager: str = "",
    ) -> None:
        super().__init__(config, timeout=timeout, retry=retry, field_manager=field_manager)
        self._transport = SyncTransport(self.config)

    def run(self, call: Call[T]) -> T:
        """Sends a call and reads its answer. Raises ``ApiError`` (by reason) and ``TransportError``."""
        request, patience = self.timed(call), self.retry.start()
        while True:
            try:
                return call.decode(accept(self._transport.send(request)).body)
            except (ApiError, TransportError) as error:
                wait = patience.wait_before_next(error, repeatable=call.repeatable)
                if wait is None:
                    raise
            time.sleep(wait)

    def stream(self, request: Request) -> LineStream:
        """Opens an answer that goes on (a watch, a log). Raises as ``run`` does; nothing is retried."""
        stream = self._transport.stream(request)
        if stream.code >= 400:
            try:
                raise error_of(Response(stream.code, stream.headers, stream.read()))
            finally:
                stream.close()
        return stream

    def close(self) -> None:
        """Closes pooled connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def accept(response: Response) -> Response:
    """An answer that is no failure; raises the ``ApiError`` of one that is."""
    if response.code >= 400:
        raise error_of(response)
    return response
