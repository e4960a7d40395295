"""An HTTPS server of webhooks: functions by path, from the review that is posted to the review that answers it.

A function gets and gives the ``request`` and ``response`` of an AdmissionReview or ConversionReview; uid, kind and
version of the answer are seen to here. What a function raises is answered as 500 without its text, and logged.
``/livez``, ``/readyz`` and ``/healthz`` are for probes.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.http.listening import Listener
from apimachinery.http.messages import Request, Response
from apimachinery.http.protocol import ConnectionLimits
from apimachinery.http.steps import ASKS, compute
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


class ReviewApplication:
    """Answers reviews; see ``Application``."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)

    async def answer(self, request: Request, oversized: bool) -> Response:
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
        return _plain(504, "the review took too long")

    def knows(self, request: Request) -> bool:
        """See Application: reviews of whole lists are long, and whoever gets here may send them."""
        return True

    def takes_upgrade(self, request: Request) -> bool:
        return False


def _plain(status: int, text: str) -> Response:
    return Response(status, text.encode() + b"\n", "text/plain; charset=utf-8")


class ReviewServer(Listener):
    """Serves on the event loop that starts it; ``port`` 0 takes a free one."""

    def __init__(
        self, answers: Mapping[str, Answer], tls: ssl.SSLContext, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.application = ReviewApplication(answers)
        super().__init__(self.application, ConnectionLimits(body_bytes=BODY_BYTES), tls, host, port)
