"""The way of a request, from the parsed head and body to the answer: the file to read first.

    access (authenticate → impersonate → authorize) → limits → health, or the API (decode → default → admit → validate
    | patch → storage → encode)

Everything that fails on the way is a ``Status``: an ``ApiError`` says which, anything else is a bug of ours, is logged
with its traceback and answered 500 without one. Whatever becomes of a request, it is counted, and its answer has its
audit id: the one that the client sent, or one made here.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from itertools import count
from time import perf_counter

from apimachinery.access.attributes import attributes_of
from apimachinery.access.authorization import Attributes
from apimachinery.access.control import Access
from apimachinery.http.browsers import BrowserRules
from apimachinery.http.flows import on_behalf_of
from apimachinery.http.messages import (
    Handler,
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.steps import ASKS, compute
from apimachinery.meta.errors import ApiError
from apimachinery.metrics import TEXT, Metrics, exposition
from apimachinery.server.answer.pretty import prettied, wants_pretty
from apimachinery.server.describe.front_page import closed_page, wants_page
from apimachinery.server.fairness.fairness import Fairness, ServerLimits
from apimachinery.server.fairness.levels import Rejected
from apimachinery.server.operate.audit.audit import Audit
from apimachinery.server.operate.debug import Debug
from apimachinery.server.operate.health import Health
from apimachinery.server.operate.requests import RequestMetrics
from apimachinery.server.operate.tracing import Tracing
from apimachinery.wire.json import encode

log = logging.getLogger("kubewright.server")

BODY_BYTES = 3 << 20
SLOW_SECONDS = 1.0
"""What takes longer to answer is logged."""
_ANSWERED_TO_THE_END = ("/livez", "/readyz", "/healthz", "/metrics", "/debug")
_SECRET = re.compile(r"(?i)((?:^|&)[^=&]*(?:token|password|secret)[^=&]*=)[^&]*")
"""Of no use to this server, though perhaps to one behind it (``pods/proxy``)."""
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
Answer = Response | StreamResponse | UpgradeResponse


class App:
    """An API behind access control and limits, and next to it the health of the process."""

    def __init__(
        self,
        api: Handler,
        access: Access,
        health: Health,
        metrics: Metrics,
        counts: RequestMetrics,
        *,
        limits: ServerLimits | None = None,
        audit: Audit | None = None,
        takes_upgrade: Callable[[Request], bool] = lambda request: False,
        fairness: Fairness | None = None,
        tracing: Tracing | None = None,
        debug: Debug | None = None,
        browsers: BrowserRules | None = None,
        all_metrics: Callable[[str], Awaitable[str]] | None = None,
    ) -> None:
        """``all_metrics`` adds to this process's metrics those of others that serve with it."""
        self._api = api
        self._access = access
        self._health = health
        self._metrics = metrics
        self._counts = counts
        self.takes_upgrade = takes_upgrade
        self.ending = False
        self._audit = audit
        self._fairness = fairness
        self._tracing = tracing
        self._debug = debug
        self._browsers = browsers
        self._all_metrics = all_metrics
        limits = limits or ServerLimits()
        self._free = {True: limits.reads, False: limits.writes}
        self._dropped = metrics.counter(
            "apiserver_dropped_requests_total", "Requests refused for being too many.", "request_kind"
        )
        metrics.asked(
            "apiserver_current_inflight_requests",
            "Requests under way.",
            ("request_kind",),
            lambda: [
                (("mutating",), limits.writes - self._free[False]),
                (("readOnly",), limits.reads - self._free[True]),
            ],
        )
        # Unique, though not random: what a request is called need not be a secret, and this costs nothing.
        first, second, third, fourth = (secrets.token_hex(size) for size in (4, 2, 2, 2))
        self._made = f"{first}-{second}-4{third[1:]}-9{fourth[1:]}-".encode()
        self._numbers = count(secrets.randbits(40))

    async def answer(self, request: Request, oversized: bool) -> Answer:
        """Answers a request. ``oversized``: its body was over the limit and is not there."""
        began = request.began = perf_counter()
        given = request.headers.get("audit-id")
        audit_id = b"%b%012x" % (self._made, next(self._numbers)) if not given else given.encode("latin-1")
        request.stamp = b"Audit-Id: %b\r\n" % audit_id
        if self._browsers is not None:
            request.stamp += self._browsers.lines(request)
            if (preflight := self._browsers.preflight(request)) is not None:
                return preflight
        panicked = False
        try:
            response = await self._answer(request, oversized, audit_id, began)
        except ApiError as error:
            is_closed = error.code in (401, 403) and request.path == "/" and wants_page(request)
            response = closed_page(error) if is_closed else error_response(error)
        except Exception:
            log.exception(
                "a request failed",
                extra={
                    "method": request.method,
                    "path": request.path,
                    "audit_id": audit_id.decode("latin-1"),
                },
            )
            response = error_response(internal_error())
            panicked = True
        if isinstance(response, Response) and wants_pretty(request):
            response = await prettied(request, response)
        if self._audit is not None:
            self._audit.answered(request, response, panicked=panicked)
        seconds = perf_counter() - began
        self._counts.answered(request, response, seconds)
        if self._tracing is not None:
            self._tracing.record(request, response.status, audit_id.decode("latin-1"))
        if seconds > SLOW_SECONDS or log.isEnabledFor(logging.DEBUG):
            _log_request(request, response.status, seconds, audit_id)
        return response

    def _turn_away(self, request: Request) -> None:
        """Once the server ends: everybody but who asks how it is comes again elsewhere, or later."""
        if not request.path.startswith(_ANSWERED_TO_THE_END):
            raise ApiError(
                429,
                "TooManyRequests",
                "The apiserver is shutting down, please try again later.",
                retry_after=5,
            )

    async def _answer(self, request: Request, oversized: bool, audit_id: bytes, began: float) -> Answer:
        identified = began
        access = self._access
        on_behalf_of.set("")
        if self.ending:
            self._turn_away(request)
        # Most requests are of somebody who is known, and who may do everything: for them nothing is awaited here, since
        # each coroutine costs more than what it would find out.
        try:
            try:
                if not access.identify_at_once(request):
                    await access.identify(request)
            finally:
                identified = perf_counter()
                if self._audit is not None:
                    self._audit.received(request, audit_id.decode("latin-1"))
            if access.wants_to_act(request):
                await access.act_as(request)
        except ApiError as error:
            self._count_refused(error, request, began, identified)
            raise
        user = request.user
        assert user is not None
        on_behalf_of.set(user.name)
        fairness = self._fairness
        if fairness is None or not fairness.active:
            await self._authorize(request, None, began, identified)
            return await self._let_in(request, oversized)
        attributes = None
        ticket = fairness.enter_master(request, user)
        if ticket is None:
            attributes = attributes_of(request, user)
            try:
                ticket = await fairness.enter(request, user, attributes)
            except Rejected:
                self._counts.given_up(429, request)
                raise too_many() from None
        try:
            if access.authorize_at_once(request):
                self._counts.admitted(user.name, identified - began, 0.0)
            else:
                await self._authorize(request, attributes, began, identified)
            if oversized or request.path[:4] != "/api":
                return await self._let_in(request, oversized, limited=False)
            reads = request.method in _READS
            self._free[reads] -= 1
            try:
                return await self._api(request)
            finally:
                self._free[reads] += 1
        finally:
            fairness.leave(ticket)

    async def _authorize(
        self, request: Request, attributes: Attributes | None, began: float, identified: float
    ) -> None:
        asked = perf_counter()
        try:
            await self._access.authorize(request, attributes)
        except ApiError as error:
            self._count_refused(error, request, began, identified)
            raise
        user = request.user
        assert user is not None
        self._counts.admitted(user.name, identified - began, perf_counter() - asked)

    def _count_refused(self, error: ApiError, request: Request, began: float, identified: float) -> None:
        name = request.user.name if request.user else None
        self._counts.refused(error.code, name, identified - began, perf_counter() - identified)

    async def _let_in(self, request: Request, oversized: bool, *, limited: bool = True) -> Answer:
        if request.path[:4] != "/api":
            beside = await self._beside(request)
            if beside is not None:
                return beside
        if oversized:
            raise ApiError(
                413,
                "RequestEntityTooLarge",
                f"Request entity too large: limit is {BODY_BYTES}",
                has_details=False,
            )
        reads = request.method in _READS
        if limited and not self._free[reads]:
            self._dropped.at("readOnly" if reads else "mutating").value += 1
            self._counts.given_up(429, request)
            raise too_many()
        self._free[reads] -= 1
        try:
            return await self._api(request)
        finally:
            self._free[reads] += 1

    async def _beside(self, request: Request) -> Response | None:
        """What is next to the API: how the server is, and what it does."""
        if request.path == "/metrics":
            # Not among the long work of requests, of which there may be much just when this is asked for.
            shown = await compute(ASKS, exposition, self._metrics.current())
            if self._all_metrics is not None:
                shown = await self._all_metrics(shown)
            return Response(200, shown.encode(), TEXT)
        if request.path.startswith("/debug/") and self._debug is not None:
            return await self._debug.answer(request)
        return self._health.answer(request)

    def knows(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, is of somebody who may send a large body."""
        return self._access.knows(request)

    def timed_out(self, request: Request) -> Response:
        """The answer to a request whose handler took too long."""
        response = error_response(
            ApiError(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        )
        self._counts.given_up(504, request)
        self._counts.answered(request, response, perf_counter() - request.began)
        if self._audit is not None:
            self._audit.answered(request, response)
        return response


def _log_request(request: Request, code: int, seconds: float, audit_id: bytes) -> None:
    """Logs a request that took long, or each where the log is that detailed."""
    user = request.user
    log.log(
        logging.INFO if seconds > SLOW_SECONDS else logging.DEBUG,
        "request" if seconds <= SLOW_SECONDS else "slow request",
        extra={
            "audit_id": audit_id.decode("latin-1"),
            "method": request.method,
            "path": request.path,
            "query": _SECRET.sub(r"\1***", request.query_string[:1000]),
            "code": code,
            "seconds": round(seconds, 6),
            "user": user.name if user is not None else "",
            "user_agent": request.headers.get("user-agent", "")[:200],
            "source": request.source,
        },
    )


def too_many() -> ApiError:
    """429: the client may come again in a second."""
    return ApiError(429, "TooManyRequests", "Too many requests, please try again later.", retry_after=1)


def internal_error() -> ApiError:
    """500 that says nothing of the inside."""
    return ApiError(500, "InternalError", "Internal error occurred: see the server's log")


def error_response(error: ApiError) -> Response:
    """An ApiError as JSON."""
    headers = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
    return Response(error.code, encode(error.status()) + b"\n", headers=headers)
