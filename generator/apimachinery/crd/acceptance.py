"""Which names of a CustomResourceDefinition are accepted, and the conditions that say so.

Theory. Within one group plural, singular and short names share one space, kind and listKind another; what
other CRDs of the group hold are their *accepted* names. A name that is free is accepted, one that is taken
leaves the one accepted before (or none). A CRD is established once all its names were accepted, and stays
it. Sources: apiextensions' naming, establishing, nonstructural-schema and API-approval controllers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apimachinery.crd.check import is_established
from apimachinery.crd.form import TooDeepError, read_form
from apimachinery.crd.parts import approval, is_protected
from apimachinery.crd.structural import structural_faults, unreadable
from apimachinery.meta.field_errors import aggregate

Condition = dict[str, str]

_APPROVAL_REASONS = {
    "missing": ("False", "MissingAnnotation"),
    "invalid": ("False", "InvalidAnnotation"),
    "bypassed": ("False", "UnapprovedAnnotation"),
    "approved": ("True", "ApprovedAnnotation"),
}


@dataclass(frozen=True, slots=True)
class Acceptance:
    """``names`` for ``status.acceptedNames``, and the conditions to set (type, status, reason, message)."""

    names: dict[str, Any]
    conditions: tuple[Condition, ...]


def accept_names(crd: dict[str, Any], others: Iterable[dict[str, Any]]) -> Acceptance:
    """Compute what the naming controller decides for ``crd`` among the ``others`` (itself may be among them).

    Conditions come as NamesAccepted, Established, NonStructuralSchema and
    KubernetesAPIApprovalPolicyConformant, the last two only where they apply. Setting
    ``lastTransitionTime`` is the caller's.
    """
    spec = crd.get("spec") or {}
    resources, kinds = _taken(crd, others)
    names, conflict = _decide(
        spec.get("names") or {}, (crd.get("status") or {}).get("acceptedNames") or {}, resources, kinds
    )
    conditions = [conflict or _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")]
    if is_established(crd) or conflict is None:
        text = "the initial names have been accepted"
        conditions.append(_condition("Established", "True", "InitialNamesAccepted", text))
    else:
        conditions.append(_condition("Established", "False", "NotAccepted", "not all names are accepted"))
    conditions += [each for each in (_structure(crd), _approval(crd)) if each is not None]
    return Acceptance(names, tuple(conditions))


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _taken(crd: dict[str, Any], others: Iterable[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """The names of resources and of kinds that other CRDs of the group hold."""
    group = (crd.get("spec") or {}).get("group")
    name = (crd.get("metadata") or {}).get("name")
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if (other.get("spec") or {}).get("group") != group or (other.get("metadata") or {}).get(
            "name"
        ) == name:
            continue
        held = (other.get("status") or {}).get("acceptedNames") or {}
        resources.update(each for each in (held.get("plural"), held.get("singular")) if each)
        resources.update(held.get("shortNames") or ())
        kinds.update(each for each in (held.get("kind"), held.get("listKind")) if each)
    return resources, kinds


def _decide(
    wanted: dict[str, Any], accepted: dict[str, Any], resources: set[str], kinds: set[str]
) -> tuple[dict[str, Any], Condition | None]:
    """The accepted names, with the first conflict; every part is decided for itself."""
    names = {key: accepted[key] for key in accepted if accepted[key]}
    conflict: Condition | None = None
    rules = (
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    )
    for key, reason, taken in rules:
        value, held = wanted.get(key), accepted.get(key)
        asked, known = ([each] if isinstance(each, str) else each or [] for each in (value, held))
        clashes = [f'"{each}" is already in use' for each in asked if each in taken and each not in known]
        if clashes:
            conflict = _condition("NamesAccepted", "False", reason, aggregate(clashes))
        elif value:
            names[key] = value
        else:
            names.pop(key, None)
    if wanted.get("categories"):
        names["categories"] = wanted["categories"]
    else:
        names.pop("categories", None)
    ordered = {"plural": names.get("plural", ""), "kind": names.get("kind", "")}
    ordered.update(
        {key: names[key] for key in ("singular", "shortNames", "listKind", "categories") if names.get(key)}
    )
    order = ("plural", "singular", "shortNames", "kind", "listKind", "categories")
    return {key: ordered[key] for key in order if key in ordered}, conflict


def _structure(crd: dict[str, Any]) -> Condition | None:
    """The condition of schemas that are not structural; only stored CRDs of old can have them."""
    try:
        form = read_form(crd)
    except TooDeepError as error:
        return _condition("NonStructuralSchema", "True", "StructuralError", str(error))
    if form.preserve:
        text = "spec.preserveUnknownFields: Invalid value: true: must be false"
        return _condition("NonStructuralSchema", "True", "Violations", text)
    texts: list[str] = []
    held = [(form.common, "spec.validation.openAPIV3Schema")]
    held += [
        (each, f"spec.versions[{index}].schema.openAPIV3Schema") for index, each in enumerate(form.versions)
    ]
    for parts, field in held:
        if parts.schema is None:
            continue
        if (said := unreadable(parts.schema)) is not None:
            texts.append(f'{field}: Invalid value: "": {said}')
        else:
            texts += [str(fault) for fault in structural_faults(parts.schema, field)]
    return _condition("NonStructuralSchema", "True", "Violations", aggregate(texts)) if texts else None


def _approval(crd: dict[str, Any]) -> Condition | None:
    group = (crd.get("spec") or {}).get("group") or ""
    if not is_protected(group):
        return None
    state, said = approval((crd.get("metadata") or {}).get("annotations") or {})
    status, reason = _APPROVAL_REASONS[state]
    return _condition("KubernetesAPIApprovalPolicyConformant", status, reason, said)
