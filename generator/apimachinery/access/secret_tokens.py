"""Tokens that Secrets hold: of service accounts, as before Kubernetes 1.24, and of machines that join a cluster.

Service accounts (type ``kubernetes.io/service-account-token``): a signed token without an end. It holds while its
Secret is there with this very token, and the account it names with this uid; so deleting the Secret ends it.

Bootstrap tokens (type ``bootstrap.kubernetes.io/token``, in ``kube-system``): ``ID.SECRET``. The Secret
``bootstrap-token-ID`` has the secret, an end, groups, and whether it may be used to authenticate.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from datetime import datetime
from typing import Any

import msgspec

from apimachinery.access.authentication import Identity, TokenRefused
from apimachinery.access.authorization import (
    SERVICE_ACCOUNT_PREFIX,
    service_account_groups,
    service_account_name,
)
from apimachinery.access.keys import BadToken, VerifiedTokens
from apimachinery.access.service_accounts import Lookup, ServiceAccountKeys
from apimachinery.http.messages import User
from apimachinery.meta.clock import wall
from apimachinery.meta.printing import go_quote

ISSUER = "kubernetes/serviceaccount"
ACCOUNT_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME = "kubernetes.io/service-account.name"
ACCOUNT_UID = "kubernetes.io/service-account.uid"
BOOTSTRAP_TYPE = "bootstrap.kubernetes.io/token"
BOOTSTRAP_GROUP = "system:bootstrappers"
_CLAIM = "kubernetes.io/serviceaccount/"
_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


class _Meta(msgspec.Struct):
    uid: str = ""
    deletionTimestamp: Any = None  # noqa: N815


class _Secret(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    type: str = ""
    data: dict[str, str] | None = None


_read = msgspec.json.Decoder(_Secret).decode


def _data(secret: _Secret) -> dict[str, str]:
    """The values of a Secret that are text."""
    found = {}
    for key, value in (secret.data or {}).items():
        try:
            found[key] = base64.b64decode(value, validate=True).decode()
        # A value that is no text cannot be a token; the others of the Secret count.
        except (binascii.Error, ValueError):
            continue
    return found


def account_claims(namespace: str, account: str, uid: str, secret: str) -> dict[str, Any]:
    """What the token of a service account's Secret says."""
    return {
        "iss": ISSUER,
        _CLAIM + "namespace": namespace,
        _CLAIM + "secret.name": secret,
        _CLAIM + "service-account.name": account,
        _CLAIM + "service-account.uid": uid,
        "sub": f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}",
    }


class AccountSecretTokens:
    """Knows tokens of service accounts that Secrets hold."""

    def __init__(self, keys: ServiceAccountKeys, lookup: Lookup) -> None:
        self._tokens = VerifiedTokens((ISSUER,), keys.verifying)
        self._lookup = lookup

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        """See TokenKind. Such a token says nothing of audiences: it is for this server's."""
        del audiences
        try:
            claims = self._tokens.claims(token)
        except BadToken as fault:
            raise TokenRefused(str(fault)) from None
        if claims is None:
            return None
        return Identity(self._user(token, claims))

    def _user(self, token: str, claims: dict[str, Any]) -> User:
        named = [
            claims.get(_CLAIM + key)
            for key in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        ]
        if not all(isinstance(value, str) and value for value in named):
            raise TokenRefused("service account token claims are invalid")
        namespace, secret_name, account, uid = map(str, named)
        username = f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}"
        if claims.get("sub") != username or service_account_name(username) is None:
            raise TokenRefused("sub claim is invalid")
        record = self._lookup(f"/core/secrets/{namespace}/{secret_name}")
        secret = None if record is None else _read(record.value)
        if secret is None or secret.metadata.deletionTimestamp:
            raise TokenRefused("Token has been invalidated")
        kept = _data(secret).get("token", "")
        # In constant time, so that nobody can guess the token byte by byte.
        if secret.type != ACCOUNT_TYPE or not hmac.compare_digest(kept.encode(), token.encode()):
            raise TokenRefused("token does not match server's copy")
        # The account may have been recreated with the same name; only its uid tells.
        found = self._lookup(f"/core/serviceaccounts/{namespace}/{account}")
        metadata = None if found is None else _read(found.value).metadata
        if metadata is None:
            raise TokenRefused(f"serviceaccounts {go_quote(account)} not found")
        if metadata.deletionTimestamp:
            raise TokenRefused(f"ServiceAccount {namespace}/{account} has been deleted")
        if metadata.uid != uid:
            raise TokenRefused(f"service account UID ({metadata.uid}) does not match claim ({uid})")
        return User(username, uid, service_account_groups(namespace))


class BootstrapTokens:
    """Knows bootstrap tokens."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        """See TokenKind. What does not hold is none of them, so nothing is told of why."""
        del audiences
        parts = _TOKEN.fullmatch(token)
        record = (
            None if parts is None else self._lookup(f"/core/secrets/kube-system/bootstrap-token-{parts[1]}")
        )
        if parts is None or record is None:
            return None
        secret = _read(record.value)
        data = _data(secret)
        if (
            secret.type != BOOTSTRAP_TYPE
            or secret.metadata.deletionTimestamp
            or data.get("token-id") != parts[1]
            or not hmac.compare_digest(data.get("token-secret", "").encode(), parts[2].encode())
            or data.get("usage-bootstrap-authentication") != "true"
            or not _lasts(data.get("expiration", ""))
        ):
            return None
        groups = [name.strip() for name in data.get("auth-extra-groups", "").split(",") if name.strip()]
        if not all(_GROUP.fullmatch(name) for name in groups):
            return None
        return Identity(
            User(f"system:bootstrap:{parts[1]}", groups=tuple(sorted({BOOTSTRAP_GROUP, *groups})))
        )


def _lasts(expiration: str) -> bool:
    """Whether an end is still to come; one that cannot be read has come."""
    if not expiration:
        return True
    try:
        end = datetime.fromisoformat(expiration)
    except ValueError:
        return False
    # An end without a zone could mean any time of a day.
    return end.tzinfo is not None and end.timestamp() > wall()
