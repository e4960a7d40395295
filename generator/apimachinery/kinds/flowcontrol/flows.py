"""Checks of API priority and fairness."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import FieldError, duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

Errors = Iterator[FieldError]

_MOST_QUEUES = 10_000_000
_MOST_ENTROPY = 60
_LAST_PRECEDENCE = 10_000
_METHODS = ("ByNamespace", "ByUser")
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_EVERYTHING: Json = {
    "resourceRules": [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
    ],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
}
_FIXED_SCHEMAS: dict[str, Json] = {
    "exempt": {
        "level": "exempt",
        "precedence": 1,
        "method": None,
        "rules": [{"subjects": [("Group", "system:masters")], **_EVERYTHING}],
    },
    "catch-all": {
        "level": "catch-all",
        "precedence": 10_000,
        "method": "ByUser",
        "rules": [
            {
                "subjects": [("Group", "system:unauthenticated"), ("Group", "system:authenticated")],
                **_EVERYTHING,
            }
        ],
    },
}
"""The schemas that every server has, and that nobody changes."""
_CATCH_ALL: Json = {
    "type": "Limited",
    "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
}
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


def priority_level(value: Json, path: str) -> Errors:
    """A priority level is exempt or limited; only the one called ``exempt`` is exempt."""
    del path
    spec = struct(value, "spec") or {}
    kind, name = spec.get("type") or "", lookup(value, "metadata", "name")
    if (kind == "Exempt") != (name == "exempt"):
        yield invalid_value("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if name == "exempt" and (kind != "Exempt" or spec.get("limited") is not None):
        detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        yield invalid_value("spec", spec, detail)
    shares = _shares_field(value)
    if name == "catch-all" and _plain_level(spec, shares) != _CATCH_ALL:
        yield invalid_value("spec", spec, "spec of 'catch-all' must equal the fixed value")
    if kind == "Exempt":
        yield from _exempt(struct(spec, "exempt") or {}, "spec.exempt")
        if spec.get("limited") is not None:
            yield forbidden("spec.limited", "must be nil if the type is not Limited")
    elif kind == "Limited":
        if spec.get("exempt") is not None:
            yield forbidden("spec.exempt", "must be nil if the type is Limited")
        if spec.get("limited") is None:
            yield required_error("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited(struct(spec, "limited") or {}, "spec.limited", shares)
    else:
        yield not_supported("spec.type", kind, ("Exempt", "Limited"))


def _shares_field(level: Json) -> str:
    """The name of a limited level's shares, another one in the first two betas."""
    version = str(level.get("apiVersion")).rpartition("/")[2]
    return "assuredConcurrencyShares" if version in ("v1beta1", "v1beta2") else "nominalConcurrencyShares"


def _plain_level(spec: Json, shares: str) -> Json:
    """A level as the fixed one is noted here; what older versions do not have is as they mean it."""
    limited = struct(spec, "limited")
    if limited is None:
        return spec
    others = {name: value for name, value in limited.items() if name != shares}
    named = {"nominalConcurrencyShares": limited.get(shares), "lendablePercent": 0, **others}
    return {**spec, "limited": named}


def _exempt(exempt: Json, path: str) -> Errors:
    yield from _shares(exempt.get("nominalConcurrencyShares"), f"{path}.nominalConcurrencyShares")
    yield from _lent(exempt.get("lendablePercent"), f"{path}.lendablePercent")


def _shares(value: Any, path: str) -> Errors:
    if isinstance(value, int) and value < 0:
        yield invalid_value(path, value, "must be a non-negative integer")


def _lent(value: Any, path: str) -> Errors:
    if isinstance(value, int) and not 0 <= value <= 100:
        yield invalid_value(path, value, "must be between 0 and 100, inclusive")


def _limited(limited: Json, path: str, shares: str) -> Errors:
    yield from _shares(limited.get(shares), f"{path}.{shares}")
    response = struct(limited, "limitResponse") or {}
    place = f"{path}.limitResponse"
    match response.get("type") or "":
        case "Reject":
            if response.get("queuing") is not None:
                yield forbidden(
                    f"{place}.queuing", "must be nil if limited.limitResponse.type is not Limited"
                )
        case "Queue":
            queuing = struct(response, "queuing")
            if queuing is None:
                yield required_error(
                    f"{place}.queuing", "must not be empty if limited.limitResponse.type is Limited"
                )
            else:
                yield from _queuing(queuing, f"{place}.queuing")
        case other:
            yield not_supported(f"{place}.type", other, ("Queue", "Reject"))
    yield from _lent(limited.get("lendablePercent"), f"{path}.lendablePercent")
    borrow = limited.get("borrowingLimitPercent")
    if isinstance(borrow, int) and borrow < 0:
        yield invalid_value(
            f"{path}.borrowingLimitPercent", borrow, "if specified, must be a non-negative integer"
        )


