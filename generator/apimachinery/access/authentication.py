"""Who asks: the contract of authenticators, static tokens, and the one administrator of a loopback server.

Rules. A bearer token is tried on each kind of token in turn; one that none knows is refused with 401. A token file is
kube-apiserver's CSV: ``token,user,uid[,"group,group"]``; a later line for the same token wins.
"""

from __future__ import annotations

import csv
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import msgspec

from apimachinery.access.authorization import (
    AUTHENTICATED,
    MASTERS,
    UNAUTHENTICATED,
    aggregate,
)
from apimachinery.access.origin import refuse_pages
from apimachinery.http.messages import Request, User
from apimachinery.meta.errors import ApiError

log = logging.getLogger("kubewright.server")

ADMIN = User("admin", "admin", (MASTERS, AUTHENTICATED))
_LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]", ""))
ISSUER = "https://kubernetes.default.svc"
"""Who makes tokens of service accounts, and whom they are for, where nothing else is said."""
INVALID_TOKEN = "invalid bearer token"


class TokenFileError(ValueError):
    """A token file that cannot be used; the text names the line and what to do."""


class TokenRefused(Exception):
    """A token of a known kind that does not hold; the text says why, to a token review only."""


class Identity(msgspec.Struct, frozen=True):
    """Whose a token is, and for which audiences it was made of those that were asked about."""

    user: User
    audiences: tuple[str, ...] = ()


Ask = Callable[[], Awaitable[Identity | None]]


class MustAsk(Exception):
    """Only somebody else knows (a webhook, an issuer whose keys are not here yet): await ``ask()``. It gives what the
    interrupted call would have given, and raises what that would have raised."""

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self.ask = ask


class Authenticator(Protocol):
    """Names the user of a request, or None for a request without a credential of its kind."""

    def authenticate(self, request: Request) -> Identity | None:
        """Raises ApiError 401 for credentials that are not accepted, 403 for a foreign Host; MustAsk."""


class TokenKind(Protocol):
    """Knows one kind of bearer token."""

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        """Whose a token is, None where it is none of this kind. ``audiences``: it must be for one of them. Raises
        TokenRefused, MustAsk."""


class BearerTokens:
    """The ``Authorization: Bearer`` header, by all kinds of tokens in turn. ``audiences`` are this server's names."""

    def __init__(self, kinds: Sequence[TokenKind], audiences: tuple[str, ...] = ()) -> None:
        self._kinds = tuple(kinds)
        self.audiences = audiences

    def authenticate(self, request: Request) -> Identity | None:
        text = request.headers.get("authorization")
        if not text:
            return None
        if request.repeated and "authorization" in request.repeated:
            # The first of repeated headers, as Go's Header.Get.
            text = request.values("authorization")[0]
        scheme, _, rest = text.strip(" \t").partition(" ")
        token = rest.partition(" ")[0]
        if scheme.lower() != "bearer" or not token:
            # Without a token, or with more than one space before it, there is no credential at all.
            return None
        try:
            return self.identify(token, self.audiences)
        except TokenRefused:
            raise unauthorized() from None

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity:
        """Whose a token is. Raises TokenRefused with what every kind of token said, MustAsk."""
        return self._identify(token, audiences, 0, [])

    def _identify(self, token: str, audiences: tuple[str, ...], start: int, faults: list[str]) -> Identity:
        for place in range(start, len(self._kinds)):
            try:
                identity = self._kinds[place].identify(token, audiences)
            except TokenRefused as fault:
                # Another kind may still know the token; what this one said is only for a TokenReview.
                faults.append(str(fault))
                continue
            except MustAsk as must:
                ask = must.ask
                # The kinds after this one are tried only if the webhook does not know the token.
                raise MustAsk(lambda: self._ask(ask, token, audiences, place + 1, faults)) from None  # noqa: B023
            if identity is not None and (known := self._known(identity, audiences)) is not None:
                return known
        raise TokenRefused(aggregate([INVALID_TOKEN, *faults]))

    def _known(self, identity: Identity, audiences: tuple[str, ...]) -> Identity | None:
        """The identity of a token, None where it says nothing of audiences and is asked about for others than this
        server's: such a token is for this server."""
        common = identity.audiences
        if not common:
            # Identity, not equality: the usual question is about this very tuple.
            if audiences is self.audiences:
                common = audiences
            else:
                common = tuple(name for name in audiences if name in self.audiences)
                if not common:
                    return None
        return Identity(authenticated(identity.user), common)

    async def _ask(
        self, ask: Ask, token: str, audiences: tuple[str, ...], following: int, faults: list[str]
    ) -> Identity:
        try:
            identity = await ask()
        except TokenRefused as fault:
            faults.append(str(fault))
            identity = None
        if identity is not None and (known := self._known(identity, audiences)) is not None:
            return known
        try:
            return self._identify(token, audiences, following, faults)
        except MustAsk as must:
            # Another kind further on may have to be asked as well.
            further = await must.ask()
            assert further is not None
            return further


