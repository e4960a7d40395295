"""The way of a request, from the parsed head and body to the answer: the file to read first.

    access (authenticate → impersonate → authorize) → limits → health, or the API (decode → default → admit → validate
    | patch → storage → encode)

Everything that fails on the way is a ``Status``: an ``ApiError`` says which, anything else is a bug of ours, is logged
with its traceback and answered 500 without one.
"""

from __future__ import annotations

import logging

from apimachinery.meta.errors import ApiError
from apimachinery.server.access.control import Access
from apimachinery.server.http.messages import Handler, Request, Response, StreamResponse, UpgradeResponse
from apimachinery.server.operate.health import Health
from apimachinery.server.operate.metrics import Metrics
from apimachinery.wire.json import encode

log = logging.getLogger("kubewright.server")

READS_IN_FLIGHT = 400
WRITES_IN_FLIGHT = 200
BODY_BYTES = 3 << 20
_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class App:
    """An API behind access control and limits, and next to it the health of the process."""

    def __init__(
        self,
        api: Handler,
        access: Access,
        health: Health,
        metrics: Metrics,
        *,
        reads_in_flight: int = READS_IN_FLIGHT,
        writes_in_flight: int = WRITES_IN_FLIGHT,
    ) -> None:
        self._api = api
        self._access = access
        self._health = health
        self._metrics = metrics
        self._free = {True: reads_in_flight, False: writes_in_flight}
        metrics.gauge(
            "apiserver_current_inflight_reads", "Reads under way.", lambda: reads_in_flight - self._free[True]
        )
        metrics.gauge(
            "apiserver_current_inflight_writes",
            "Writes under way.",
            lambda: writes_in_flight - self._free[False],
        )

    async def answer(self, request: Request, oversized: bool) -> Response | StreamResponse | UpgradeResponse:
        """Answers a request. ``oversized``: its body was over the limit and is not there."""
        try:
            response = await self._answer(request, oversized)
        except ApiError as error:
            response = error_response(error)
        except Exception:
            log.exception("a request failed", extra={"method": request.method, "path": request.path})
            response = error_response(internal_error())
        self._metrics.count(request.method, response.status)
        return response

    async def _answer(self, request: Request, oversized: bool) -> Response | StreamResponse | UpgradeResponse:
        await self._access.admit(request)
        health = self._health.answer(request)
        if health is not None:
            return health
        if oversized:
            raise ApiError(
                413,
                "RequestEntityTooLarge",
                f"Request entity too large: limit is {BODY_BYTES}",
                has_details=False,
            )
        if request.path == "/metrics":
            return self._metrics.answer()
        reads = request.method in _READS
        if not self._free[reads]:
            raise ApiError(
                429, "TooManyRequests", "Too many requests, please try again later.", retry_after=1
            )
        self._free[reads] -= 1
        try:
            return await self._api(request)
        finally:
            self._free[reads] += 1

    def knows(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, is of somebody who may send a large body."""
        return self._access.knows(request)

    def timed_out(self, request: Request) -> Response:
        """The answer to a request whose handler took too long."""
        self._metrics.count(request.method, 504)
        return error_response(
            ApiError(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        )


def internal_error() -> ApiError:
    """500 that says nothing of the inside."""
    return ApiError(500, "InternalError", "Internal error occurred: see the server's log")


def error_response(error: ApiError) -> Response:
    """An ApiError as JSON."""
    headers = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    return Response(error.code, encode(error.status()) + b"\n", headers=headers)
