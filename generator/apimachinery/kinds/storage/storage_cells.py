"""Tables of volumes, claims, classes, drivers and devices."""

from __future__ import annotations

from apimachinery.kinds.cell import (
    NONE,
    UNSET,
    Cell,
    at,
    count_at,
    few,
    flag_at,
    get,
    name_of_class,
    of,
    pointer_at,
)
from apimachinery.meta.json import Json

_ACCESS = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access(path: str) -> Cell:
    return lambda obj: ",".join(_ACCESS.get(mode, mode) for mode in get(obj, path) or ())


def _claim(volume: Json) -> str:
    reference = get(volume, "spec.claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def _phase(obj: Json) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str(get(obj, "status.phase") or "")


def _class(obj: Json) -> str:
    annotation = (obj["metadata"].get("annotations") or {}).get("volume.beta.kubernetes.io/storage-class")
    return str(annotation or get(obj, "spec.storageClassName") or "")


def _bound(path: str, absent: str) -> Cell:
    """A claim's facts that count only once it is bound."""
    return lambda claim: (get(claim, path) or absent) if get(claim, "spec.volumeName") else ""


def _claim_access(claim: Json) -> str:
    return str(_access("status.accessModes")(claim)) if get(claim, "spec.volumeName") else ""


def _tokens(driver: Json) -> str:
    audiences = [request.get("audience", "") for request in get(driver, "spec.tokenRequests") or ()]
    return ",".join(audiences) or UNSET


def _encodings(version: Json) -> str:
    stored = get(version, "status.storageVersions") or []
    return few([f"{each.get('apiServerID', '')}={each.get('encodingVersion', '')}" for each in stored])


def _migrated(migration: Json) -> str:
    resource = get(migration, "spec.resource") or {}
    group = f".{resource['group']}" if resource.get("group") else ""
    return f"{resource.get('resource', '')}{group}"


def _migration_state(migration: Json) -> str:
    state = "Unknown"
    for condition in get(migration, "status.conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Running", "Failed", "Succeeded"):
            state = condition["type"]
    return state


def _claim_state(claim: Json) -> str:
    states = []
    if "deletionTimestamp" in claim["metadata"]:
        states.append("deleted")
    if get(claim, "status.allocation") is None:
        return ",".join(states or ["pending"])
    states.append("allocated")
    if get(claim, "status.reservedFor"):
        states.append("reserved")
    return ",".join(states)


STORAGE: dict[str, dict[str, Cell]] = {
    "CSIDriver": {
        "AttachRequired": flag_at("spec.attachRequired"),
        "PodInfoOnMount": flag_at("spec.podInfoOnMount"),
        "StorageCapacity": flag_at("spec.storageCapacity"),
        "TokenRequests": _tokens,
        "RequiresRepublish": flag_at("spec.requiresRepublish"),
        "Modes": of("spec.volumeLifecycleModes", lambda modes: ",".join(modes or ()) or NONE),
    },
    "CSINode": {"Drivers": count_at("spec.drivers")},
    "PersistentVolume": {
        "Capacity": at("spec.capacity.storage", "0"),
        "Access Modes": _access("spec.accessModes"),
        "Reclaim Policy": at("spec.persistentVolumeReclaimPolicy"),
        "Status": _phase,
        "Claim": _claim,
        "StorageClass": _class,
        "VolumeAttributesClass": pointer_at("spec.volumeAttributesClassName", UNSET),
        "Reason": at("status.reason"),
        "VolumeMode": pointer_at("spec.volumeMode", UNSET),
    },
    "PersistentVolumeClaim": {
        "Status": _phase,
        "Volume": at("spec.volumeName"),
        "Capacity": _bound("status.capacity.storage", "0"),
        "Access Modes": _claim_access,
        "StorageClass": _class,
        "VolumeAttributesClass": pointer_at("spec.volumeAttributesClassName", UNSET),
        "VolumeMode": pointer_at("spec.volumeMode", UNSET),
    },
    "ResourceClaim": {"State": _claim_state},
    "ResourceSlice": {
        "Node": at("spec.nodeName"),
        "Driver": at("spec.driver"),
        "Pool": at("spec.pool.name"),
    },
    "StorageClass": {
        "Name": name_of_class(
            "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
        ),
        "Provisioner": at("provisioner"),
        "ReclaimPolicy": at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": at("volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion": flag_at("allowVolumeExpansion"),
    },
    "StorageVersion": {
        "CommonEncodingVersion": at("status.commonEncodingVersion", UNSET),
        "StorageVersions": _encodings,
    },
    "StorageVersionMigration": {"Resource": _migrated, "Status": _migration_state},
    "VolumeAttachment": {
        "Attacher": at("spec.attacher"),
        "PV": at("spec.source.persistentVolumeName"),
        "Node": at("spec.nodeName"),
        "Attached": flag_at("status.attached"),
    },
    "VolumeAttributesClass": {"DriverName": at("driverName")},
}
