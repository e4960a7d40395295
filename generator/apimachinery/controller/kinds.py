"""How objects name each other, and what controllers read of them. No I/O."""

from __future__ import annotations

import sys
from typing import Any

from apimachinery.client.access import name_of, namespace_of, uid_of
from apimachinery.client.kinds import UnknownResourceError as UnknownResourceError
from apimachinery.client.kinds import as_json as as_json
from apimachinery.client.kinds import live_json as live_json
from apimachinery.client.kinds import resource_of as resource_of
from apimachinery.client.kinds import shown as shown
from apimachinery.meta.gvk import GroupVersion
from apimachinery.typed.object import Object


def meta_of(obj: Any) -> Any:
    """The metadata of a model; raises ``ValueError`` where there is none."""
    metadata = getattr(obj, "metadata", None)
    if metadata is None:
        raise ValueError(f"{type(obj).__name__} has no metadata")
    return metadata


def finalizers_of(obj: Any) -> list[str]:
    """The finalizers of a model."""
    return list(meta_of(obj).finalizers or [])


def is_deleting(obj: Any) -> bool:
    """Whether an object was deleted and waits for its finalizers."""
    return meta_of(obj).deletion_timestamp is not None


def reference_to(owner: Object) -> dict[str, Any]:
    """The owner reference of a controller: one object is controlled by one owner at most."""
    return {
        "apiVersion": owner.API_VERSION,
        "kind": owner.KIND,
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def owner_of(obj: Any, api_version: str, kind: str) -> str:
    """The name of the object of that group and kind that controls ``obj``; empty where there is none."""
    group = GroupVersion.parse(api_version).group
    for reference in meta_of(obj).owner_references or ():
        if reference.controller and reference.kind == kind:
            if GroupVersion.parse(reference.api_version).group == group:
                return str(reference.name)
    return ""


def owned_configuration(obj: Object, owner: Object | None) -> dict[str, Any]:
    """What to apply for ``obj``: with group version and kind, in the owner's namespace, with its owner reference."""
    body = {"apiVersion": type(obj).API_VERSION, "kind": type(obj).KIND, **as_json(obj)}
    metadata = body.setdefault("metadata", {})
    if owner is not None:
        metadata["ownerReferences"] = [reference_to(owner)]
        if resource_of(type(obj)).namespaced:
            metadata.setdefault("namespace", namespace_of(owner) or "")
    return body


def program() -> str:
    """What this program is called, for field managers and events."""
    return sys.argv[0].rpartition("/")[2].removesuffix(".py") or "controller"
