"""Who owns what: a controller claims the objects that its selector matches and that nobody else controls, and lets go
of those that it does not match any more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from apimachinery.meta.errors import ApiError
from apimachinery.meta.json import Json
from apimachinery.meta.selectors import LabelSelector, selector_of

from .interface import ClusterView, Follows

GONE = frozenset({404, 409, 422})
"""Refusals of a claim that mean somebody else was faster."""


def controller_of(obj: Json) -> Json | None:
    """The reference to the owner that controls an object."""
    return next(
        (each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None
    )


def is_controlled_by(obj: Json, owner: Json) -> bool:
    """Whether an owner controls an object."""
    reference = controller_of(obj)
    return reference is not None and reference["uid"] == owner["metadata"]["uid"]


def reference_to(owner: Json) -> Json:
    """The reference by which an owner controls."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def labels_of(obj: Json) -> Json:
    """The labels of an object."""
    return obj["metadata"].get("labels") or {}


def is_going(obj: Json) -> bool:
    """Whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def selector(owner: Json) -> LabelSelector | None:
    """The selector of an owner; None for an empty one, which selects nothing. ReplicationControllers have a map."""
    given = (owner.get("spec") or {}).get("selector") or {}
    if owner["kind"] == "ReplicationController":
        given = {"matchLabels": given} if given else {}
    return selector_of(given) if given.get("matchLabels") or given.get("matchExpressions") else None


async def claim(
    cluster: ClusterView, resource: str, owner: Json, objects: Iterable[Json], selects: LabelSelector | None
) -> list[Json]:
    """The objects that an owner controls, after it has adopted orphans that match and let go of what does not."""
    claimed = []
    leaving = is_going(owner)
    for obj in objects:
        reference = controller_of(obj)
        matches = selects is not None and selects.matches(labels_of(obj))
        if reference is not None and reference["uid"] != owner["metadata"]["uid"]:
            continue
        if reference is not None:
            if matches or leaving:
                claimed.append(obj)
            else:
                await _write(cluster, resource, obj, lambda new: _without_owner(new, owner))
        elif matches and not leaving and not is_going(obj):
            adopted = await _write(cluster, resource, obj, lambda new: _with_owner(new, owner))
            if adopted is not None:
                claimed.append(adopted)
    return claimed


async def _write(
    cluster: ClusterView, resource: str, obj: Json, change: Callable[[Json], Json | None]
) -> Json | None:
    try:
        return await cluster.update(resource, obj, change)
    except ApiError as error:
        if error.code in GONE:
            return None
        raise


def _with_owner(obj: Json, owner: Json) -> Json | None:
    if controller_of(obj) is not None:
        return None
    obj["metadata"]["ownerReferences"] = [
        *(obj["metadata"].get("ownerReferences") or ()),
        reference_to(owner),
    ]
    return obj


def _without_owner(obj: Json, owner: Json) -> Json | None:
    references = obj["metadata"].get("ownerReferences") or []
    kept = [each for each in references if each["uid"] != owner["metadata"]["uid"]]
    # Another client may have removed the reference since the controller read the object.
    if len(kept) == len(references):
        return None
    obj["metadata"]["ownerReferences"] = kept
    return obj


def owner_or_selecting(resource: str, kind: str, dependents: str) -> Follows:
    """Dependents make their controller due; one without a controller makes due whoever selects it."""

    def keys(cluster: ClusterView, obj: Json) -> Iterator[tuple[str, str]]:
        namespace = obj["metadata"].get("namespace", "")
        reference = controller_of(obj)
        if reference is not None:
            if reference["kind"] == kind:
                yield namespace, reference["name"]
            return
        for owner in cluster.objects(resource, namespace):
            selects = selector(owner)
            if selects is not None and selects.matches(labels_of(obj)):
                yield namespace, owner["metadata"]["name"]

    return Follows(dependents, keys)
