"""Tokens of service accounts: signed here, verified here, bound to objects that must still exist.

A token (JWT) says who (``sub``), for whom (``aud``), from when to when, and in the claim ``kubernetes.io`` the service
account and the pod, secret or node it is bound to, each by name and uid. It holds only as long as all of them exist
with that uid: deleting the pod, or recreating the account, ends the token; so does a deletion that finalizers hold up,
after a minute in which a pod may still say goodbye. Verified signatures are remembered, since a
client sends the same token with every request; existence and time are looked at each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

import msgspec

from apimachinery.access.authentication import ISSUER, Identity, TokenRefused
from apimachinery.access.authorization import (
    SERVICE_ACCOUNT_PREFIX,
    service_account_groups,
    service_account_name,
)
from apimachinery.access.keys import (
    BadToken,
    SigningKey,
    VerifiedTokens,
    VerifyingKey,
    verifying,
)
from apimachinery.http.messages import User
from apimachinery.meta.clock import wall
from apimachinery.meta.printing import go_quote
from apimachinery.storage.interface import Record

DELETED_GRACE_SECONDS = 60
EXTENDED_SECONDS = 365 * 24 * 3600
WARNED_SECONDS = 3607
"""A token asked for exactly so long lives a year and warns from then on: older clients never ask again."""
_EXTRA = "authentication.kubernetes.io/"
_PREFIXES = {
    "pod": "/core/pods/{namespace}/{name}",
    "secret": "/core/secrets/{namespace}/{name}",
    "node": "/core/nodes/{name}",
}
Lookup = Callable[[str], Record | None]
"""The record of a storage key."""


@dataclass(frozen=True, slots=True)
class ServiceAccountKeys:
    """How tokens are signed and verified. The first issuer signs, all are accepted; ``audiences`` are this server's,
    the first issuer where none is given."""

    signing: SigningKey
    more: tuple[VerifyingKey, ...] = ()
    issuers: tuple[str, ...] = (ISSUER,)
    audiences: tuple[str, ...] = ()
    jwks_uri: str = ""
    max_seconds: int = 0

    @property
    def verifying(self) -> tuple[VerifyingKey, ...]:
        """All keys whose tokens are accepted."""
        own = verifying(self.signing.key.public_key(), "signing key")
        # The key that signs is usually listed among the others too.
        return (own, *(key for key in self.more if key.id != own.id))

    @property
    def names(self) -> tuple[str, ...]:
        """This server's audiences."""
        return self.audiences or self.issuers[:1]


class _Meta(msgspec.Struct):
    uid: str = ""
    deletionTimestamp: Any = None  # noqa: N815


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_read = msgspec.json.Decoder(_Object).decode


@dataclass(frozen=True, slots=True)
class Bound:
    """An object that a token is bound to: ``kind`` is pod, secret or node."""

    kind: str
    name: str
    uid: str


