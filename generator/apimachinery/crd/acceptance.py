"""Which names of a CustomResourceDefinition are accepted, and the conditions that say so.

Theory. Within one group plural, singular and short names share one space, kind and listKind another; what
other CRDs of the group hold are their *accepted* names. A name that is free is accepted, one that is taken
leaves the one accepted before (or none). A CRD is established once all its names were accepted, and stays
it. Sources: apiextensions' naming, establishing, nonstructural-schema and API-approval controllers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from apimachinery.crd.check import is_established
from apimachinery.crd.form import TooDeepError, read_form
from apimachinery.crd.parts import approval, bundle_faults, is_protected
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

    Conditions come as KubernetesAPIApprovalPolicyConformant, NamesAccepted, Established and
    NonStructuralSchema, the first and the last only where they apply. Setting
    ``lastTransitionTime`` is the caller's.
    """
    return decide_names(crd, *_taken(crd, others), structure_condition(crd))


def decide_names(
    crd: dict[str, Any], resources: Container[str], kinds: Container[str], structure: Condition | None
) -> Acceptance:
    """``accept_names`` for a caller who knows which names of resources and kinds others of the group hold, and the
    condition that the schemas make."""
    spec = crd.get("spec") or {}
    names, conflict = _decide(
        spec.get("names") or {}, (crd.get("status") or {}).get("acceptedNames") or {}, resources, kinds
    )
    conditions = [conflict or _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")]
    conditions.append(_established(crd, accepted=conflict is None))
    found = (_approval(crd), *conditions, structure)
    return Acceptance(names, tuple(each for each in found if each is not None))


def has_bad_bundle(crd: dict[str, Any]) -> bool:
    """Whether a conversion webhook's certificates cannot be read, so that nobody can convert."""
    conversion = (crd.get("spec") or {}).get("conversion") or {}
    client = (conversion.get("webhook") or {}).get("clientConfig") or {}
    return bool(client.get("caBundle")) and any(bundle_faults(client["caBundle"], ""))


def _established(crd: dict[str, Any], *, accepted: bool) -> Condition:
    if not is_established(crd):
        # A conflict keeps a CRD from being established for the first time only; later ones change nothing.
        if not accepted:
            return _condition("Established", "False", "NotAccepted", "not all names are accepted")
        if has_bad_bundle(crd):
            text = "The conversion webhook CABundle is invalid"
            return _condition("Established", "False", "InvalidCABundle", text)
    text = "the initial names have been accepted"
    return _condition("Established", "True", "InitialNamesAccepted", text)


class HeldNames:
    """The accepted names of all CRDs, by group: what ``accept_names`` asks of the others, kept up to date instead of
    gathered for each of them."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {}
        self._resources: dict[tuple[str, str], set[str]] = {}
        self._kinds: dict[tuple[str, str], set[str]] = {}

    def set(self, owner: str, group: str, accepted: dict[str, Any]) -> None:
        """Puts the accepted names of a CRD in place of those it had."""
        self.drop(owner)
        resources, kinds = _held_names(accepted)
        self._held[owner] = (group, resources, kinds)
        for names, holders in ((resources, self._resources), (kinds, self._kinds)):
            for name in names:
                holders.setdefault((group, name), set()).add(owner)

    def drop(self, owner: str) -> None:
        """Forgets a CRD."""
        group, resources, kinds = self._held.pop(owner, ("", (), ()))
        for names, holders in ((resources, self._resources), (kinds, self._kinds)):
            for name in set(names):  # a short name may be the plural again
                owners = holders[group, name]
                owners.discard(owner)
                if not owners:
                    del holders[group, name]

    def resources_of_others(self, owner: str, group: str) -> Container[str]:
        """The names of resources that other CRDs of the group hold."""
        return _HeldByOthers(self._resources, owner, group)

    def kinds_of_others(self, owner: str, group: str) -> Container[str]:
        """The names of kinds that other CRDs of the group hold."""
        return _HeldByOthers(self._kinds, owner, group)


@dataclass(frozen=True, slots=True)
class _HeldByOthers:
    holders: dict[tuple[str, str], set[str]]
    owner: str
    group: str

    def __contains__(self, name: object) -> bool:
        owners = self.holders.get((self.group, name)) if isinstance(name, str) else None
        return owners is not None and bool(owners - {self.owner})


def _held_names(accepted: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    resources = (accepted.get("plural"), accepted.get("singular"), *(accepted.get("shortNames") or ()))
    kinds = (accepted.get("kind"), accepted.get("listKind"))
    return tuple(name for name in resources if name), tuple(name for name in kinds if name)


def _condition(kind: str, status: str, reason: str, message: str) -> Condition:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _taken(crd: dict[str, Any], others: Iterable[dict[str, Any]]) -> tuple[set[str], set[str]]:
    """The names of resources and of kinds that other CRDs of the group hold."""
    group = (crd.get("spec") or {}).get("group")
    name = (crd.get("metadata") or {}).get("name")
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        # The CRD itself may be among the others.
        if (other.get("spec") or {}).get("group") != group or (other.get("metadata") or {}).get(
            "name"
        ) == name:
            continue
        held = _held_names((other.get("status") or {}).get("acceptedNames") or {})
        resources.update(held[0])
        kinds.update(held[1])
    return resources, kinds


def _decide(
    wanted: dict[str, Any], accepted: dict[str, Any], resources: Container[str], kinds: Container[str]
) -> tuple[dict[str, Any], Condition | None]:
    """The accepted names, with the first conflict; every part is decided for itself."""
    # What was accepted before stays while the wanted name is taken.
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
        # A name that is its own already does not clash with itself.
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


def structure_condition(crd: dict[str, Any]) -> Condition | None:
    """The condition of schemas that are not structural; only stored CRDs of old can have them."""
    try:
        form = read_form(crd)
    except TooDeepError as error:
        return _condition("NonStructuralSchema", "True", "StructuralError", str(error))
    if form.preserve:
        # CRDs from v1beta1 days; new ones are refused by check_crd.
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
