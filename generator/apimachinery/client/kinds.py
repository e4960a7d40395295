"""Which resource a model class belongs to. No I/O.

Generated packages keep the resources of a group version next to its models (``<group_version>.resources``); a class
written by hand says its own: ``RESOURCE = Resource(…)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

import msgspec

from apimachinery.client.access import name_of, namespace_of
from apimachinery.meta.resources import Resource
from apimachinery.typed import lossless
from apimachinery.typed.object import Object


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


def as_json(obj: Any) -> dict[str, Any]:
    """A model or mapping as a JSON value of its own."""
    made = dict(obj) if isinstance(obj, Mapping) else msgspec.json.decode(msgspec.json.encode(obj))
    return cast("dict[str, Any]", made)


def live_json(obj: Any) -> dict[str, Any]:
    """An object as the server sent it, also what its model does not know."""
    origin = lossless.origin_of(obj) if isinstance(obj, Object) else None
    return as_json(obj) if origin is None else cast("dict[str, Any]", msgspec.json.decode(origin))


def shown(obj: Any) -> str:
    """``Kind namespace/name``, for messages."""
    namespace = namespace_of(obj)
    kind = obj.get("kind") if isinstance(obj, Mapping) else getattr(type(obj), "KIND", type(obj).__name__)
    return f"{kind} {namespace}/{name_of(obj)}" if namespace else f"{kind} {name_of(obj)}"
