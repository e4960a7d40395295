"""Checks of API priority and fairness."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import duplicate, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error

_MOST_ENTROPY = 60
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


def fixed_level(value: Json, path: str) -> Errors:
    """Only the level called ``exempt`` is exempt, and ``catch-all`` stays as every server has it."""
    del path
    spec = struct(value, "spec") or {}
    kind, name = spec.get("type") or "", lookup(value, "metadata", "name")
    if (kind == "Exempt") != (name == "exempt"):
        yield invalid_value("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if name == "exempt" and (kind != "Exempt" or spec.get("limited") is not None):
        detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        yield invalid_value("spec", spec, detail)
    if name == "catch-all" and _plain_level(spec, _shares_field(value)) != _CATCH_ALL:
        yield invalid_value("spec", spec, "spec of 'catch-all' must equal the fixed value")


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


def shares(value: Json, path: str) -> Errors:
    """The shares of a limited level, under the name that its version has for them."""
    for key in ("nominalConcurrencyShares", "assuredConcurrencyShares"):
        yield from checks.minimum(value.get(key), f"{path}.{key}", detail="must be a non-negative integer")


def hand(value: Json, path: str) -> Errors:
    """A hand is dealt from the queues by the bits of one hash (KEP-1040, shuffle sharding)."""
    size, queues = value.get("handSize", 0), value.get("queues", 0)
    if size <= 0:
        yield invalid_value(f"{path}.handSize", size, "must be positive")
    elif size > queues:
        yield invalid_value(f"{path}.handSize", size, f"should not be greater than queues ({queues})")
    elif ceil(log2(queues) * size) > _MOST_ENTROPY:
        detail = (
            f"required entropy bits of deckSize {queues} and handSize {size} "
            f"should not be greater than {_MOST_ENTROPY}"
        )
        yield invalid_value(f"{path}.handSize", size, detail)


def fixed_schema(value: Json, path: str) -> Errors:
    """Two schemas have fixed contents, and only one may come first."""
    del path
    spec, name = struct(value, "spec") or {}, lookup(value, "metadata", "name")
    fixed = _FIXED_SCHEMAS.get(str(name))
    if fixed is not None and _plain_schema(spec) != fixed:
        yield invalid_value("spec", spec, f"spec of '{name}' must equal the fixed value")
    if spec.get("matchingPrecedence") == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        yield invalid_value("spec.matchingPrecedence", 1, detail)


def method(value: Any, path: str) -> Errors:
    """How a schema tells flows apart; the fault shows the whole struct, as kube-apiserver's does."""
    if isinstance(value, dict) and value.get("type") not in _METHODS:
        yield not_supported(f"{path}.type", {"Type": value.get("type") or ""}, _METHODS)


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


def namespaces(value: Any, path: str) -> Errors:
    """All namespaces, or some by their names."""
    yield from star_alone(value, path, "namespaces")
    for index, namespace in _named(value):
        for fault in names.dns1123_label_faults(namespace):
            detail = f"each member of this list must be '*' or a DNS-1123 label; {fault}"
            yield invalid_value(f"{path}[{index}]", namespace, detail)


def urls(value: Any, path: str) -> Errors:
    """All paths, or some, of which a star at the end means all below."""
    yield from star_alone(value, path, "non-resource URLs")
    for index, url in _named(value):
        if fault := _url_fault(url):
            yield invalid_value(f"{path}[{index}]", url, fault)


def verbs(value: Any, path: str) -> Errors:
    """All verbs, or some of those that requests have."""
    yield from star_alone(value, path, "verbs")
    if any(verb not in _VERBS for _, verb in _named(value)):
        yield not_supported(path, value, _VERBS)


def star_alone(value: Any, path: str, others: str) -> Errors:
    """A star stands for all others, so none is named next to it."""
    if isinstance(value, list) and "*" in value and len(value) > 1:
        yield invalid_value(path, value, f"if '*' is present, must not specify other {others}")


def _named(value: Any) -> Iterator[tuple[int, str]]:
    """The items of a list with their indexes; none where a star stands for all."""
    return enumerate(value if isinstance(value, list) and "*" not in value else ())


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


def subject(value: Json, path: str) -> Errors:
    """A subject has the struct of its kind, and no other."""
    kind = value.get("kind") or ""
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    for other, field in _SUBJECTS.items():
        held = struct(value, field)
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
