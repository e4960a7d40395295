"""The contract of authorization: what is asked (``Attributes``), what is answered (``Verdict``), who answers.

Theory. A request is allowed if an authorizer of the chain allows it, refused if one denies it, and refused if all
have no opinion. RBAC only ever allows or has no opinion. Members of ``system:masters`` are allowed before any other
is asked, whatever the mode: otherwise a server could lock out its owner.

``decide`` is synchronous, because it stands on every request's path and nearly always needs nothing but memory. An
authorizer that must ask somebody else answers ``None`` there, and ``ask`` does the waiting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from apimachinery.http.messages import User
from apimachinery.meta.errors import ApiError, forbidden
from apimachinery.meta.names import dns1123_label_faults, dns1123_subdomain_faults
from apimachinery.meta.printing import go_quote

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
SERVICE_ACCOUNTS = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"

Requirement = tuple[str, str, tuple[str, ...]]
"""One requirement of a selector: key, operator (``In``, ``NotIn``, ``Exists``, ``DoesNotExist``), values."""


@dataclass(slots=True)
class Attributes:
    """What a user wants to do: ``verb`` on a resource, or on the URL ``path`` where ``resource`` is empty.

    ``is_resource`` is kept apart from ``resource`` because a review may ask about the resource "". Selectors are None
    where the request has none or they cannot be read.
    """

    user: User
    verb: str
    namespace: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    path: str = ""
    is_resource: bool = True
    field_selector: Sequence[Requirement] | None = None
    label_selector: Sequence[Requirement] | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``allowed``, or ``denied`` (nobody else is asked), or neither. ``reason`` is for people; ``error`` for what
    went wrong on the way to it."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    error: str = ""


ALLOWED = Verdict(allowed=True)
NO_OPINION = Verdict()


class Authorizer(Protocol):
    """Says whether a user may."""

    def decide(self, attributes: Attributes) -> Verdict | None:
        """The verdict, or None where ``ask`` must be awaited for it."""

    async def ask(self, attributes: Attributes) -> Verdict:
        """The verdict, however long it takes."""


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """What may be done to which resources; as a SelfSubjectRulesReview tells it."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PathRule:
    """What may be done to which URLs."""

    verbs: tuple[str, ...]
    paths: tuple[str, ...] = ()


@dataclass(slots=True)
class Rules:
    """All that a user may do in a namespace, as far as authorizers can list it."""

    resources: list[ResourceRule]
    paths: list[PathRule]
    incomplete: bool = False
    error: str = ""


class AlwaysAllow:
    """Everybody may do everything."""

    def decide(self, attributes: Attributes) -> Verdict:
        del attributes
        return ALLOWED

    async def ask(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)

    def rules_for(self, user: User, namespace: str) -> Rules:
        del user, namespace
        return Rules([ResourceRule(("*",), ("*",), ("*",))], [PathRule(("*",), ("*",))])


class AlwaysDeny:
    """Nobody may do anything; members of system:masters may all the same, since they are asked about first."""

    _verdict = Verdict(reason="Everything is forbidden.")

    def decide(self, attributes: Attributes) -> Verdict:
        del attributes
        return self._verdict

    async def ask(self, attributes: Attributes) -> Verdict:
        return self.decide(attributes)

    def rules_for(self, user: User, namespace: str) -> Rules:
        del user, namespace
        return Rules([], [])


