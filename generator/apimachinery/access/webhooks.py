"""Authentication and authorization by asking another server: TokenReview and SubjectAccessReview over HTTPS.

Answers are remembered for a while, so one client does not cost a call with every request. If a webhook cannot be asked,
a token is refused, and there is no opinion on a request (or it is denied, where the failure policy says so).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from apimachinery.access.authentication import Identity, MustAsk, TokenRefused
from apimachinery.access.authorization import NO_OPINION, Attributes, Verdict
from apimachinery.cel.environment import PER_CALL_LIMIT, Environment, Program
from apimachinery.cel.values import types as cel
from apimachinery.http.messages import User
from apimachinery.http.outgoing import CallFailed, Endpoint
from apimachinery.http.remembered import Remembered, SharedQuestions

Value = TypeVar("Value")
Post = Callable[[Endpoint, Any], Awaitable[Any]]


class RememberedForAWhile(Generic[Value]):
    """Values for a while."""

    def __init__(self) -> None:
        self._held: Remembered[Hashable, tuple[float, Value]] = Remembered()

    def get(self, key: Hashable) -> Value | None:
        """The value, None where there is none or it is too old."""
        held = self._held.get(key)
        return held[1] if held is not None and held[0] > time.monotonic() else None

    def put(self, key: Hashable, value: Value, seconds: float) -> None:
        """Keeps a value."""
        self._held.put(key, (time.monotonic() + seconds, value))


class TokenWebhook:
    """Tokens that another server knows (``authentication.k8s.io`` TokenReview)."""

    def __init__(self, endpoint: Endpoint, post: Post, version: str = "v1", seconds: float = 120.0) -> None:
        self._endpoint = endpoint
        self._api_version = f"authentication.k8s.io/{version}"
        self._seconds = seconds
        self._post = post
        self._known: RememberedForAWhile[Identity] = RememberedForAWhile()
        self._asked: SharedQuestions[Identity | None] = SharedQuestions()

    def identify(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        known = self._known.get((token, audiences))
        if known is None:
            raise MustAsk(lambda: self._asked.once((token, audiences), lambda: self._ask(token, audiences)))
        return known

    async def _ask(self, token: str, audiences: tuple[str, ...]) -> Identity | None:
        spec: dict[str, Any] = {"token": token}
        if audiences:
            spec["audiences"] = list(audiences)
        review = {"apiVersion": self._api_version, "kind": "TokenReview", "spec": spec}
        try:
            answer = await self._post(self._endpoint, review)
            status = answer["status"]
            if not status.get("authenticated"):
                if status.get("error"):
                    raise TokenRefused(str(status["error"]))
                return None
            identity = Identity(
                _user(status.get("user") or {}), tuple(map(str, status.get("audiences") or ()))
            )
        except CallFailed as fault:
            raise TokenRefused(str(fault)) from None
        except (AttributeError, KeyError, TypeError, ValueError):
            raise TokenRefused(f"{self._endpoint.url}: answered no TokenReview") from None
        if audiences and identity.audiences and not set(identity.audiences) & set(audiences):
            raise TokenRefused("the webhook's answer is for other audiences")
        self._known.put((token, audiences), identity, self._seconds)
        return identity


def _user(info: dict[str, Any]) -> User:
    name = info.get("username")
    if not isinstance(name, str) or not name:
        raise ValueError("no username")
    extra = tuple(
        (str(key), tuple(map(str, values))) for key, values in sorted((info.get("extra") or {}).items())
    )
    return User(name, str(info.get("uid") or ""), tuple(map(str, info.get("groups") or ())), extra)


@dataclass(frozen=True, slots=True)
class WebhookRules:
    """How an authorization webhook is asked: only where all ``conditions`` (CEL over ``request``) hold; what a failure
    means; how long answers are remembered."""

    version: str = "v1"
    conditions: Sequence[str] = ()
    deny_on_failure: bool = False
    allowed_seconds: float = 300.0
    refused_seconds: float = 30.0


class BadCondition(ValueError):
    """A match condition that cannot be compiled; the text says why."""


_REQUEST = cel.map_of(cel.STRING, cel.DYN)


class AuthorizationWebhook:
    """An authorizer that asks another server (``authorization.k8s.io`` SubjectAccessReview).

    Raises BadCondition for a condition that is not a boolean expression.
    """

    def __init__(self, endpoint: Endpoint, post: Post, rules: WebhookRules = WebhookRules()) -> None:
        self._endpoint = endpoint
        self._rules = rules
        self._post = post
        self._conditions = [_condition(text) for text in rules.conditions]
        self._known: RememberedForAWhile[Verdict] = RememberedForAWhile()

    def decide(self, attributes: Attributes) -> Verdict | None:
        if self._conditions:
            skipped = self._skips(_spec(attributes))
            if skipped is not None:
                return skipped
        return self._known.get(_key(attributes))

    async def ask(self, attributes: Attributes) -> Verdict:
        known = self.decide(attributes)
        if known is not None:
            return known
        rules = self._rules
        review = {
            "apiVersion": f"authorization.k8s.io/{rules.version}",
            "kind": "SubjectAccessReview",
            "spec": _spec(attributes, "group" if rules.version == "v1beta1" else "groups"),
        }
        try:
            answer = await self._post(self._endpoint, review)
            status = answer["status"]
            allowed, denied = bool(status.get("allowed")), bool(status.get("denied"))
            verdict = Verdict(allowed and not denied, denied, str(status.get("reason") or ""))
        except CallFailed as fault:
            return self._failed(str(fault))
        except (AttributeError, KeyError, TypeError):
            return self._failed(f"{self._endpoint.url}: answered no SubjectAccessReview")
        self._known.put(
            _key(attributes), verdict, rules.allowed_seconds if allowed else rules.refused_seconds
        )
        return verdict

    def _skips(self, spec: dict[str, Any]) -> Verdict | None:
        """The verdict where a condition does not hold or fails, None where all hold."""
        failed = ""
        for condition in self._conditions:
            outcome = condition.run({"request": spec})
            if outcome.error is not None:
                failed = str(outcome.error)
            elif outcome.value is not True:
                return NO_OPINION
        return self._failed(failed) if failed else None

    def _failed(self, why: str) -> Verdict:
        return Verdict(denied=self._rules.deny_on_failure, error=why)


def _condition(text: str) -> Program:
    try:
        environment = Environment.kubernetes().extend(variables={"request": _REQUEST}, limit=PER_CALL_LIMIT)
        program = environment.compile(text)
    except Exception as fault:
        raise BadCondition(f"matchConditions: {text!r}: {fault}") from None
    if program.result_type not in (cel.BOOL, cel.DYN):
        raise BadCondition(f"matchConditions: {text!r} must be a boolean expression")
    return program


def _key(attributes: Attributes) -> Hashable:
    fields, labels = attributes.field_selector, attributes.label_selector
    a = attributes
    asked = (
        a.verb,
        a.namespace,
        a.group,
        a.version,
        a.resource,
        a.subresource,
        a.name,
        a.path,
        a.is_resource,
    )
    return (
        a.user,
        asked,
        fields if fields is None else tuple(fields),
        labels if labels is None else tuple(labels),
    )


def _spec(attributes: Attributes, groups: str = "groups") -> dict[str, Any]:
    user = attributes.user
    spec: dict[str, Any] = {"user": user.name, "uid": user.uid, groups: list(user.groups)}
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra}
    if not attributes.is_resource:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
        return {key: value for key, value in spec.items() if value}
    asked: dict[str, Any] = {
        "namespace": attributes.namespace,
        "verb": attributes.verb,
        "group": attributes.group,
        "version": attributes.version,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "name": attributes.name,
    }
    for name, selector in (
        ("fieldSelector", attributes.field_selector),
        ("labelSelector", attributes.label_selector),
    ):
        if selector:
            asked[name] = {
                "requirements": [
                    {"key": k, "operator": o, "values": list(values)} for k, o, values in selector
                ]
            }
    spec["resourceAttributes"] = {key: value for key, value in asked.items() if value}
    return {key: value for key, value in spec.items() if value}
