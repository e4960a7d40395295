"""The gate of a server: who asks, as whom, and whether he may. ``App`` takes the three steps before every handler.

    authenticate → impersonate → authorize

Order of authentication, as kube-apiserver has it: the front proxy's headers, the client certificate, the bearer token
(each kind of token in turn). The first that knows the credential names the user. A credential that is refused is 401
and never falls through to anonymous; a request without any credential is ``system:anonymous``, where that is enabled.

A refusal of authorization follows from method, path and query alone: nothing of the body has been looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from apimachinery.access.attributes import attributes_of
from apimachinery.access.authentication import (
    ISSUER,
    Authenticator,
    BearerTokens,
    Identity,
    LoopbackAdmin,
    MustAsk,
    TokenKind,
    TokenRefused,
    unauthorized,
)
from apimachinery.access.authorization import (
    ANONYMOUS,
    MASTERS,
    UNAUTHENTICATED,
    AlwaysAllow,
    AlwaysDeny,
    Attributes,
    Authorizer,
    Chain,
    Verdict,
    refusal,
)
from apimachinery.access.impersonation import PREFIX, impersonate, wanted_user
from apimachinery.access.rbac import Rbac
from apimachinery.http.messages import Request, User
from apimachinery.http.outgoing import Outgoing
from apimachinery.meta.errors import ApiError, internal
from apimachinery.storage.watch_cache import WatchCache

if TYPE_CHECKING:
    # Both import a cryptographic library, which a server without keys need not wait for.
    from apimachinery.access.certificates import SigningAuthority
    from apimachinery.access.service_accounts import ServiceAccountKeys, ServiceAccountTokens

NOBODY = User(ANONYMOUS, groups=(UNAUTHENTICATED,))
MODES = ("RBAC", "Node", "AlwaysAllow", "AlwaysDeny", "Webhook")
MakeAuthorizer = Callable[[WatchCache], Authorizer]


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Who may in.

    ``certificates`` and ``front_proxy`` look at the connection, ``tokens`` at bearer tokens, in order, before those of
    service accounts (``service_accounts``, None for none) and ``more_tokens`` after them. ``modes`` of authorization in
    order, each a word of ``MODES`` or a function that makes an authorizer over the server's watch cache. ``anonymous``:
    a request without credentials goes on to authorization, if its path is one of ``anonymous_paths`` where they are
    given. ``bootstrap_tokens``: tokens that Secrets in kube-system hold are taken. ``open_to_loopback``: a request
    without credentials is the administrator's. ``signing`` is the authority that signs client certificates on request.
    ``audiences`` are this server's names where it makes no tokens. ``outgoing`` makes the calls of ``tokens`` and
    ``modes``, if any calls.
    """

    front_proxy: Authenticator | None = None
    certificates: Authenticator | None = None
    tokens: Sequence[TokenKind] = ()
    service_accounts: ServiceAccountKeys | None = None
    more_tokens: Sequence[TokenKind] = ()
    modes: Sequence[str | MakeAuthorizer] = ("RBAC",)
    anonymous: bool = True
    anonymous_paths: frozenset[str] | None = None
    bootstrap_tokens: bool = False
    open_to_loopback: bool = False
    signing: SigningAuthority | None = None
    audiences: tuple[str, ...] = (ISSUER,)
    outgoing: Outgoing | None = None


OPEN_TO_LOOPBACK = AccessOptions(modes=("AlwaysAllow",), open_to_loopback=True)
"""Whoever reaches the server may do everything: for servers that only tests or the same machine reach."""


