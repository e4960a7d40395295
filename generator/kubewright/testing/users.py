"""Users of a server for tests: their tokens, and what they did."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from apimachinery.access.authentication import ADMIN, Identity, TokenKind
from apimachinery.access.authorization import (
    AUTHENTICATED,
    Attributes,
    service_account_groups,
    service_account_name,
)
from apimachinery.http.messages import User
from kubewright.tools.rbac.recording import Deed, deed_of, roles_of


class Recording:
    """What users did on a server for tests."""

    def __init__(self) -> None:
        self._deeds: dict[Deed, None] = {}

    def add(self, attributes: Attributes) -> None:
        """Takes one more."""
        self._deeds[deed_of(attributes)] = None

    @property
    def users(self) -> list[str]:
        """Who did anything."""
        return sorted({deed.user for deed in self._deeds})

    def roles(self, user: str, name: str, *, names: bool = False) -> list[dict[str, Any]]:
        """Roles and bindings that let the user do what he did and no more, as manifests."""
        return roles_of(self._deeds, user, name, names=names)

    def unused(self, user: str, rules: Iterable[dict[str, Any]], namespace: str = "") -> list[str]:
        """What of a role's rules the user never used in a namespace ("" for the cluster): ``VERB GROUP RESOURCE``."""
        used = {
            (d.verb, d.group, d.resource) for d in self._deeds if d.user == user and d.namespace == namespace
        }
        return [
            f"{verb} {group or 'core'} {resource}"
            for rule in rules
            for group in rule.get("apiGroups") or ()
            for resource in rule.get("resources") or ()
            for verb in rule.get("verbs") or ()
            if (verb, group, resource) not in used
        ]


class Users(TokenKind):
    """Users of a server for tests: whoever is asked for, each with a token of his own."""

    def __init__(self) -> None:
        self._tokens: dict[User, str] = {}
        self._identities: dict[str, Identity] = {}

    def token(self, name: str, groups: Iterable[str] = ()) -> str:
        """The token of a user, made at the first call. ``admin`` is the administrator."""
        user = ADMIN
        if name != ADMIN.name or groups:
            user = User(name, "", tuple(self.groups(name, groups)))
        token = self._tokens.get(user)
        if token is None:
            token = self._tokens[user] = secrets.token_urlsafe(24)
            self._identities[token] = Identity(user)
        return token

    def groups(self, name: str, groups: Iterable[str]) -> list[str]:
        """All groups of a user: those given, and those that his name says."""
        account = service_account_name(name)
        own = service_account_groups(account[0]) if account is not None else ()
        return [*own, *groups, AUTHENTICATED]

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        del audiences
        return self._identities.get(token)
