"""The audit of a server: decides with the policy what is kept of a request, and hands events to the backends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from apimachinery.http.messages import Request, StreamResponse, UpgradeResponse
from apimachinery.meta.errors import internal
from apimachinery.metrics import Count, Metrics
from apimachinery.server.operate.audit.policy import AuditLevel, AuditPolicy
from apimachinery.server.operate.audit.trail import NOBODY, Answer, AuditedRequest, attributes_for

Decode = Callable[[str, bytes], Any]


class AuditBackend(Protocol):
    """Where events go."""

    name: str
    strict: bool
    """Whether a request is refused whose arrival cannot be written."""

    def write(self, event: bytes) -> None:
        """Takes an event: a line of JSON. Raises OSError where it is strict."""

    def start(self) -> None:
        """Starts what runs besides, on the running loop."""

    async def close(self) -> None:
        """Writes what still waits, and ends."""


def audit_counts(metrics: Metrics) -> tuple[Count, Count]:
    """Events made, and requests refused because theirs was not written; of a server without audit they stay 0."""
    return (
        metrics.counter("apiserver_audit_event_total", "Audit events made.").at(),
        metrics.counter(
            "apiserver_audit_requests_rejected_total", "Requests refused because their event was not written."
        ).at(),
    )


class Audit:
    """``policy`` may be exchanged while the server runs."""

    def __init__(
        self,
        policy: AuditPolicy,
        backends: Sequence[AuditBackend],
        metrics: Metrics,
        decode: Decode = lambda media_type, body: None,
    ) -> None:
        """``decode`` reads the bodies of answers."""
        self.policy = policy
        self.backends = backends
        self._decode = decode
        self._events, self._rejected = audit_counts(metrics)
        self._levels = metrics.counter(
            "apiserver_audit_level_total", "Requests by the level at which they are kept.", "level"
        )
        self._counts = {
            level: self._levels.at(name)
            for level, name in zip(
                AuditLevel, ("None", "Metadata", "Request", "RequestResponse"), strict=True
            )
        }

    def received(self, request: Request, audit_id: str) -> None:
        """Notes the beginning of a request of a known user, or of a refused one (None); sets ``request.trail`` if it is
        kept. Raises ApiError 500 in a strict mode if the event cannot be written."""
        attributes = attributes_for(request)
        kept = self.policy.kept(request.user or NOBODY, attributes)
        self._counts[kept.level].value += 1
        if kept.level is AuditLevel.NONE:
            return
        trail = AuditedRequest(request, audit_id, kept, self._write, attributes, self._decode)
        request.trail = trail
        if request.user is None:
            return  # kube-apiserver keeps one event of whoever is not known: the refusal
        try:
            trail.received()
        except OSError:
            self._rejected.value += 1
            raise internal("audit: the event of the request cannot be written") from None

    def answered(self, request: Request, answer: Answer, *, panicked: bool = False) -> None:
        """Notes an answer; of a stream, its beginning: the end is noted when it was sent."""
        trail = request.trail
        if not isinstance(trail, AuditedRequest):
            return
        if panicked:
            self._quietly(trail.panicked, answer)
            return
        if request.user is None:
            # Whoever is not known gets as far as a beginning.
            self._quietly(trail.started, answer)
            return
        if isinstance(answer, StreamResponse | UpgradeResponse):
            self._quietly(trail.started, answer)
            before = request.done

            def done() -> None:
                self._quietly(trail.complete, answer)
                if before is not None:
                    before()

            request.done = done
            return
        if trail.streams:
            self._quietly(trail.started, answer)
        self._quietly(trail.complete, answer)

    def _quietly(self, emit: Callable[[Answer], None], answer: Answer) -> None:
        try:
            emit(answer)
        except OSError:
            return  # counted by the backend; the answer is on its way

    def _write(self, event: bytes) -> None:
        self._events.value += 1
        for backend in self.backends:
            backend.write(event)

    def take_event(self, event: bytes) -> None:
        """Writes an event that another process of this server made."""
        for backend in self.backends:
            with contextlib.suppress(OSError):  # counted by the backend
                backend.write(event)

    def take(self, policy: AuditPolicy) -> None:
        """Keeps by another policy from now on; requests under way are kept as they were begun."""
        self.policy = policy

    async def start(self) -> None:
        """Starts the backends."""
        for backend in self.backends:
            backend.start()

    async def close(self) -> None:
        """Ends them, after what still waits was written."""
        for backend in self.backends:
            await backend.close()
