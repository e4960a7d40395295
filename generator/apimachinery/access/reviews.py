"""The answers to access and token reviews: a review's spec in, its status out.

Words and order of fields are kube-apiserver's. Who may ask is not decided here: a review is created like any object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apimachinery.access.attributes import field_requirements, label_requirements
from apimachinery.access.authentication import MustAsk, TokenRefused
from apimachinery.access.authorization import (
    Attributes,
    Requirement,
    Rules,
    Verdict,
)
from apimachinery.access.control import Access
from apimachinery.http.messages import User
from apimachinery.meta.errors import bad_request
from apimachinery.meta.json import Json
from apimachinery.meta.selectors import SelectorError, parse_field_selector, parse_label_selector

_OPERATORS = frozenset({"DoesNotExist", "Exists", "In", "NotIn"})
_UNREAD = "spec.resourceAttributes.{} ignored due to parse error"


async def access_review(access: Access, spec: Json, user: User) -> Json:
    """The status of a SubjectAccessReview of any kind about ``user``."""
    attributes, faults = asked_attributes(spec, user)
    verdict = await access.ask(attributes)
    return _status(verdict, faults)


def _status(verdict: Verdict, faults: list[str]) -> Json:
    status: Json = {"allowed": verdict.allowed}
    if verdict.denied:
        status["denied"] = True
    if verdict.reason:
        status["reason"] = verdict.reason
    errors = [*faults, verdict.error] if verdict.error else faults
    if errors:
        status["evaluationError"] = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
    return status


def subject_of(spec: Json) -> User:
    """The user that a SubjectAccessReview is about."""
    extra = spec.get("extra") or {}
    # Lower case, as the keys come by headers in real requests.
    pairs = tuple((key.lower(), tuple(values or ())) for key, values in sorted(extra.items()))
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), pairs)


def asked_attributes(spec: Json, user: User) -> tuple[Attributes, list[str]]:
    """What a review asks, and which of its selectors could not be read (and so are left out)."""
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec.get("nonResourceAttributes") or {}
        return Attributes(user, path.get("verb") or "", path=path.get("path") or "", is_resource=False), []
    attributes = Attributes(
        user,
        resource.get("verb") or "",
        resource.get("namespace") or "",
        resource.get("group") or "",
        resource.get("version") or "",
        resource.get("resource") or "",
        resource.get("subresource") or "",
        resource.get("name") or "",
    )
    faults: list[str] = []
    fields, labels = resource.get("fieldSelector"), resource.get("labelSelector")
    if fields:
        attributes.field_selector = _selector("fieldSelector", fields, faults)
    if labels:
        attributes.label_selector = _selector("labelSelector", labels, faults)
    return attributes, faults


def _selector(name: str, selector: Json, faults: list[str]) -> list[Requirement] | None:
    raw = selector.get("rawSelector")
    if raw:
        try:
            if name == "fieldSelector":
                return field_requirements(parse_field_selector(raw))
            return label_requirements(parse_label_selector(raw))
        except SelectorError:
            faults.append(_UNREAD.format(name))
            return None
    if any(
        isinstance(r, dict) and (r.get("operator") or "") not in _OPERATORS
        for r in selector.get("requirements") or ()
    ):
        faults.append(_UNREAD.format(name))
    return [
        (r.get("key") or "", r.get("operator") or "", tuple(r.get("values") or ()))
        for r in selector.get("requirements") or ()
        if isinstance(r, dict) and (r.get("operator") or "") in _OPERATORS
    ]


def rules_review(access: Access, spec: Json, user: User) -> Json:
    """The status of a SelfSubjectRulesReview. Raises ApiError 400 without a namespace."""
    namespace = spec.get("namespace") or ""
    if not namespace:
        raise bad_request("no namespace on request")
    rules = access.authorizer.rules_for(user, namespace)
    return _rules_status(rules)


def _rules_status(rules: Rules) -> Json:
    status: Json = {
        "resourceRules": [
            _without_empty(
                verbs=rule.verbs, apiGroups=rule.groups, resources=rule.resources, resourceNames=rule.names
            )
            for rule in rules.resources
        ],
        "nonResourceRules": [
            _without_empty(verbs=rule.verbs, nonResourceURLs=rule.paths) for rule in rules.paths
        ],
        "incomplete": rules.incomplete,
    }
    if rules.error:
        status["evaluationError"] = rules.error
    return status


def _without_empty(**parts: tuple[str, ...]) -> Json:
    return {name: list(values) for name, values in parts.items() if values}


async def token_review(access: Access, spec: Mapping[str, Any]) -> Json:
    """The status of a TokenReview. Raises ApiError 400 without a token."""
    token = spec.get("token") or ""
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    # Without audiences the token is to be for this server.
    audiences = tuple(spec.get("audiences") or ()) or access.tokens.audiences
    try:
        try:
            identity = access.tokens.identify(token, audiences)
        except MustAsk as must:
            answer = await must.ask()
            assert answer is not None
            identity = answer
    except TokenRefused as fault:
        return {"user": {}, "error": str(fault)}
    return {"authenticated": True, "user": identity.user.info(), "audiences": list(identity.audiences)}
