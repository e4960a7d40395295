"""Markers of Kubernetes releases that name what is not there.

A map-list key that its items lack, or a list type on an object, cannot be merged by; kube-apiserver itself never
applies to these places (they are list kinds and Status, which nobody patches), so nobody noticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubewright.fixups.fixup import Mend

_LIST_MARKERS = (
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
)


def _drop_list_markers(schema: Any, field: str) -> int:
    place = schema.get("properties", {}).get(field) if isinstance(schema, dict) else None
    if not isinstance(place, dict) or not any(marker in place for marker in _LIST_MARKERS):
        return 0
    for marker in _LIST_MARKERS:
        place.pop(marker, None)
    return 1


def _drop_from(definitions: dict[str, Any], names: Iterable[str], field: str) -> int:
    return sum(_drop_list_markers(definitions.get(name), field) for name in names)


def _releases(first: int, last: int) -> frozenset[str]:
    return frozenset(f"1.{minor}" for minor in range(first, last + 1))


CSI_STORAGE_CAPACITY_LIST = Mend(
    name="csi_storage_capacity_list",
    reason="CSIStorageCapacityList.items is keyed by `name`, which is no field of CSIStorageCapacity",
    releases=_releases(25, 29),
    mend=lambda definitions: _drop_from(
        definitions,
        (
            "io.k8s.api.storage.v1.CSIStorageCapacityList",
            "io.k8s.api.storage.v1beta1.CSIStorageCapacityList",
        ),
        "items",
    ),
)

STORAGE_VERSION_MIGRATION_LIST = Mend(
    name="storage_version_migration_list",
    reason="StorageVersionMigrationList.items is keyed by `type`, which is no field of its items",
    releases=_releases(30, 34),
    mend=lambda definitions: _drop_from(
        definitions, ("io.k8s.api.storagemigration.v1alpha1.StorageVersionMigrationList",), "items"
    ),
)

STATUS_DETAILS = Mend(
    name="status_details",
    reason="Status.details is an object, yet says x-kubernetes-list-type",
    releases=_releases(30, 34),
    mend=lambda definitions: _drop_from(
        definitions, ("io.k8s.apimachinery.pkg.apis.meta.v1.Status",), "details"
    ),
)
