"""Requests that a web page sends: refused where nobody proves who they are.

A browser sends requests of any page to any address, 127.0.0.1 too, and asks nobody before a POST whose body
names no type. Where the server takes whoever reaches it for the administrator, a page must not get that far.

Rules. Browsers say where a request comes from, and pages cannot change what they say: ``Sec-Fetch-Site`` (W3C Fetch
Metadata) and ``Origin`` (RFC 6454). A request of this server's own pages is answered, as is one that the user
typed or followed a link to; one of any other page is 403. A body without Content-Type from a browser is refused too,
for a browser that says neither. Programs send none of these fields.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from apimachinery.http.messages import Request
from apimachinery.meta.errors import ApiError

ORIGIN_CHARACTERS = 300
"""A name has 253 at most. What is split is remembered by Python, however long."""


def refuse_pages(request: Request) -> None:
    """Raises ApiError 403 for a request that a page of another origin made."""
    headers = request.headers
    site = headers.get("sec-fetch-site", "").lower()
    # "none" is what a user typed or bookmarked.
    if site and site not in ("same-origin", "none"):
        if request.method == "GET" and headers.get("sec-fetch-mode", "").lower() == "navigate":
            return  # a link that the user followed: the page it stands on sees nothing of the answer
        raise _foreign(headers.get("origin") or f"a {site} page")
    origin = headers.get("origin")
    if origin is not None and not _is_own(origin, headers.get("host", "")):
        raise _foreign(origin)
    if (
        request.method not in ("GET", "HEAD", "OPTIONS")
        and "content-type" not in headers
        and headers.get("user-agent", "").startswith("Mozilla/")
        and (headers.get("content-length", "0") != "0" or "transfer-encoding" in headers)
    ):
        raise _foreign("a browser, with a body that names no type")


def _is_own(origin: str, host: str) -> bool:
    if len(origin) > ORIGIN_CHARACTERS:
        return False
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _foreign(sender: str) -> ApiError:
    return ApiError(
        403,
        "Forbidden",
        f"requests from {sender[:200]!r} are refused: web pages could act as the administrator here; "
        "serve with a token file",
    )
