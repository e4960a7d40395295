"""Access that is decided elsewhere: a server behind a kube-apiserver that proxies to it asks that one.

    who   headers of the proxy, if its certificate is the one that the ConfigMap extension-apiserver-authentication of
          kube-system names; a client certificate of the cluster's authority; a bearer token, by TokenReview
    may   paths that are open to all (health); then SubjectAccessReview

Answers are remembered for ten seconds, as kube's generic API servers do. The ConfigMap is read again every minute, so
that a new authority is known before the old one ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apimachinery.access.authentication import Authenticator, Identity
from apimachinery.access.authorization import (
    ALLOWED,
    NO_OPINION,
    Attributes,
    Verdict,
)
from apimachinery.access.control import AccessOptions
from apimachinery.access.front_proxy import FrontProxy, ProxyHeaders
from apimachinery.access.webhooks import AuthorizationWebhook, TokenWebhook, WebhookRules
from apimachinery.http.messages import Request
from apimachinery.http.outgoing import CallFailed, Endpoint, Outgoing

CONFIGURATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
REMEMBERED_SECONDS = 10.0
REFRESH_SECONDS = 60.0
RETRY_SECONDS = 1.0
ALWAYS_ALLOWED = ("/healthz", "/readyz", "/livez")
log = logging.getLogger("kubewright.server")
Trust = Callable[[str], None]
"""Makes TLS accept client certificates of these authorities (PEM)."""


class BadConfiguration(ValueError):
    """The ConfigMap does not say what is needed; the text says what."""


class AllowedPaths:
    """An authorizer that allows some paths to all; one that ends with ``*`` means whatever begins with it."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._exact = frozenset(path for path in paths if not path.endswith("*"))
        self._prefixes = tuple(path[:-1] for path in paths if path.endswith("*"))

    def decide(self, attributes: Attributes) -> Verdict:
        if attributes.is_resource:
            return NO_OPINION
        path = attributes.path
        open_to_all = path in self._exact or (bool(self._prefixes) and path.startswith(self._prefixes))
        return ALLOWED if open_to_all else NO_OPINION

    async def ask(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)


class ClusterTrust:
    """Users by the proxy's headers and by client certificates, as far as the cluster's configuration goes."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._data: Mapping[str, str] = {}
        self._authenticators: list[Authenticator] = []

    def authenticate(self, request: Request) -> Identity | None:
        for authenticator in self._authenticators:
            identity = authenticator.authenticate(request)
            if identity is not None:
                return identity
        return None

    def set(self, data: Mapping[str, str]) -> None:
        """Takes the data of the ConfigMap. Raises BadConfiguration, with what was there kept."""
        from apimachinery.access.certificates import ClientCertificates, PeerCheck, authorities_of

        # Parsing PEM takes milliseconds, and the ConfigMap is the same nearly every minute.
        if data == self._data:
            return
        authenticators: list[Authenticator] = []
        try:
            if pem := data.get("requestheader-client-ca-file", ""):
                proxies = PeerCheck(
                    authorities_of(pem.encode()),
                    _names(data, "requestheader-allowed-names"),
                )
                headers = ProxyHeaders(
                    _headers(data, "requestheader-username-headers"),
                    _headers(data, "requestheader-uid-headers"),
                    _headers(data, "requestheader-group-headers"),
                    _headers(data, "requestheader-extra-headers-prefix"),
                )
                authenticators.append(FrontProxy(proxies, headers))
            if clients := data.get("client-ca-file", ""):
                authenticators.append(ClientCertificates(authorities_of(clients.encode())))
        except ValueError as fault:
            raise BadConfiguration(f"ConfigMap extension-apiserver-authentication: {fault}") from None
        # After all was parsed: half of a new configuration must not be trusted.
        for pem in (data.get("requestheader-client-ca-file", ""), data.get("client-ca-file", "")):
            if pem:
                self._trust(pem)
        self._authenticators, self._data = authenticators, dict(data)


def _names(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    """A list of texts, which the ConfigMap has as JSON. Raises ValueError."""
    found = json.loads(data.get(key) or "[]")
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise ValueError(f"{key} is no list of texts")
    return tuple(found)


def _headers(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    return tuple(name.lower() for name in _names(data, key))


@dataclass(frozen=True, slots=True)
class DelegatedServer:
    """The server that is asked: one connection for who, one for whether; usually the same."""

    authentication: Endpoint
    authorization: Endpoint
    allowed: Sequence[str] = ALWAYS_ALLOWED

    def options(self, trust: ClusterTrust, outgoing: Outgoing, *, anonymous: bool = True) -> AccessOptions:
        """Access as the cluster decides it."""
        token = TokenWebhook(at(self.authentication, TOKEN_REVIEWS), outgoing.json, "v1", REMEMBERED_SECONDS)
        rules = WebhookRules("v1", allowed_seconds=REMEMBERED_SECONDS, refused_seconds=REMEMBERED_SECONDS)
        review = AuthorizationWebhook(at(self.authorization, ACCESS_REVIEWS), outgoing.json, rules)
        paths = AllowedPaths(self.allowed)
        return AccessOptions(
            front_proxy=trust,
            more_tokens=[token],
            modes=[lambda cache: paths, lambda cache: review],
            anonymous=anonymous,
            audiences=(),
            outgoing=outgoing,
        )

    async def read(self, outgoing: Outgoing) -> Mapping[str, str]:
        """The data of the ConfigMap. Raises CallFailed."""
        found = await outgoing.json(at(self.authentication, CONFIGURATION))
        data = found.get("data") if isinstance(found, dict) else None
        return data if isinstance(data, dict) else {}

    async def prepare(self, trust: ClusterTrust, outgoing: Outgoing, seconds: float) -> None:
        """Reads the configuration, for so long as the cluster cannot be reached at most. Raises CallFailed,
        BadConfiguration."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while True:
            try:
                trust.set(await self.read(outgoing))
                return
            except CallFailed as fault:
                # Waiting does not help against missing rights.
                if fault.status in (401, 403) or loop.time() >= end:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def follow(self, trust: ClusterTrust, outgoing: Outgoing) -> None:
        """Reads it again and again."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                trust.set(await self.read(outgoing))
            except (CallFailed, BadConfiguration) as fault:
                # What was known stays valid: a restart of the cluster's API server must not lock everybody out.
                log.warning("the cluster's authentication cannot be read", extra={"reason": str(fault)})

    def namespaces(self, outgoing: Outgoing) -> Callable[[str], Awaitable[str | None]]:
        """Asks for the phase of a namespace: None where there is none. Raises CallFailed."""

        async def phase(name: str) -> str | None:
            try:
                found: Any = await outgoing.json(at(self.authorization, f"/api/v1/namespaces/{name}"))
            except CallFailed as fault:
                if fault.status == 404:
                    return None
                raise
            status = found.get("status") if isinstance(found, dict) else None
            # A namespace without a status is active.
            return str((status or {}).get("phase") or "Active")

        return phase


def at(endpoint: Endpoint, path: str) -> Endpoint:
    """A path of the same server."""
    return Endpoint(
        endpoint.url.rstrip("/") + path,
        endpoint.tls,
        endpoint.headers,
        endpoint.seconds,
        endpoint.server_name,
    )
