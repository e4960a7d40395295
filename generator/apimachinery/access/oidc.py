"""Tokens of OpenID Connect issuers, by the structured form of kube-apiserver's ``jwt`` authenticators (KEP-3331).

A token counts for the authenticator whose issuer it names. It must be signed by one of the issuer's keys, be for one of
the audiences, and in its time; then the claim rules must hold, claims make the user, and the user rules must hold. Keys
are fetched when the first token comes, and again when a token names a key that is not among them, though not more often
than every ten seconds. Tokens of an issuer that cannot be reached are refused.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apimachinery.access.authentication import Identity, MustAsk, TokenRefused
from apimachinery.access.keys import (
    ALGORITHMS,
    BadToken,
    UnusableKey,
    VerifyingKey,
    read_key_set,
    unverified_issuer,
    unverified_key_id,
    verified_claims,
)
from apimachinery.cel.environment import PER_CALL_LIMIT, Environment, Program
from apimachinery.cel.values import types as cel
from apimachinery.http.messages import User
from apimachinery.http.outgoing import CallFailed, Endpoint
from apimachinery.http.remembered import Remembered, SharedQuestions

REFRESHED_SECONDS = 10.0
STALE_SECONDS = 3600.0
Get = Callable[[Endpoint], Awaitable[Any]]
_CLAIMS = cel.map_of(cel.STRING, cel.DYN)


class BadIssuer(ValueError):
    """An issuer's configuration that cannot be used; the text says what."""


@dataclass(frozen=True, slots=True)
class Mapped:
    """Where a part of the user comes from: a claim with a prefix, or a CEL expression over ``claims``."""

    claim: str = ""
    prefix: str = ""
    expression: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """A rule: a claim with its value, or a CEL expression that must be true; ``message`` is said where it is not."""

    claim: str = ""
    value: str = ""
    expression: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Issuer:
    """One issuer. ``endpoint`` is where its discovery document is read."""

    url: str
    endpoint: Endpoint
    audiences: tuple[str, ...]
    username: Mapped
    groups: Mapped = Mapped()
    uid: Mapped = Mapped()
    extra: Mapping[str, str] = field(default_factory=dict)
    claim_rules: Sequence[Checked] = ()
    user_rules: Sequence[Checked] = ()
    algorithms: frozenset[str] = ALGORITHMS


