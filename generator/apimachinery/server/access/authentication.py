"""Who asks: static tokens, or the one administrator of a loopback server without tokens.

Rules. A token file is kube-apiserver's CSV: ``token,user,uid[,"group,group"]``; a later line for the same token
wins. With one, a request without a token is nobody's and one with an unknown token is refused. Without one every
request is an administrator's, which is safe only where no one else can send any: the socket is bound to loopback,
and the ``Host`` must name loopback too, or a web page could reach the server by a name of its own (DNS
rebinding).
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from apimachinery.meta.errors import ApiError
from apimachinery.server.access.origin import refuse_pages
from apimachinery.server.http.messages import Request, User

AUTHENTICATED = "system:authenticated"
ADMIN = User("admin", "admin", ("system:masters", AUTHENTICATED))
_LOOPBACK_NAMES = frozenset(("localhost", "127.0.0.1", "[::1]", ""))


class TokenFileError(ValueError):
    """A token file that cannot be used; the text names the line and what to do."""


class Authenticator(Protocol):
    """Names the user of a request, or None for a request without credentials."""

    def authenticate(self, request: Request) -> User | None:
        """Raises ApiError 401 for credentials that are not accepted, 403 for a foreign Host."""


class Tokens:
    """Bearer tokens and their users."""

    def __init__(self, users: dict[str, User]) -> None:
        self._users = users

    def administrator(self) -> str:
        """A token with full rights where there is one, else the first."""
        for token, user in self._users.items():
            if "system:masters" in user.groups:
                return token
        return next(iter(self._users))

    def authenticate(self, request: Request) -> User | None:
        """See Authenticator."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        user = self._users.get(token)
        if user is None:
            raise unauthorized()
        return user


class LoopbackAdmin:
    """Every request is the administrator's."""

    def authenticate(self, request: Request) -> User | None:
        """See Authenticator."""
        host = request.headers.get("host", "").lower()
        if host not in _LOOPBACK_NAMES and _without_port(host) not in _LOOPBACK_NAMES:
            raise ApiError(
                403,
                "Forbidden",
                f"host {host!r} is not this machine; use 127.0.0.1, or serve with a token file",
            )
        refuse_pages(request)
        return ADMIN


def _without_port(host: str) -> str:
    name, found, port = host.rpartition(":")
    return name if found and port.isdigit() else host


def unauthorized() -> ApiError:
    """401, with no word on why."""
    return ApiError(401, "Unauthorized", "Unauthorized", has_details=False)


def read_token_file(path: Path) -> Tokens:
    """The tokens of a CSV file. Raises TokenFileError, OSError."""
    with path.open(newline="", encoding="utf-8") as lines:
        try:
            return Tokens(_read_users(path.name, lines))
        except (csv.Error, UnicodeDecodeError) as fault:
            raise TokenFileError(f"{path}: not a CSV file: {fault}") from None


def _read_users(name: str, lines: Iterable[str]) -> dict[str, User]:
    users: dict[str, User] = {}
    for number, row in enumerate(csv.reader(lines, skipinitialspace=True), 1):
        if not row:
            continue
        if len(row) < 3 or not row[0] or not row[1]:
            raise TokenFileError(f'{name}:{number}: a line needs token,user,uid and may add "group,group"')
        groups = [group.strip() for group in ",".join(row[3:]).split(",") if group.strip()]
        users[row[0]] = User(row[1], row[2], (*groups, AUTHENTICATED))
    if not users:
        raise TokenFileError(f"{name}: holds no token; add a line token,user,uid")
    return users