class Access:
    """Authentication and authorization of one server. ``record``, where it is set, sees everything that is allowed."""

    def __init__(
        self, options: AccessOptions, cache: WatchCache, url: Callable[[], str] = lambda: ""
    ) -> None:
        """``url`` is where the server listens, once it does."""
        self.service_accounts: ServiceAccountTokens | None = None
        kinds = list(options.tokens)
        audiences = options.audiences
        if options.service_accounts is not None:
            # Imported here: both load cryptography, which many servers do not need.
            from apimachinery.access.secret_tokens import AccountSecretTokens
            from apimachinery.access.service_accounts import ServiceAccountTokens

            self.service_accounts = ServiceAccountTokens(options.service_accounts, cache.record)
            kinds.append(AccountSecretTokens(options.service_accounts, cache.record))
            kinds.append(self.service_accounts)
            audiences = options.service_accounts.names
        if options.bootstrap_tokens:
            from apimachinery.access.secret_tokens import BootstrapTokens

            kinds.append(BootstrapTokens(cache.record))
        self.tokens = BearerTokens([*kinds, *options.more_tokens], audiences)
        self._authenticators: list[Authenticator] = [
            authenticator
            for authenticator in (options.front_proxy, options.certificates, self.tokens)
            if authenticator is not None
        ]
        # Last: whoever shows a credential is taken at it, on loopback too.
        if options.open_to_loopback:
            self._authenticators.append(LoopbackAdmin())
        self.url = url
        self.record: Callable[[Attributes], None] | None = None
        self._anonymous = options.anonymous
        self._anonymous_paths = options.anonymous_paths
        self.signing = options.signing
        self.rbac: Rbac | None = None
        self.authorizer = Chain([self._authorizer(mode, cache) for mode in options.modes])

    def _authorizer(self, mode: str | MakeAuthorizer, cache: WatchCache) -> Authorizer:
        match mode:
            case "RBAC":
                # One, however often it is listed: it follows every role and binding of the storage.
                if self.rbac is None:
                    self.rbac = Rbac()
                    self.rbac.follow(cache)
                return self.rbac
            case "Node":
                from apimachinery.access.node import NodeAuthorizer

                return NodeAuthorizer(cache)
            case "AlwaysAllow":
                return AlwaysAllow()
            case "AlwaysDeny":
                return AlwaysDeny()
        if isinstance(mode, str):
            raise ValueError(f"unknown authorization mode {mode!r}; there are {', '.join(MODES)}")
        return mode(cache)

    async def identify(self, request: Request) -> None:
        """Sets ``request.user``. Raises ApiError 401, 403 for a page of another site."""
        request.user = await self._user(request)

    def identify_at_once(self, request: Request) -> bool:
        """Sets ``request.user`` where nobody has to be asked for that; what most requests need of ``identify``, without
        a coroutine. False where ``identify`` has to find out. Raises ApiError as it does."""
        try:
            identity = self._identified(request)
        except MustAsk:
            return False
        # Anonymous users need the path as well, which identify looks at.
        if identity is None:
            return False
        request.user = identity.user
        return True

    def wants_to_act(self, request: Request) -> bool:
        """Whether the user wants to be another: then ``act_as`` is to be called."""
        # One search: strangers may send 2,000 names, and a look at each would be a tenth of what these cost.
        return f"\n{PREFIX}" in "\n".join(("", *request.headers))

    async def act_as(self, request: Request) -> None:
        """Sets ``request.user`` to whom he wants to be. Raises ApiError 403, 400 for headers that contradict each
        other."""
        await self._impersonate(request)

    def authorize_at_once(self, request: Request) -> bool:
        """Lets those in who may do everything; False where ``authorize`` has to find out."""
        user = request.user
        assert user is not None
        # With a recorder even the masters' requests are noted.
        if MASTERS not in user.groups or self.record is not None:
            return False
        if request.trail is not None:
            _note(request, "allow", "")
        return True

    async def authorize(self, request: Request, attributes: Attributes | None = None) -> None:
        """Refuses what ``request.user`` may not; ``attributes`` are what is asked for, if somebody has read it already.
        Raises ApiError 403. What was decided, and why, is noted for the audit."""
        if self.authorize_at_once(request):
            return
        user = request.user
        assert user is not None
        if attributes is None:
            attributes = attributes_of(request, user)
        verdict = self.authorizer.decide(attributes) or await self.authorizer.ask(attributes)
        if request.trail is not None:
            _note(request, "allow" if verdict.allowed else "forbid", verdict.reason)
        if not verdict.allowed:
            raise _refused(attributes, verdict)
        if self.record is not None:
            self.record(attributes)

    async def authorize_verb(self, request: Request, verb: str) -> None:
        """Authorizes another verb on what the request names. Raises ApiError 403."""
        assert request.user is not None
        # A copy: the request's own attributes are kept for later questions.
        await self.authorize(request, replace(attributes_of(request, request.user), verb=verb))

    def knows(self, request: Request) -> bool:
        """Whether a request, of which only the head has come, is of somebody who may send a large body."""
        try:
            return self._identified(request) is not None
        except MustAsk:
            # Whoever would have to be asked about may send; the answer is looked at when the body is here.
            return True
        except ApiError:
            return False

    async def ask(self, attributes: Attributes) -> Verdict:
        """The verdict on anything: reviews, escalation, CEL."""
        return self.authorizer.decide(attributes) or await self.authorizer.ask(attributes)

    async def ask_besides(self, attributes: Attributes) -> Verdict:
        """The verdict on a further right that a request needs; one that is allowed is recorded like the first."""
        verdict = await self.ask(attributes)
        if verdict.allowed and self.record is not None:
            self.record(attributes)
        return verdict

    def _identified(self, request: Request) -> Identity | None:
        for authenticator in self._authenticators:
            identity = authenticator.authenticate(request)
            if identity is not None:
                return identity
        return None

    async def _user(self, request: Request) -> User:
        try:
            identity = self._identified(request)
        except MustAsk as must:
            try:
                identity = await must.ask()
            except TokenRefused:
                raise unauthorized() from None
        if identity is not None:
            return identity.user
        if request.peer:
            # A certificate that no authenticator takes is a credential that is refused.
            raise unauthorized()
        paths = self._anonymous_paths
        if not self._anonymous or (paths is not None and request.path not in paths):
            raise unauthorized()
        return NOBODY

    async def _impersonate(self, request: Request) -> None:
        user = request.user
        assert user is not None
        wanted = wanted_user(request)
        if wanted is None:
            return
        # Before the check: a refusal's audit event names the impersonator.
        request.impersonator = user
        request.user, constraint = await impersonate(wanted, attributes_of(request, user), self.ask)
        if request.trail is not None:
            request.trail.constraint = constraint


def _note(request: Request, decision: str, reason: str) -> None:
    request.annotations["authorization.k8s.io/decision"] = decision
    request.annotations["authorization.k8s.io/reason"] = reason


def _refused(attributes: Attributes, verdict: Verdict) -> ApiError:
    # An authorizer that failed is the server's fault, not the user's: kube-apiserver answers 500.
    if verdict.error and not verdict.reason:
        return internal(verdict.error)
    return refusal(attributes, verdict.reason)
