"""Hands requests below ``…/proxy`` on to the address that a Service, Pod or Node names, if its network is allowed.

The rest of the path, the query and the body go on as they came; credentials of this server do not. What comes back is
passed on, with links that would leave the proxy led back into it: ``Location`` of a redirect, and the links of a web
page that begin with ``/``.
"""

from __future__ import annotations

import re
from urllib.parse import quote

from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    UpgradeResponse,
)
from apimachinery.http.outgoing import CallFailed, Outgoing, client_tls
from apimachinery.http.relay import Destination, relay
from apimachinery.kinds.hooks import Json
from apimachinery.meta.asked import Route
from apimachinery.meta.errors import ApiError, bad_request, not_found
from apimachinery.server.catalog.served import Served
from apimachinery.server.network.networks import AllowedNetworks
from apimachinery.server.network.services import ServiceResolver
from apimachinery.server.subresources.proxied import (
    Meant,
    ProxiedAddress,
    place_of_node,
    place_of_pod,
    place_of_service,
)

WITHHELD = ("x-remote-", "impersonate-", "accept-encoding", "audit-id")
SECONDS = 30.0
PAGE_BYTES = 4 << 20
_LINK = re.compile(
    rb"""(<[a-zA-Z][^<>]*?\s(?:href|src|action|formaction|data|poster|cite|background|longdesc|usemap|manifest|profile"""
    rb"""|codebase|classid|icon)\s*=\s*)(["'])/(?!/)""",
    re.IGNORECASE,
)
_PATH_SAFE = "/~-._$&+,:;=@"


class AddressProxy:
    """Requests to addresses that objects name."""

    def __init__(self, networks: AllowedNetworks, services: ServiceResolver, outgoing: Outgoing) -> None:
        self._networks = networks
        self._services = services
        self._outgoing = outgoing

    async def answer(
        self, request: Request, route: Route, served: Served, meant: Meant, obj: Json
    ) -> Response | StreamResponse | UpgradeResponse:
        """The answer from there. Raises ApiError 400, 503."""
        place = self._place(route, served, meant, obj)
        if not self._networks.allows(place.address.host):
            raise bad_request(
                f"address not allowed: {place.address.host} is in no network of --proxy-allow-network"
            )
        root, path = split(request.path, route)
        if not path and request.method in ("GET", "HEAD"):
            query = f"?{request.query_string}" if request.query_string else ""
            return Response(301, b"", "", (("Location", f"{quote(root, safe=_PATH_SAFE)}/{query}"),))
        destination = Destination(
            f"{place.scheme}://{place.address}",
            path or "/",
            request.query_string,
            client_tls(insecure=True) if place.scheme == "https" else None,
            headers=forwarded(request),
            withheld=WITHHELD,
            seconds=SECONDS,
            lasts=True,
        )
        try:
            answer = await relay(self._outgoing, request, destination)
            return await led_back(answer, quote(root, safe=_PATH_SAFE))
        except CallFailed as fault:
            if str(fault).startswith("invalid upgrade response"):
                raise ApiError(500, "", str(fault), has_details=False) from None
            said = f"error trying to reach service: {fault}"
            raise ApiError(503, "ServiceUnavailable", said, has_details=False) from None

    def _place(self, route: Route, served: Served, meant: Meant, obj: Json) -> ProxiedAddress:
        match served.plural:
            case "services":
                return place_of_service(meant, route.name, obj, self._services)
            case "pods":
                return place_of_pod(meant, obj)
            case "nodes":
                return place_of_node(meant, obj)
        raise not_found(served.plural, served.group, route.name)


def split(path: str, route: Route) -> tuple[str, str]:
    """The path of the proxy itself, and what follows it, which may have empty parts and end with a slash."""
    at = path.index(f"/{route.name}/proxy") + len(f"/{route.name}/proxy")
    return path[:at], path[at:]


def forwarded(request: Request) -> list[tuple[str, str]]:
    """The way that a request has come."""
    way = [("X-Forwarded-Uri", quote(request.path, safe=_PATH_SAFE))]
    if request.source:
        before = request.headers.get("x-forwarded-for", "")
        way.append(("X-Forwarded-For", f"{before}, {request.source}" if before else request.source))
    return way


async def led_back(
    answer: Response | StreamResponse | UpgradeResponse, root: str
) -> Response | StreamResponse | UpgradeResponse:
    """An answer whose links stay below ``root``. Raises CallFailed for a page that is too large."""
    if isinstance(answer, UpgradeResponse):
        return answer
    headers = tuple(
        (name, root + value)
        if name.lower() == "location" and value.startswith("/") and not value.startswith("//")
        else (name, value)
        for name, value in answer.headers
    )
    answer.headers = headers
    is_page = answer.content_type.partition(";")[0].strip().lower() == "text/html"
    if not is_page or any(name.lower() == "content-encoding" for name, _ in headers):
        return answer
    body = await _whole(answer)
    replacement = rb"\1\2" + root.encode().replace(b"\\", rb"\\") + b"/"
    return Response(answer.status, _LINK.sub(replacement, body), answer.content_type, headers)


async def _whole(answer: Response | StreamResponse) -> bytes:
    if isinstance(answer, Response):
        return answer.body if isinstance(answer.body, bytes) else b"".join(answer.body)
    page = bytearray()
    async for part in answer.parts:
        page += part
        if len(page) > PAGE_BYTES:
            raise CallFailed(f"a page of more than {PAGE_BYTES} bytes")
    return bytes(page)
