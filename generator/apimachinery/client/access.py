"""Reading the identity of an object, whatever form it has: a model, an apply configuration, or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

Key: TypeAlias = tuple[str, str]


def name_of(obj: Any) -> str:
    """``metadata.name``; empty where there is none."""
    return _read(obj, "name", "name")


def namespace_of(obj: Any) -> str | None:
    """``metadata.namespace``; None where there is none."""
    return _read(obj, "namespace", "namespace") or None


def uid_of(obj: Any) -> str:
    """``metadata.uid``; empty where there is none."""
    return _read(obj, "uid", "uid")


def resource_version_of(obj: Any) -> str:
    """``metadata.resourceVersion``; empty where there is none. Opaque: compare it for equality only."""
    return _read(obj, "resourceVersion", "resource_version")


def key_of(obj: Any) -> Key:
    """What an object is filed under: (namespace, name); the namespace is empty for cluster-scoped ones."""
    return (namespace_of(obj) or "", name_of(obj))


def _read(obj: Any, wire_name: str, attribute: str) -> str:
    if isinstance(obj, Struct):  # asked first: asking for Mapping costs more than all the rest
        metadata = getattr(obj, "metadata", None)
    else:
        metadata = obj.get("metadata") if isinstance(obj, Mapping) else getattr(obj, "metadata", None)
    if isinstance(metadata, Struct) or not isinstance(metadata, Mapping):
        value = getattr(metadata, attribute, None)
    else:
        value = metadata.get(wire_name)
    return value if isinstance(value, str) else ""
