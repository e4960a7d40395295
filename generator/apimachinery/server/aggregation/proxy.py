"""Hands a request for an aggregated group-version to its Service, in the name of its user.

The texts of refusals are kube-apiserver's, which are no Statuses: ``service unavailable`` (503) while the APIService is
not available or its Service has no address, the fault of the connection (503), of the CA bundle (500), and 502 for a
redirect, which would lead the client past authorization.
"""

from __future__ import annotations

import logging
import ssl

from apimachinery.http.messages import (
    Request,
    Response,
    StreamResponse,
    User,
)
from apimachinery.http.outgoing import (
    CallFailed,
    Endpoint,
    Opened,
    Outgoing,
    client_tls,
)
from apimachinery.http.relay import (
    Destination,
    Relayed,
    plain_query,
    relay,
)
from apimachinery.server.aggregation.registry import ApiService
from apimachinery.server.network.proxy_identity import (
    AGGREGATOR,
    WITHHELD,
    ProxyIdentity,
    identity_headers,
)
from apimachinery.server.network.services import ServiceResolver, Unresolved, server_name
from apimachinery.server.request.timeouts import lasts

TEXT = "text/plain; charset=utf-8"
REDIRECTED = "the backend attempted to redirect this request, which is not permitted"
SECONDS = 60.0
log = logging.getLogger("kubewright.server.aggregation")


class Proxy:
    """Sends requests to the servers of APIServices."""

    def __init__(self, services: ServiceResolver, outgoing: Outgoing, identity: ProxyIdentity) -> None:
        self._services = services
        self._outgoing = outgoing
        self._identity = identity

    async def answer(self, request: Request, service: ApiService) -> Relayed:
        """The answer to a client's request."""
        user = request.user
        if not service.available or user is None:
            return _text(503, "service unavailable\n")
        try:
            destination = self._destination(service, request.path, user)
        except Unresolved:
            return _text(503, "service unavailable\n")
        except ValueError as fault:
            return _text(500, f"{fault}\n")
        except OSError:
            log.exception("the proxy's certificate cannot be read")
            return _text(500, "unable to load the certificate of this proxy\n")
        destination = Destination(
            destination.root,
            destination.path,
            # Written again from what was read: a query that two parsers could read differently does not go on.
            plain_query(request.query),
            destination.tls,
            destination.server_name,
            [*destination.headers, *forwarded(request, destination)],
            WITHHELD,
            SECONDS,
            lasts=lasts(request),
            host=destination.host,
        )
        try:
            answer = await relay(self._outgoing, request, destination)
        except CallFailed as fault:
            # As text, not as a Status: clients of kube-apiserver get it so.
            return _text(503, f"{_said(str(fault))}\n")
        # Following it would take the client's identity to an address that nobody authorized.
        if 300 <= answer.status < 400 and any(name.lower() == "location" for name, _ in answer.headers):
            if isinstance(answer, StreamResponse):
                await answer.parts.aclose()  # type: ignore[attr-defined]
            return _text(502, REDIRECTED)
        return answer

    async def ask(
        self,
        service: ApiService,
        path: str,
        headers: list[tuple[str, str]],
        seconds: float,
        *,
        method: str = "GET",
    ) -> Opened:
        """The answer to a request of this server's own, whether the APIService is available or not. Raises CallFailed,
        Unresolved, ValueError for a CA bundle that cannot be read."""
        destination = self._destination(service, path, AGGREGATOR)
        endpoint = Endpoint(
            destination.root + destination.target,
            destination.tls,
            seconds=seconds,
            server_name=destination.server_name,
        )
        return await self._outgoing.open(method, endpoint, [*destination.headers, *headers])

    def url(self, service: ApiService, path: str) -> str:
        """Where a path of an APIService is. Raises Unresolved."""
        reference = service.service
        assert reference is not None
        place = self._services.resolve(reference.namespace, reference.name, reference.port)
        return f"https://{place}{path}"

    def _destination(self, service: ApiService, path: str, user: User) -> Destination:
        reference = service.service
        assert reference is not None
        root = self.url(service, "")
        name = server_name(reference.namespace, reference.name)
        return Destination(
            root,
            path,
            tls=self._tls(service),
            server_name=name,
            headers=identity_headers(user),
            host=root.partition("://")[2],
        )

    def _tls(self, service: ApiService) -> ssl.SSLContext:
        return client_tls(
            service.ca_bundle, insecure=service.insecure, certificate=self._identity.certificate
        )


def forwarded(request: Request, destination: Destination) -> list[tuple[str, str]]:
    """What the next server is told of the way: the addresses that a request came through, and where it was sent."""
    scheme, _, host = destination.root.partition("://")
    way = [
        ("X-Forwarded-Host", host),
        ("X-Forwarded-Proto", scheme),
        ("X-Forwarded-Uri", destination.target.partition("?")[0]),
    ]
    if request.stamp:
        way.append(("Audit-Id", request.audit_id))  # by which the events of both servers are found together
    if request.source:
        before = request.headers.get("x-forwarded-for", "")
        way.append(("X-Forwarded-For", f"{before}, {request.source}" if before else request.source))
    return way


def _said(fault: str) -> str:
    known = fault.startswith(("invalid upgrade response", "error "))
    return fault if known else f"error trying to reach service: {fault}"


def _text(status: int, text: str) -> Response:
    return Response(status, text.encode(), TEXT)