def _queuing(queuing: Json, path: str) -> Errors:
    limit, hand, queues = (queuing.get(key, 0) for key in ("queueLengthLimit", "handSize", "queues"))
    if limit <= 0:
        yield invalid_value(f"{path}.queueLengthLimit", limit, "must be positive")
    if queues <= 0:
        yield invalid_value(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield invalid_value(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield invalid_value(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield invalid_value(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    elif ceil(log2(queues) * hand) > _MOST_ENTROPY:
        # A hand of queues is dealt from the bits of one hash (KEP-1040, shuffle sharding).
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {hand} "
            f"should not be greater than {_MOST_ENTROPY}"
        )
        yield invalid_value(f"{path}.handSize", hand, detail)


def flow_schema(value: Json, path: str) -> Errors:
    """What requests a schema is about, and where it sends them; two have fixed names and contents."""
    del path
    spec, name = struct(value, "spec") or {}, lookup(value, "metadata", "name")
    fixed = _FIXED_SCHEMAS.get(str(name))
    if fixed is not None and _plain_schema(spec) != fixed:
        yield invalid_value("spec", spec, f"spec of '{name}' must equal the fixed value")
    precedence = spec.get("matchingPrecedence") or 0
    if precedence <= 0:
        yield invalid_value("spec.matchingPrecedence", precedence, "must be a positive value")
    if precedence == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield invalid_value("spec.matchingPrecedence", precedence, detail)
    if precedence > _LAST_PRECEDENCE:
        yield invalid_value(
            "spec.matchingPrecedence", precedence, f"must not be greater than {_LAST_PRECEDENCE}"
        )
    method = struct(spec, "distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        yield not_supported("spec.distinguisherMethod.type", method, _METHODS)
    level, place = (
        lookup(spec, "priorityLevelConfiguration", "name"),
        "spec.priorityLevelConfiguration.name",
    )
    if not level:
        yield required_error(place, "must reference a priority level")
    else:
        yield from checks.string_format(level, place, "dns-subdomain")
    for index, rule in numbered(spec, "rules"):
        yield from _rule(rule, f"spec.rules[{index}]")


def conditions(value: Json, path: str, old: Json) -> Errors:
    """Conditions of a status have types, each once."""
    del path, old
    seen = set()
    for index, condition in numbered(struct(value, "status") or {}, "conditions"):
        place, kind = f"status.conditions[{index}].type", condition.get("type") or ""
        if kind in seen:
            yield duplicate(place, kind)
        seen.add(kind)
        if not kind:
            yield required_error(place)


def _plain_schema(spec: Json) -> Json:
    """A schema as the fixed ones are noted here: subjects as pairs."""
    return {
        "level": lookup(spec, "priorityLevelConfiguration", "name"),
        "precedence": spec.get("matchingPrecedence"),
        "method": lookup(spec, "distinguisherMethod", "type"),
        "rules": [
            {
                **rule,
                "subjects": [
                    (subject.get("kind"), lookup(subject, "group", "name"))
                    for subject in items(rule, "subjects")
                ],
            }
            for rule in items(spec, "rules")
        ],
    }


def _rule(rule: Json, place: str) -> Errors:
    if not rule.get("subjects"):
        yield required_error(f"{place}.subjects", "subjects must contain at least one value")
    for number, subject in numbered(rule, "subjects"):
        yield from _subject(subject, f"{place}.subjects[{number}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        yield required_error(place, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for number, resource in numbered(rule, "resourceRules"):
        yield from _resource_rule(resource, f"{place}.resourceRules[{number}]")
    for number, other in numbered(rule, "nonResourceRules"):
        yield from _path_rule(other, f"{place}.nonResourceRules[{number}]")


def _resource_rule(rule: Json, path: str) -> Errors:
    yield from _verbs(rule.get("verbs") or [], f"{path}.verbs")
    for key, one, others in (
        ("apiGroups", "api group", "api groups"),
        ("resources", "resource", "resources"),
    ):
        given = rule.get(key) or []
        if not given:
            yield required_error(f"{path}.{key}", f"resource rules must supply at least one {one}")
        yield from _star_alone(given, f"{path}.{key}", others)
    namespaces, place = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        yield required_error(place, detail)
    elif "*" in namespaces:
        yield from _star_alone(namespaces, place, "namespaces")
    else:
        for index, namespace in enumerate(namespaces):
            for fault in names.dns1123_label_faults(namespace):
                detail = f"each member of this list must be '*' or a DNS-1123 label; {fault}"
                yield invalid_value(f"{place}[{index}]", namespace, detail)


def _path_rule(rule: Json, path: str) -> Errors:
    yield from _verbs(rule.get("verbs") or [], f"{path}.verbs")
    urls, place = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        yield required_error(place, "nonResourceURLs must contain at least one value")
    elif "*" in urls:
        yield from _star_alone(urls, place, "non-resource URLs")
    else:
        for index, url in enumerate(urls):
            if fault := _url_fault(url):
                yield invalid_value(f"{place}[{index}]", url, fault)


def _verbs(verbs: list[Any], path: str) -> Errors:
    if not verbs:
        yield required_error(path, "verbs must contain at least one value")
    elif "*" in verbs:
        yield from _star_alone(verbs, path, "verbs")
    elif not set(verbs) <= set(_VERBS):
        yield not_supported(path, verbs, _VERBS)


def _star_alone(given: list[Any], path: str, others: str) -> Errors:
    if "*" in given and len(given) > 1:
        yield invalid_value(path, given, f"if '*' is present, must not specify other {others}")


def _url_fault(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if "*" in url.removesuffix("/*"):
        return "wildcard can only do suffix matching"
    return ""


def _subject(subject: Json, path: str) -> Errors:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    for other, field in _SUBJECTS.items():
        held = struct(subject, field)
        if other != kind and held is not None:
            yield forbidden(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{other}'")
        elif other == kind and held is None:
            yield required_error(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'")
        elif other == kind and held is not None:
            name = held.get("name")
            if not name:
                yield required_error(f"{path}.{field}.name")
            elif kind == "ServiceAccount" and name != "*":
                yield from checks.string_format(name, f"{path}.{field}.name", "dns-subdomain")
            if kind == "ServiceAccount" and not held.get("namespace"):
                detail = "must specify namespace for service account"
                yield required_error(f"{path}.{field}.namespace", detail)
            elif kind == "ServiceAccount":
                yield from checks.string_format(held["namespace"], f"{path}.{field}.namespace", "dns-label")