class IssuerTokens:
    """Knows the tokens of one issuer. Raises BadIssuer for expressions that cannot be compiled."""

    def __init__(self, issuer: Issuer, get: Get) -> None:
        self._issuer = issuer
        self._get = get
        self._keys: list[VerifyingKey] = []
        self._fetched = float("-inf")
        self._tried = float("-inf")
        self._fetching: SharedQuestions[None] = SharedQuestions()
        self._remembered: Remembered[str, tuple[float, Identity]] = Remembered()
        environment = Environment.kubernetes().extend(variables={"claims": _CLAIMS}, limit=PER_CALL_LIMIT)
        of_user = Environment.kubernetes().extend(variables={"user": _CLAIMS}, limit=PER_CALL_LIMIT)
        mapped = {"username": issuer.username, "groups": issuer.groups, "uid": issuer.uid}
        self._mappings = {
            name: _compiled(environment, each.expression, f"claimMappings.{name}.expression")
            for name, each in mapped.items()
            if each.expression
        }
        self._extra = {
            key: _compiled(environment, text, f"claimMappings.extra[{key}]")
            for key, text in issuer.extra.items()
        }
        self._claim_rules = [
            (rule, _rule(environment, rule, "claimValidationRules")) for rule in issuer.claim_rules
        ]
        self._user_rules = [(rule, _rule(of_user, rule, "userValidationRules")) for rule in issuer.user_rules]

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        del audiences  # these tokens have their own, which the configuration names
        held = self._remembered.get(token)
        # The time is asked again for each request: a remembered token may have expired since.
        if held is not None:
            if held[0] <= time.time():
                raise TokenRefused("oidc: verify token: token is expired")
            return held[1]
        if unverified_issuer(token) != self._issuer.url:
            return None
        if self._must_fetch(token):
            raise MustAsk(lambda: self._ask(token))
        return self._identified(token)

    def _must_fetch(self, token: str) -> bool:
        now = time.monotonic()
        # A made-up key id must not make this server fetch keys with each request.
        if now - self._tried < REFRESHED_SECONDS and self._keys:
            return False
        key = unverified_key_id(token)
        known = any(not key or held.id == key for held in self._keys)
        return not known or now - self._fetched > STALE_SECONDS

    async def _ask(self, token: str) -> Identity | None:
        # Another task may have fetched the keys while this one waited.
        if time.monotonic() - self._tried >= REFRESHED_SECONDS or not self._keys:
            try:
                await self._fetching.once("", self._fetch)
            except (CallFailed, UnusableKey, BadIssuer) as fault:
                # With old keys at hand, a fetch that failed is no reason to refuse: the old ones may still verify.
                if not self._keys:
                    raise TokenRefused(f"oidc: authenticator not initialized: {fault}") from None
        return self._identified(token)

    async def _fetch(self) -> None:
        # Set before the first wait, so that failures count against the limit too.
        issuer, self._tried = self._issuer, time.monotonic()
        document = await self._get(issuer.endpoint)
        # OpenID Connect Discovery section 4.3: the issuer must be the one that was asked.
        if not isinstance(document, dict) or document.get("issuer") != issuer.url:
            said = document.get("issuer") if isinstance(document, dict) else None
            raise BadIssuer(f"{issuer.endpoint.url}: names the issuer {said!r} instead of {issuer.url!r}")
        address = document.get("jwks_uri")
        # Keys over plain HTTP could be replaced on the way.
        if not isinstance(address, str) or not address.startswith("https://"):
            raise BadIssuer(f"{issuer.endpoint.url}: jwks_uri is no https address")
        keys = await self._get(Endpoint(address, issuer.endpoint.tls, seconds=issuer.endpoint.seconds))
        self._keys = read_key_set(keys)
        self._fetched = time.monotonic()

    def _identified(self, token: str) -> Identity:
        try:
            claims = verified_claims(token, self._keys, self._issuer.algorithms)
        except BadToken as fault:
            raise TokenRefused(f"oidc: verify token: {fault}") from None
        expires = claims.get("exp")
        # A bool is an int in Python.
        if isinstance(expires, bool) or not isinstance(expires, int | float):
            raise TokenRefused("oidc: verify token: the claim exp is missing")
        # RFC 7519 section 4.1.3: one audience may be written as a plain text.
        given = claims.get("aud")
        for_whom = given if isinstance(given, list) else [given]
        if not any(audience in self._issuer.audiences for audience in for_whom):
            raise TokenRefused(f"oidc: verify token: expected audience in {list(self._issuer.audiences)}")
        identity = Identity(self._user(claims))
        self._remembered.put(token, (float(expires), identity))
        return identity

    def _user(self, claims: dict[str, Any]) -> User:
        issuer = self._issuer
        for rule, program in self._claim_rules:
            if program is None and claims.get(rule.claim) != rule.value:
                raise TokenRefused(f"oidc: required claim {rule.claim} not present or wrong")
            if program is not None and _value(program, {"claims": claims}) is not True:
                raise TokenRefused(f"oidc: {rule.message or f'claim rule {rule.expression!r} is not true'}")
        name = self._mapped("username", issuer.username, claims)
        if not isinstance(name, str) or not name:
            raise TokenRefused("oidc: the username claim is missing or empty")
        # As kube-apiserver: an email is taken as a name unless the issuer says that it is not verified.
        if issuer.username.claim == "email" and claims.get("email_verified", True) is not True:
            raise TokenRefused("oidc: email not verified")
        uid = self._mapped("uid", issuer.uid, claims)
        groups = self._mapped("groups", issuer.groups, claims)
        if isinstance(groups, str):
            # A single group may be written as a plain text.
            groups = [groups] if groups else []
        if groups is not None and not (isinstance(groups, list) and all(isinstance(g, str) for g in groups)):
            raise TokenRefused("oidc: the groups claim is neither a string nor a list of strings")
        extra = []
        for key, program in self._extra.items():
            value = _value(program, {"claims": claims})
            values = [value] if isinstance(value, str) else value or []
            if not (isinstance(values, list) and all(isinstance(v, str) for v in values)):
                raise TokenRefused(f"oidc: extra {key} is neither a string nor a list of strings")
            if kept := tuple(v for v in values if v):
                extra.append((key, kept))
        if claims.get("jti") and isinstance(claims["jti"], str):
            extra.append(("authentication.kubernetes.io/credential-id", (f"JTI={claims['jti']}",)))
        prefix = issuer.groups.prefix
        own = tuple(f"{prefix}{group}" for group in groups or () if group)
        user = User(
            issuer.username.prefix + name, uid if isinstance(uid, str) else "", own, tuple(sorted(extra))
        )
        self._check_user(user)
        return user

    def _check_user(self, user: User) -> None:
        if not self._user_rules:
            return
        # Rules may ask for any field, so absent ones are there with their zero values.
        shown = {"uid": "", "groups": [], "extra": {}, **user.info()}
        for rule, program in self._user_rules:
            if program is None or _value(program, {"user": shown}) is not True:
                raise TokenRefused(f"oidc: {rule.message or f'user rule {rule.expression!r} is not true'}")

    def _mapped(self, name: str, mapped: Mapped, claims: dict[str, Any]) -> Any:
        program = self._mappings.get(name)
        if program is not None:
            return _value(program, {"claims": claims})
        return claims.get(mapped.claim) if mapped.claim else None


def _compiled(environment: Environment, text: str, place: str) -> Program:
    try:
        return environment.compile(text)
    except Exception as fault:
        raise BadIssuer(f"{place}: {fault}") from None


def _rule(environment: Environment, rule: Checked, place: str) -> Program | None:
    return _compiled(environment, rule.expression, f"{place}.expression") if rule.expression else None


def _value(program: Program, variables: dict[str, Any]) -> Any:
    outcome = program.run(variables)
    if outcome.error is not None:
        raise TokenRefused(f"oidc: {program.source}: {outcome.error}")
    return outcome.value
