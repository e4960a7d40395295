"""Whether a failed call of an ordinary API is sent again: the rules of ``apimachinery.client.retry``.

After 429, and after 500 or more with Retry-After, every call; after a broken connection, 502, 503 and 504 those that
RFC 9110 calls idempotent: GET, HEAD, OPTIONS, TRACE, PUT, DELETE.
"""

from __future__ import annotations

from typing import Final

from apimachinery.client.endpoint import TransportError
from apimachinery.client.retry import Patience
from apimachinery.meta.errors import ApiError
from apimachinery.openapi.errors import HttpError

IDEMPOTENT: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})


def wait_before_next(patience: Patience, method: str, error: TransportError | HttpError) -> float | None:
    """How long to wait before the next try, in seconds; ``None`` to give up."""
    failure: Exception = error
    if isinstance(error, HttpError):
        after = error.headers.get("retry-after", "")
        failure = ApiError(error.status, "", "", retry_after=int(after) if after.isdecimal() else 0)
    return patience.wait_before_next(failure, repeatable=method in IDEMPOTENT)
