"""Header lines for browsers: which pages of other origins may read answers (CORS), and that they come by https (HSTS).

A browser asks first (a preflight: OPTIONS with an Origin) whether a page may send a request, without credentials; so it
is answered before anybody is authenticated, and for every path alike: the answer says nothing of what is there. Whoever
is listed may send the user's credentials along, so nobody is listed unless an option says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from apimachinery.http.messages import Request, Response

_ALLOWED = (
    b"Access-Control-Allow-Credentials: true\r\n"
    b"Access-Control-Allow-Headers: Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, "
    b"X-Requested-With, If-Modified-Since\r\n"
    b"Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE, PATCH\r\n"
    b"Access-Control-Allow-Origin: %b\r\n"
    b"Access-Control-Expose-Headers: Date\r\n"
)
_DIRECTIVE = re.compile(r"max-age=\d+|includeSubDomains|preload", re.ASCII)


class BrowserRuleError(ValueError):
    """A directive that cannot be; the text says which."""


class BrowserRules:
    """``origins`` tell whether an Origin header is let in, ``transport`` are the directives of
    Strict-Transport-Security. Raises BrowserRuleError."""

    def __init__(self, origins: Sequence[Callable[[str], bool]] = (), transport: Sequence[str] = ()) -> None:
        for directive in transport:
            if not _DIRECTIVE.fullmatch(directive):
                raise BrowserRuleError(
                    f"{directive!r} is none of max-age=SECONDS, includeSubDomains, preload"
                )
        self._origins = origins
        self._always = f"Strict-Transport-Security: {'; '.join(transport)}\r\n".encode() if transport else b""

    def lines(self, request: Request) -> bytes:
        """The header lines that every answer to a request has, ready to send."""
        return self._always + self._allowance(request)

    def preflight(self, request: Request) -> Response | None:
        """The answer to a browser that asks whether it may send a request; None for other requests."""
        if request.method != "OPTIONS" or not self._allowance(request):
            return None
        return Response(204)

    def _allowance(self, request: Request) -> bytes:
        origin = request.headers.get("origin", "")
        if not origin or not any(matches(origin) for matches in self._origins):
            return b""
        return _ALLOWED % origin.encode("latin-1")
