"""The ``timeout`` of a query: how long a client is ready to wait, in the form of Go's durations.

A duration that cannot be read is refused before anything else is looked at. Watches and calls that a node would
answer take no notice of it (they have ``timeoutSeconds``, or last as long as they last). Zero, and more than the
server's own limit, mean that limit.
"""

from __future__ import annotations

import re

from apimachinery.http.messages import Request
from apimachinery.meta.asked import FORWARDED, asked_of
from apimachinery.meta.errors import bad_request
from apimachinery.meta.printing import go_quote

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART = re.compile(r"(\d*)(\.\d*)?([^\d.]*)")
_MAX_INT64 = (1 << 63) - 1
_DIGITS = 40


def check_timeout(request: Request) -> None:
    """Raises ApiError 400 for a timeout that is not a duration."""
    text = request.sought_first("timeout")
    if not text or lasts(request):
        return
    if fault := duration_fault(text):
        raise bad_request(f"invalid timeout specified in the request URL - time: {fault}")


def lasts(request: Request) -> bool:
    """Whether a request may last: a watch, or one for a node; by authorization's reading, as in kube-apiserver."""
    scope = asked_of(request).scope
    if scope is None:
        return False
    if scope.verb in ("proxy", "watch") or scope.subresource in FORWARDED:
        return True
    watch = request.sought_first("watch") if scope.verb == "get" and not scope.name else None
    return watch is not None and watch.lower() not in ("false", "0")


def duration_fault(text: str) -> str:
    """What is wrong with a duration, in the words of Go's ``time.ParseDuration``; empty where nothing is."""
    rest = text[1:] if text[0] in "+-" else text
    if rest == "0":
        return ""
    invalid = f"invalid duration {go_quote(text)}"
    total = 0
    if not rest:
        return invalid
    place = 0
    while place < len(rest):
        match = _PART.match(rest, place)
        assert match is not None
        whole, fraction, unit = match[1], match[2] or "", match[3]
        if not whole and len(fraction) < 2:
            return invalid
        if not unit:
            return f"missing unit in duration {go_quote(text)}"
        if unit not in _UNITS:
            return f"unknown unit {go_quote(unit)} in duration {go_quote(text)}"
        # More digits are more than 64 bits, and Python reads no more than some thousand of them.
        total += int(whole or 0) * _UNITS[unit] if len(whole) < _DIGITS else _MAX_INT64 + 1
        if total > _MAX_INT64:
            return invalid
        place = match.end()
    return ""