class ServiceAccountTokens:
    """Signs and knows tokens of service accounts."""

    def __init__(self, keys: ServiceAccountKeys, lookup: Lookup) -> None:
        self.keys = keys
        self._tokens = VerifiedTokens(keys.issuers, keys.verifying)
        self._lookup = lookup

    def sign(
        self,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str],
        seconds: int,
        bound: Sequence[Bound] = (),
    ) -> tuple[str, int]:
        """A token for a service account, and when it expires (seconds since 1970)."""
        now = int(wall())
        if self.keys.max_seconds:
            seconds = min(seconds, self.keys.max_seconds)
        private: dict[str, Any] = {"namespace": namespace}
        # In the order of the fields of Go's struct: tokens with equal claims are equal texts.
        for held in sorted(bound, key=lambda held: held.kind):
            private[held.kind] = {"name": held.name, "uid": held.uid}
        private["serviceaccount"] = {"name": name, "uid": uid}
        shown = expires = now + seconds
        if seconds == WARNED_SECONDS and any(held.kind == "pod" for held in bound):
            # The client is told the short life, so that it asks again; the token itself lasts longer.
            private["warnafter"] = shown
            expires = now + EXTENDED_SECONDS
        claims = {
            "aud": list(audiences),
            "exp": expires,
            "iat": now,
            "iss": self.keys.issuers[0],
            "jti": str(uuid4()),
            "kubernetes.io": private,
            "nbf": now,
            "sub": f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}",
        }
        return self.keys.signing.sign(claims), shown

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        # Remembered: only existence and time are asked again below.
        try:
            claims = self._tokens.claims(token)
        except BadToken as fault:
            raise TokenRefused(str(fault)) from None
        if claims is None:
            return None
        try:
            return self._identity(claims, audiences)
        # The signature was right, so another program with the same key wrote other claims.
        except (KeyError, TypeError, AttributeError, ValueError):
            raise TokenRefused("service account token claims are invalid") from None

    def _identity(self, claims: dict[str, Any], audiences: tuple[str, ...]) -> Identity:
        now = wall()
        expires = claims.get("exp")
        # Without an end a token would be one of the kind that secrets hold; those are not served.
        if not isinstance(expires, int | float) or now >= expires:
            raise TokenRefused("service account token has expired")
        given = claims.get("aud")
        for_whom = tuple(given) if isinstance(given, list) else (str(given),) if given else ()
        common = tuple(name for name in for_whom if name in audiences)
        if audiences and not common:
            shown = f"[{' '.join(map(go_quote, for_whom))}]", f"[{' '.join(map(go_quote, audiences))}]"
            raise TokenRefused(f"token audiences {shown[0]} is invalid for the target audiences {shown[1]}")
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        username = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account['name']}"
        if claims.get("sub") != username or service_account_name(username) is None:
            raise TokenRefused("service account token claims are invalid")
        self._account_exists(namespace, account["name"], account["uid"])
        extra = []
        for kind, key in _PREFIXES.items():
            held = private.get(kind)
            if held is None:
                continue
            # A node next to a pod is reported for the record; only a token bound to the node itself depends on it.
            if kind != "node" or "pod" not in private:
                self._exists(kind, key.format(namespace=namespace, name=held["name"]), held["uid"])
            if kind != "secret":
                extra += [(f"{_EXTRA}{kind}-name", (held["name"],)), (f"{_EXTRA}{kind}-uid", (held["uid"],))]
        if claims.get("jti"):
            extra.append((f"{_EXTRA}credential-id", (f"JTI={claims['jti']}",)))
        user = User(username, account["uid"], service_account_groups(namespace), tuple(sorted(extra)))
        return Identity(user, common)

    def _account_exists(self, namespace: str, name: str, uid: str) -> None:
        metadata = self._metadata(f"/core/serviceaccounts/{namespace}/{name}")
        if metadata is None:
            raise TokenRefused(f"serviceaccounts {go_quote(name)} not found")
        if metadata.uid != uid:
            raise TokenRefused(f"service account UID ({metadata.uid}) does not match claim ({uid})")
        if metadata.deletionTimestamp and self._long_gone(metadata.deletionTimestamp):
            raise TokenRefused(f"service account {namespace}/{name} has been deleted")

    def _exists(self, what: str, key: str, uid: str) -> None:
        """Checks that what a token is bound to is there."""
        metadata = self._metadata(key)
        if metadata is None or (metadata.deletionTimestamp and self._long_gone(metadata.deletionTimestamp)):
            raise TokenRefused("service account token has been invalidated")
        if metadata.uid != uid:
            raise TokenRefused(f"{what} UID ({metadata.uid}) does not match claim ({uid})")

    def _metadata(self, key: str) -> _Meta | None:
        record = self._lookup(key)
        return None if record is None else _read(record.value).metadata

    def _long_gone(self, text: str) -> bool:
        return datetime.fromisoformat(text).timestamp() + DELETED_GRACE_SECONDS < wall()
