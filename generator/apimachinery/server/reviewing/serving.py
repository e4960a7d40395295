"""An HTTPS server of webhooks: functions by path, from the review that is posted to the review that answers it.

A function gets and gives the ``request`` and ``response`` of an AdmissionReview or ConversionReview; uid, kind and
version of the answer are seen to here. What a function raises is answered as 500 without its text, and logged.
``/livez``, ``/readyz`` and ``/healthz`` are for probes.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.http.messages import Request, Response
from apimachinery.http.protocol import ConnectionLimits, Connections
from apimachinery.http.steps import ASKS, compute
from apimachinery.http.tls import HANDSHAKE_SECONDS
from apimachinery.wire.json import DecodeFault, decode, encode

log = logging.getLogger("kubewright.webhook")
Json = dict[str, Any]
Answer = Callable[[Json], Json]
"""From a review's request to its response, without the uid. Runs on a thread, so it may wait."""

_PROBES = frozenset(("/livez", "/readyz", "/healthz"))
_KINDS = {
    "AdmissionReview": ("admission.k8s.io/v1", "admission.k8s.io/v1beta1"),
    "ConversionReview": ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"),
}
BODY_BYTES = 16 << 20
"""A list of custom resources is converted with one call."""
SWEEP_SECONDS = 1.0


class ReviewApplication:
    """Answers reviews; see ``Application``."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)

    async def answer(self, request: Request, oversized: bool) -> Response:
        """See Application."""
        if request.path in _PROBES and request.method == "GET":
            return Response(200, b"ok", "text/plain; charset=utf-8")
        function = self.answers.get(request.path)
        if function is None:
            return _plain(404, "404 page not found")
        if request.method != "POST":
            return _plain(405, "reviews are posted")
        if oversized:
            return _plain(413, f"reviews may have {BODY_BYTES} bytes")
        try:
            review = decode(request.body)
            kind, api_version, asked = review["kind"], review["apiVersion"], review["request"]
            if api_version not in _KINDS.get(kind, ()) or not isinstance(asked, dict):
                raise KeyError
        except (DecodeFault, KeyError, TypeError):
            return _plain(400, "this is no AdmissionReview or ConversionReview")
        try:
            response = await compute(ASKS, function, asked)
        except Exception:
            log.exception("a review could not be answered", extra={"path": request.path})
            return _plain(500, "the review could not be answered: see the log")
        shown = {
            "kind": kind,
            "apiVersion": api_version,
            "response": {"uid": asked.get("uid", ""), **response},
        }
        return Response(200, encode(shown))

    def timed_out(self, request: Request) -> Response:
        """See Application."""
        return _plain(504, "the review took too long")

    def knows(self, request: Request) -> bool:
        """See Application: reviews of whole lists are long, and whoever gets here may send them."""
        return True

    def takes_upgrade(self, request: Request) -> bool:
        """See Application."""
        return False


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode() + b"\n", "text/plain; charset=utf-8")


class ReviewServer:
    """Serves on the event loop that starts it; ``port`` 0 takes a free one."""

    def __init__(
        self, answers: Mapping[str, Answer], tls: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.application = ReviewApplication(answers)
        self._connections = Connections(self.application, ConnectionLimits(body_bytes=BODY_BYTES))
        self._tls = tls
        self._host = host
        self.port = port
        self._listener: asyncio.Server | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listens when it returns. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._connections,
            self._host,
            self.port,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            backlog=1024,
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self, seconds: float = 5.0) -> None:
        """Takes no new connections, and lets reviews under way end."""
        if self._listener is not None:
            self._listener.close()
        await self._connections.end(seconds)
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.sweep()