class Chain:
    """Authorizers one after another, the masters' first. The first allowance or denial counts.

    Reasons and errors of those without an opinion are joined by newlines where nobody allows (kube-apiserver's union).
    """

    def __init__(self, members: Sequence[Authorizer]) -> None:
        self._members = tuple(members)
        # One that may not have its answer at once has a way to find it all the same, if nobody else is to be asked.
        self._settle = [getattr(member, "settle", member.decide) for member in self._members]

    def settle(self, attributes: Attributes) -> Verdict | None:
        """The verdict for who cannot wait, whatever it takes; None where somebody else would have to be asked."""
        if MASTERS in attributes.user.groups:
            return ALLOWED
        heard: list[Verdict] = []
        for settle in self._settle:
            verdict: Verdict | None = settle(attributes)
            # Later members are not asked: their order decides.
            if verdict is None:
                return None
            if verdict.allowed or verdict.denied:
                return verdict
            heard.append(verdict)
        return _joined(heard)

    def decide(self, attributes: Attributes) -> Verdict | None:
        if MASTERS in attributes.user.groups:
            return ALLOWED
        heard: list[Verdict] = []
        for member in self._members:
            verdict = member.decide(attributes)
            if verdict is None:
                return None
            if verdict.allowed or verdict.denied:
                return verdict
            heard.append(verdict)
        return _joined(heard)

    async def ask(self, attributes: Attributes) -> Verdict:
        if MASTERS in attributes.user.groups:
            return ALLOWED
        heard: list[Verdict] = []
        for member in self._members:
            # ``or`` is safe here: a Verdict is never false, None is.
            verdict = member.decide(attributes) or await member.ask(attributes)
            if verdict.allowed or verdict.denied:
                return verdict
            heard.append(verdict)
        return _joined(heard)

    def rules_for(self, user: User, namespace: str) -> Rules:
        """The rules of all members together; incomplete where one cannot list them."""
        rules = Rules([], [])
        errors = []
        for member in self._members:
            lister = getattr(member, "rules_for", None)
            if lister is None:
                rules.incomplete = True
                errors.append(
                    f"{type(member).__name__.lower()} authorizer does not support user rule resolution"
                )
                continue
            more: Rules = lister(user, namespace)
            rules.resources += more.resources
            rules.paths += more.paths
            rules.incomplete = rules.incomplete or more.incomplete
            if more.error:
                errors.append(more.error)
        rules.error = aggregate(errors)
        return rules


def _joined(heard: list[Verdict]) -> Verdict:
    if len(heard) == 1:
        # Most servers have one authorizer, whose verdict is passed on without a copy.
        return heard[0]
    reasons = "\n".join(verdict.reason for verdict in heard if verdict.reason)
    return Verdict(reason=reasons, error=aggregate([verdict.error for verdict in heard if verdict.error]))


def aggregate(errors: Sequence[str]) -> str:
    """Errors as Go's aggregate prints them: one as it is, several distinct ones in brackets."""
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def refusal_text(attributes: Attributes) -> str:
    """``User "x" cannot get resource …``, as kube-apiserver says it, harmless in a web page too."""
    user, verb = go_quote(attributes.user.name), attributes.verb
    if not attributes.is_resource:
        return f"User {user} cannot {verb} path {go_quote(attributes.path)}".translate(_HTML)
    resource = attributes.resource
    if attributes.subresource:
        resource += "/" + attributes.subresource
    scope = (
        f"in the namespace {go_quote(attributes.namespace)}"
        if attributes.namespace
        else "at the cluster scope"
    )
    text = f"User {user} cannot {verb} resource {go_quote(resource)} in API group {go_quote(attributes.group)} {scope}"
    return text.translate(_HTML)


def refusal(attributes: Attributes, reason: str = "") -> ApiError:
    """403 for what a user may not do."""
    text = refusal_text(attributes)
    if reason:
        text = f"{text}: {reason}"
    if not attributes.is_resource:
        return ApiError(403, "Forbidden", f"forbidden: {text}")
    return forbidden(attributes.resource, attributes.group, attributes.name, text)


def service_account_name(username: str) -> tuple[str, str] | None:
    """Namespace and name of ``system:serviceaccount:NAMESPACE:NAME``, None for other users."""
    if not username.startswith(SERVICE_ACCOUNT_PREFIX):
        return None
    parts = username[len(SERVICE_ACCOUNT_PREFIX) :].split(":")
    # A name with more colons is an ordinary user's, who must not get a service account's rights.
    if len(parts) != 2:
        return None
    namespace, name = parts
    if dns1123_label_faults(namespace) or dns1123_subdomain_faults(name):
        return None
    return namespace, name


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every service account of a namespace is in."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"
