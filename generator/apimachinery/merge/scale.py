"""Owners of the scale subresource: a parent's managedFields as its Scale shows them, and back.

A Scale is not stored; who owns its ``.spec.replicas`` is who owns the replicas field of the parent. Before a write
the parent's entries become the Scale's; after it they are folded back, where a changed owner loses the parent's
replicas field and a new one gets an entry with nothing else in it. Source: KEP-2332.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from apimachinery.merge.field_set import difference, from_paths, has
from apimachinery.merge.managed_fields import Managed, ManagedEntry, decode, encode
from apimachinery.merge.schema import JsonObject

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")


def to_scale(entries: Any, replicas_paths: Mapping[str, Sequence[str]]) -> list[JsonObject]:
    """The managedFields of a Scale. ``replicas_paths`` gives, by the parent's apiVersion, the field names that lead
    to its replicas. Raises ``EntryError``."""
    out: Managed = {}
    for owner, entry in decode(entries).items():
        path = replicas_paths.get(entry.api_version)
        if path and has(entry.fields, _elements(path)):
            out[owner] = ManagedEntry(SCALE_VERSION, from_paths([_REPLICAS]), entry.time)
    return encode(out)


def to_parent(
    parent_entries: Any,
    scale_entries: Any,
    api_version: str,
    replicas_paths: Mapping[str, Sequence[str]],
) -> list[JsonObject]:
    """The parent's managedFields after a write to its Scale; new owners own at ``api_version``. Entries at versions
    that ``replicas_paths`` lacks are dropped. Raises ``EntryError``."""
    parent = decode(parent_entries)
    scale = decode(scale_entries)
    out: Managed = {}
    for owner, entry in parent.items():
        path = replicas_paths.get(entry.api_version)
        if path is None:
            continue
        if not path or not has(entry.fields, _elements(path)):
            out[owner] = entry
        elif owner in scale:
            out[owner] = entry
            del scale[owner]
        elif left := difference(entry.fields, from_paths([_elements(path)])):
            out[owner] = ManagedEntry(entry.api_version, left, entry.time)
    for owner, entry in scale.items():
        if has(entry.fields, _REPLICAS):
            time = parent[owner].time if owner in parent else None
            out[owner] = ManagedEntry(api_version, from_paths([_elements(replicas_paths[api_version])]), time)
    return encode(out)


def _elements(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in path)
