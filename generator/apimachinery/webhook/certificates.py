"""Certificates of webhooks that renew themselves, without cert-manager: kept in a Secret that all replicas share.

Theory. A server trusts a webhook by the authorities in its configuration, so a new certificate must be trusted before
anybody serves it. A renewal has three steps, each of which may be done by any replica, and again: the next certificate
is put into the Secret, next to the one that is served (of several replicas one wins, by the Secret's version);
authorities of both are published; the next one becomes the one that is served. Replicas serve what the Secret says, and
read it again every minute. A certificate is its own authority.
"""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from apimachinery.client.connection import Client
from apimachinery.client.errors import AlreadyExists, NotFound
from apimachinery.client.resource import DynamicResource
from apimachinery.http.tls import ensure_certificate, expires_soon
from apimachinery.meta.resources import Resource

SECRETS: Final = Resource(
    group="", version="v1", kind="Secret", plural="secrets", singular="secret", namespaced=True, verbs=()
)
SERVED, NEXT, OLD = ("tls.crt", "tls.key"), ("next.crt", "next.key"), "old.crt"


class SharedCertificate:
    """The certificate in a Secret; ``publish`` has a server trust authorities (PEM)."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        host: str,
        publish: Callable[[bytes], None],
        *,
        expiring: Callable[[bytes], bool] = expires_soon,
    ) -> None:
        self._api = DynamicResource(client, SECRETS)
        self._namespace = namespace
        self._name = name
        self._host = host
        self._publish = publish
        self._expiring = expiring
        self._published = b""

    def load(self) -> tuple[bytes, bytes]:
        """The certificate and key to serve; made where there is none. Raises ``ApiError``."""
        data = _decoded(self._secret())
        return data[SERVED[0]], data[SERVED[1]]

    def current(self) -> tuple[bytes, bytes]:
        """As ``load``; trusted by the server, and renewed where it is time. Raises ``ApiError``, and ``Conflict`` where
        another replica was faster: ask again."""
        secret = self._secret()
        data = _decoded(secret)
        if NEXT[0] not in data and self._expiring(data[SERVED[0]]):
            data |= dict(zip(NEXT, made_for(self._host), strict=True))
            secret = self._write(secret, data)
        self._trust(data)
        if NEXT[0] in data:
            # The old one stays trusted until the next renewal: replicas serve it for a minute more.
            data = {SERVED[0]: data[NEXT[0]], SERVED[1]: data[NEXT[1]], OLD: data[SERVED[0]]}
            self._write(secret, data)
        return data[SERVED[0]], data[SERVED[1]]

    def _trust(self, data: dict[str, bytes]) -> None:
        authorities = b"".join(sorted(data[name] for name in (SERVED[0], NEXT[0], OLD) if name in data))
        if authorities != self._published:
            self._publish(authorities)
            self._published = authorities

    def _secret(self) -> dict[str, Any]:
        """The Secret, with a certificate in it."""
        try:
            secret = self._api.get(self._name, namespace=self._namespace)
        except NotFound:
            body = {
                "metadata": {"name": self._name},
                "type": "kubernetes.io/tls",
                "data": _encoded(self._made()),
            }
            try:
                return self._api.create(body, namespace=self._namespace)
            except AlreadyExists:  # another replica was faster
                secret = self._api.get(self._name, namespace=self._namespace)
        data = _decoded(secret)
        if all(data.get(name) for name in SERVED):
            return secret
        return self._write(secret, {**data, **self._made()})  # a Secret that waits to be filled

    def _made(self) -> dict[str, bytes]:
        return dict(zip(SERVED, made_for(self._host), strict=True))

    def _write(self, secret: dict[str, Any], data: dict[str, bytes]) -> dict[str, Any]:
        return self._api.replace({**secret, "data": _encoded(data)}, namespace=self._namespace)


def _encoded(data: dict[str, bytes]) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


def _decoded(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def made_for(host: str) -> tuple[bytes, bytes]:
    """A certificate for a host, with its key."""
    with tempfile.TemporaryDirectory(prefix="kubewright-webhook-") as folder:
        certificate, key = ensure_certificate(Path(folder), host)
        return certificate.read_bytes(), key.read_bytes()
