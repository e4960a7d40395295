"""Which resource a model class belongs to, and how objects name each other. No I/O.

Generated packages keep the resources of a group version next to its models (``<group_version>.resources``); a class
written by hand says its own: ``RESOURCE = Resource(…)``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeVar, cast

import msgspec

from apimachinery.client.access import name_of, namespace_of, uid_of
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.resources import Resource
from apimachinery.typed.object import Object

O = TypeVar("O", bound=Object)  # noqa: E741 - an object


class UnknownResourceError(LookupError):
    """A model class of which nobody says what resource serves it."""


@cache
def resource_of(model: type[Object]) -> Resource:
    """The resource that serves a kind. Raises ``UnknownResourceError``."""
    own = getattr(model, "RESOURCE", None)
    if isinstance(own, Resource):
        return own
    package = model.__module__.rpartition(".")[0]
    try:
        table = import_module(f"{package}.resources").RESOURCES
    except (ImportError, AttributeError):
        table = ()
    for resource in cast("tuple[Resource, ...]", table):
        if resource.kind == model.KIND and resource.api_version == model.API_VERSION:
            return resource
    raise UnknownResourceError(
        f"{model.__module__}.{model.__name__}: no resource of {model.API_VERSION} {model.KIND} is known; "
        "take the class from a generated package, or give it a class variable RESOURCE"
    )


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


def as_json(obj: Any) -> dict[str, Any]:
    """A model or mapping as a JSON value of its own."""
    made = dict(obj) if isinstance(obj, Mapping) else msgspec.json.decode(msgspec.json.encode(obj))
    return cast("dict[str, Any]", made)


def owned_configuration(obj: Object, owner: Object | None) -> dict[str, Any]:
    """What to apply for ``obj``: with group version and kind, in the owner's namespace, with its owner reference."""
    body = {"apiVersion": type(obj).API_VERSION, "kind": type(obj).KIND, **as_json(obj)}
    metadata = body.setdefault("metadata", {})
    if owner is not None:
        metadata["ownerReferences"] = [reference_to(owner)]
        if resource_of(type(obj)).namespaced:
            metadata.setdefault("namespace", namespace_of(owner) or "")
    return body


def shown(obj: Any) -> str:
    """``Kind namespace/name``, for logs."""
    namespace = namespace_of(obj)
    kind = getattr(type(obj), "KIND", type(obj).__name__)
    return f"{kind} {namespace}/{name_of(obj)}" if namespace else f"{kind} {name_of(obj)}"


def program() -> str:
    """What this program is called, for field managers and events."""
    return sys.argv[0].rpartition("/")[2].removesuffix(".py") or "controller"
