"""How values of a place merge: the markers, made explicit.

Two families of markers say it (both are kept): server-side apply reads ``x-kubernetes-list-type``,
``-list-map-keys`` and ``-map-type``; strategic merge patch reads ``x-kubernetes-patch-strategy`` and
``-patch-merge-key``. A list with patch strategy ``merge`` and no list type is read as a map list keyed
by its patch merge key, or as a set where it has none (KEP-555, and what kube-apiserver's own type
converter does). Everything else without a marker is atomic for lists, granular for maps and structs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ListType(Enum):
    """``x-kubernetes-list-type``."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


class MapType(Enum):
    """``x-kubernetes-map-type``, of objects and of maps."""

    GRANULAR = "granular"
    ATOMIC = "atomic"


class PatchStrategy(Enum):
    """One word of ``x-kubernetes-patch-strategy`` (a comma-separated list)."""

    MERGE = "merge"
    REPLACE = "replace"
    RETAIN_KEYS = "retainKeys"


@dataclass(frozen=True, slots=True)
class Merge:
    """The merge rule of one place. ``list_type`` and ``map_type`` hold the effective rule;
    ``list_type_declared``/``map_type_declared`` say whether a marker stood there or the default was taken.
    ``list_map_keys`` is in the marker's order, empty unless the list is a map list."""

    list_type: ListType = ListType.ATOMIC
    list_map_keys: tuple[str, ...] = ()
    map_type: MapType = MapType.GRANULAR
    patch_strategy: tuple[PatchStrategy, ...] = ()
    patch_merge_key: str = ""
    list_type_declared: bool = False
    map_type_declared: bool = False


DEFAULT_MERGE = Merge()
