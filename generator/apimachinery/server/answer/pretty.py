"""JSON for people: indented where a query, a media type or a tool that people type into asks for it."""

from __future__ import annotations

from apimachinery.http.messages import Request, Response
from apimachinery.http.steps import compute
from apimachinery.wire.json import indented

_TOOLS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = frozenset({"1", "t", "T", "true", "True", "TRUE"})
_NEVER = ("/openapi", "/openid", "/.well-known")
"""Documents that are sent as they are kept."""
_ALWAYS = frozenset({"/", "/version", "/version/", "/index.html"})


def wants_pretty(request: Request) -> bool:
    """Whether an answer in JSON is to be indented: ``pretty`` in the query decides, else the media type, else whether
    the client is a browser or a tool of the command line."""
    if request.query_string and (value := request.sought_first("pretty")):
        asked = value in _TRUE
    else:
        headers = request.headers
        asked = headers.get("user-agent", "").startswith(_TOOLS)
    return asked or "pretty=1" in request.headers.get("accept", "") or request.path in _ALWAYS


async def prettied(request: Request, response: Response) -> Response:
    """The answer, indented where it is JSON that may be."""
    if not response.content_type.startswith("application/json") or request.path.startswith(_NEVER):
        return response
    body = response.body if isinstance(response.body, bytes) else b"".join(response.body)
    if body:
        response.body = await compute(len(body), indented, body)
    return response