class KnownTokens:
    """Tokens that are known beforehand, and their users."""

    def __init__(self, users: dict[str, User]) -> None:
        self._users = {token: Identity(authenticated(user)) for token, user in users.items()}

    def take(self, other: KnownTokens) -> None:
        """Knows the tokens that ``other`` knows, and no more."""
        self._users = other._users

    def administrator(self) -> str:
        """A token with full rights, empty where there is none."""
        for token, identity in self._users.items():
            if MASTERS in identity.user.groups:
                return token
        return ""

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        """See TokenKind. A static token says nothing of audiences: it is for this server's."""
        del audiences
        return self._users.get(token)


class LoopbackAdmin:
    """Every request that gets here, having no credentials, is the administrator's.

    Safe only where no one else can send any: the socket is bound to loopback, and the ``Host`` must name loopback too,
    or a web page could reach the server by a name of its own (DNS rebinding). Pages that reach it are refused as well.
    """

    _identity = Identity(ADMIN)

    def authenticate(self, request: Request) -> Identity | None:
        host = request.headers.get("host", "").lower()
        if host not in _LOOPBACK_NAMES and _without_port(host) not in _LOOPBACK_NAMES:
            raise ApiError(
                403, "Forbidden", f"host {host!r} is not this machine; use 127.0.0.1, or serve with tokens"
            )
        refuse_pages(request)
        return self._identity


def _without_port(host: str) -> str:
    name, found, port = host.rpartition(":")
    return name if found and port.isdigit() else host


def authenticated(user: User) -> User:
    """A user with the group of all who have proved who they are."""
    # Impersonated and proxied users come with groups already; unauthenticated ones must not be promoted.
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def unauthorized() -> ApiError:
    """401, with no word on why."""
    return ApiError(401, "Unauthorized", "Unauthorized", has_details=False)


def read_token_file(path: Path) -> KnownTokens:
    """The tokens of a CSV file. Raises TokenFileError, OSError."""
    with path.open(newline="", encoding="utf-8") as lines:
        # On Windows the mode says nothing of who may read.
        if sys.platform != "win32" and os.fstat(lines.fileno()).st_mode & 0o077:
            log.warning("others can read the token file; chmod 600 %s", path)
        try:
            return KnownTokens(_read_users(path.name, lines))
        except (csv.Error, UnicodeDecodeError) as fault:
            raise TokenFileError(f"{path}: not a CSV file: {fault}") from None


def _read_users(name: str, lines: Iterable[str]) -> dict[str, User]:
    users: dict[str, User] = {}
    for number, row in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        if not row:
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise TokenFileError(f'{name}:{number}: a line needs token,user,uid and may add "group,group"')
        # Quoted, the groups are one field; unquoted they are several. Both are read.
        groups = [group.strip() for group in ",".join(row[3:]).split(",") if group.strip()]
        users[row[0]] = User(row[1], row[2], tuple(groups))
    if not users:
        raise TokenFileError(f"{name}: holds no token; add a line token,user,uid")
    return users
