"""Node selectors and node affinity: which nodes a pod asks for, by their labels and names."""

from __future__ import annotations

from collections.abc import Mapping

from apimachinery.meta.json import Json


def asks_for(pod: Json, node: Json) -> bool:
    """Whether a node is one of those that a pod must be on."""
    spec, labels = pod["spec"], node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return affinity is None or any(
        term_matches(term, node) for term in affinity.get("nodeSelectorTerms") or ()
    )


def term_matches(term: Json, node: Json) -> bool:
    """Whether a node meets everything that one term says; an empty term is met by none."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    names = {"metadata.name": node["metadata"]["name"]}
    return bool(expressions or fields) and (
        all(_meets(each, node["metadata"].get("labels") or {}) for each in expressions)
        and all(_meets(each, names) for each in fields)
    )


def _meets(requirement: Json, labels: Mapping[str, str]) -> bool:
    value, values = labels.get(requirement["key"]), list(requirement.get("values") or ())
    match requirement.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    try:
        number, bound = int(value or ""), int(values[0])
    except (ValueError, IndexError):
        return False
    return number > bound if requirement.get("operator") == "Gt" else number < bound
