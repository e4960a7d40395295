"""Checks of API priority and fairness."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apimachinery.meta.field_errors import FieldError, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, lookup, numbered, struct

Errors = Iterator[FieldError]

_MOST_QUEUES = 10_000_000
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


def at_most(value: Any, path: str, most: int) -> Errors:
    """A number must not be more."""
    if isinstance(value, int) and value > most:
        yield invalid_value(path, value, f"must not be greater than {most}")


def priority_level(value: Json, path: str) -> Errors:
    """A priority level is exempt or limited; only the one called ``exempt`` is exempt."""
    del path
    spec = struct(value, "spec") or {}
    kind, name = spec.get("type") or "", lookup(value, "metadata", "name")
    if (kind == "Exempt") != (name == "exempt"):
        yield invalid_value("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if spec.get("limited") is not None:
            yield forbidden("spec.limited", "must be nil if the type is not Limited")
    elif kind == "Limited":
        if spec.get("exempt") is not None:
            yield forbidden("spec.exempt", "must be nil if the type is Limited")
        if spec.get("limited") is None:
            yield required_error("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited(struct(spec, "limited") or {}, "spec.limited")
    else:
        yield not_supported("spec.type", kind, ("Exempt", "Limited"))


def _limited(limited: Json, path: str) -> Errors:
    yield from checks.minimum(limited.get("nominalConcurrencyShares"), f"{path}.nominalConcurrencyShares")
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
    lend, borrow = limited.get("lendablePercent"), limited.get("borrowingLimitPercent")
    if isinstance(lend, int) and not 0 <= lend <= 100:
        yield invalid_value(f"{path}.lendablePercent", lend, "must be between 0 and 100, inclusive")
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


def rules(value: Any, path: str) -> Errors:
    """Whose requests a flow schema is about, and which."""
    for index, rule in numbered({"": value}, ""):
        place = f"{path}[{index}]"
        if not rule.get("subjects"):
            yield required_error(f"{place}.subjects", "subjects must contain at least one value")
        for number, subject in numbered(rule, "subjects"):
            yield from _subject(subject, f"{place}.subjects[{number}]")
        if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
            yield required_error(
                place, "at least one of resourceRules and nonResourceRules has to be non-empty"
            )
        for number, resource in numbered(rule, "resourceRules"):
            for key, detail in (
                ("verbs", "verbs must contain at least one value"),
                ("apiGroups", "resource rules must supply at least one api group"),
                ("resources", "resource rules must supply at least one resource"),
            ):
                yield from checks.required(
                    resource.get(key), f"{place}.resourceRules[{number}].{key}", detail
                )
            if not resource.get("namespaces") and not resource.get("clusterScope"):
                yield required_error(
                    f"{place}.resourceRules[{number}].namespaces",
                    "resource rules that are not cluster scoped must supply at least one namespace",
                )
        for number, other in numbered(rule, "nonResourceRules"):
            for key, detail in (
                ("verbs", "verbs must contain at least one value"),
                ("nonResourceURLs", "nonResourceURLs must contain at least one value"),
            ):
                yield from checks.required(
                    other.get(key), f"{place}.nonResourceRules[{number}].{key}", detail
                )


def _subject(subject: Json, path: str) -> Errors:
    kind = subject.get("kind") or ""
    if kind not in _SUBJECTS:
        yield not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    for other, field in _SUBJECTS.items():
        held = struct(subject, field)
        if other == kind and held is None:
            yield required_error(f"{path}.{field}", f"{field} is required when subject kind is '{kind}'")
        elif other == kind and held is not None and not held.get("name"):
            yield required_error(f"{path}.{field}.name")
        elif other != kind and held is not None:
            yield forbidden(f"{path}.{field}", f"{field} is forbidden when subject kind is not '{other}'")
