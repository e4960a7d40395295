"""Sources of volumes, as pods and persistent volumes name them: what each must say.

Most sources ask for a few fields, which ``_REQUIRED`` lists; those with more to ask have a function of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core import pods
from apimachinery.kinds.fields import Json, numbered, struct
from apimachinery.kinds.formats import FORMATS
from apimachinery.meta.field_errors import forbidden, invalid_value, not_supported, too_long
from apimachinery.meta.field_errors import required as required_error

_HOST_PATHS = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_REQUIRED = {
    "awsElasticBlockStore": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "azureFile": ("secretName", "shareName"),
    "cephfs": ("monitors",),
    "cinder": ("volumeID",),
    "configMap": ("name",),
    "flexVolume": ("driver",),
    "gcePersistentDisk": ("pdName",),
    "gitRepo": ("repository",),
    "glusterfs": ("endpoints", "path"),
    "hostPath": ("path",),
    "iscsi": ("targetPortal", "iqn"),
    "local": ("path",),
    "nfs": ("server", "path"),
    "persistentVolumeClaim": ("claimName",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "quobyte": ("volume",),
    "rbd": ("monitors", "image"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "secret": ("secretName",),
    "storageos": ("volumeName",),
    "vsphereVolume": ("volumePath",),
}
# The patterns are ours and linear.
_INITIATORS = {
    "iqn": re.compile(r"iqn\.[0-9]{4}-[0-9]{2}\.([a-zA-Z0-9.\-]+)(:[^,;*&$|\s]+)$"),
    "eui": re.compile(r"eui.[a-zA-Z0-9]{16}$"),
    "naa": re.compile(r"naa.[a-zA-Z0-9]{32}$"),
}
_MANAGED_DISK = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_REGISTRY = "must be a host:port pair or multiple pairs separated by commas"


def source(kind: str, value: Json, path: str) -> Errors:
    """What is wrong with one source, of whichever kind."""
    if path.endswith("gcePersistentDisk"):  # faults call it otherwise
        path = path.removesuffix(kind) + "persistentDisk"
    for key in _REQUIRED.get(kind, ()):
        if not value.get(key):
            yield required_error(f"{path}.{key}")
    more = _MORE.get(kind)
    if more is not None:
        yield from more(value, path)


def secret_reference(value: Any, path: str, *, namespaced: bool = False) -> Errors:
    """The secret of a source has a name, and in a persistent volume a namespace."""
    if isinstance(value, dict):
        for key in ("name", "namespace") if namespaced else ("name",):
            if not value.get(key):
                yield required_error(f"{path}.{key}")


def _disk(value: Json, path: str) -> Errors:
    if not 0 <= (value.get("partition") or 0) <= 255:
        yield invalid_value(f"{path}.partition", value["partition"], "must be between 1 and 255, inclusive")


def _azure_disk(value: Json, path: str) -> Errors:
    kind, uri = value.get("kind"), value.get("diskURI") or ""
    if value.get("cachingMode") not in (None, "None", "ReadOnly", "ReadWrite"):
        yield not_supported(f"{path}.cachingMode", value["cachingMode"], ("None", "ReadOnly", "ReadWrite"))
    if kind not in (None, "Dedicated", "Managed", "Shared"):
        yield not_supported(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    if kind == "Managed" and not uri.startswith("/subscriptions/"):
        yield not_supported(f"{path}.diskURI", uri, (_MANAGED_DISK,))
    if kind not in (None, "Managed") and not uri.startswith("https://"):
        yield not_supported(f"{path}.diskURI", uri, (_BLOB_DISK,))


def _named_secret(value: Json, path: str) -> Errors:
    yield from secret_reference(value.get("secretRef"), f"{path}.secretRef")


def _items(value: Json, path: str) -> Errors:
    yield from pods.file_mode(value.get("defaultMode"), f"{path}.defaultMode")
    for index, item in numbered(value, "items"):
        yield from key_to_path(item, f"{path}.items[{index}]")


def key_to_path(value: Json, path: str) -> Errors:
    """One file made of one key."""
    for key in ("key", "path"):
        if not value.get(key):
            yield required_error(f"{path}.{key}")
    yield from pods.local_path(value.get("path"), f"{path}.path")
    yield from pods.file_mode(value.get("mode"), f"{path}.mode")


def _fibre(value: Json, path: str) -> Errors:
    targets, names = value.get("targetWWNs") or [], value.get("wwids") or []
    if not targets and not names:
        yield required_error(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and names:
        yield invalid_value(
            f"{path}.targetWWNs", targets, "targetWWNs and wwids can not be specified simultaneously"
        )
    if targets:
        if value.get("lun") is None:
            yield required_error(f"{path}.lun", "lun is required if targetWWNs is specified")
        else:
            yield from checks.between(value["lun"], f"{path}.lun", 0, 255)


def _flex(value: Json, path: str) -> Errors:
    for key in sorted(struct(value, "options") or {}):
        domain = "." + key.partition("/")[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            detail = "kubernetes.io and k8s.io namespaces are reserved"
            yield invalid_value(f"{path}.options[{key}]", key, detail)


def _flocker(value: Json, path: str) -> Errors:
    name, uuid = value.get("datasetName") or "", value.get("datasetUUID") or ""
    if not name and not uuid:
        yield required_error(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid_value(
            path, "resource", "datasetName and datasetUUID can not be specified simultaneously"
        )
    if "/" in name:
        yield invalid_value(f"{path}.datasetName", name, "must not contain '/'")


def _git(value: Json, path: str) -> Errors:
    yield from pods.relative_path(value.get("directory"), f"{path}.directory")


def _host_path(value: Json, path: str) -> Errors:
    if not value.get("path"):
        return
    yield from pods.no_backsteps(value["path"], f"{path}.path")
    if value.get("type") is not None and value["type"] not in _HOST_PATHS:
        yield not_supported(f"{path}.type", value["type"], _HOST_PATHS)


def _iscsi(value: Json, path: str) -> Errors:
    form = "must be valid format starting with iqn, eui, or naa"
    yield from initiator(value.get("iqn"), f"{path}.iqn", form)
    yield from checks.between(value.get("lun"), f"{path}.lun", 0, 255)
    secret = value.get("secretRef")
    if (value.get("chapAuthDiscovery") or value.get("chapAuthSession")) and secret is None:
        yield required_error(f"{path}.secretRef")
    yield from initiator(value.get("initiatorName"), f"{path}.initiatorname", form)
    if value.get("initiatorName") == "":
        yield invalid_value(f"{path}.initiatorname", "", form)


def initiator(value: Any, path: str, unknown: str) -> Errors:
    """The name of an iSCSI node; ``unknown`` says what is wrong with one of no known kind."""
    if not isinstance(value, str) or not value:
        return
    pattern = _INITIATORS.get(value[:3])
    if pattern is None:
        yield invalid_value(path, value, unknown)
    elif not pattern.match(value):
        yield invalid_value(path, value, "must be valid format")


def _local(value: Json, path: str) -> Errors:
    yield from pods.no_backsteps(value.get("path"), f"{path}.path")


def _nfs(value: Json, path: str) -> Errors:
    where = value.get("path") or ""
    if not where.startswith("/"):
        yield invalid_value(f"{path}.path", where, "must be an absolute path")


def _quobyte(value: Json, path: str) -> Errors:
    registry = value.get("registry") or ""
    if not registry:
        yield required_error(f"{path}.registry", _REGISTRY)
    elif len(value.get("tenant") or "") >= 65:
        yield required_error(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            host, colon, _ = pair.rpartition(":")
            if not colon or (":" in host and not (host.startswith("[") and host.endswith("]"))):
                yield invalid_value(f"{path}.registry", registry, _REGISTRY)


def _storage_os(value: Json, path: str) -> Errors:
    yield from checks.string_format(value.get("volumeName"), f"{path}.volumeName", "dns-label")
    yield from checks.string_format(value.get("volumeNamespace"), f"{path}.volumeNamespace", "dns-label")
    yield from _named_secret(value, path)


def csi_driver_name(value: Any, path: str) -> Errors:
    """The name of a CSI driver: a domain, in any case of letters."""
    if not value:
        yield required_error(path)
        return
    if len(value.encode()) > 63:
        yield too_long(path, 63)
    for detail in FORMATS["dns-subdomain"](value.lower()):
        yield invalid_value(path, value, detail)


def _csi(value: Json, path: str) -> Errors:
    yield from csi_driver_name(value.get("driver"), f"{path}.driver")
    secret = struct(value, "nodePublishSecretRef")
    if secret is None:
        return
    if not secret.get("name"):
        yield required_error(f"{path}.nodePublishSecretRef.name")
    else:
        yield from checks.each_fault(secret["name"], f"{path}.name", "dns-subdomain")


def _empty(value: Json, path: str) -> Errors:
    if any(checks.quantity(value.get("sizeLimit"), "")):
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


_MORE: dict[str, Callable[[Json, str], Errors]] = {
    "awsElasticBlockStore": _disk,
    "azureDisk": _azure_disk,
    "cinder": _named_secret,
    "configMap": _items,
    "csi": _csi,
    "emptyDir": _empty,
    "fc": _fibre,
    "flexVolume": _flex,
    "flocker": _flocker,
    "gcePersistentDisk": _disk,
    "gitRepo": _git,
    "hostPath": _host_path,
    "iscsi": _iscsi,
    "local": _local,
    "nfs": _nfs,
    "quobyte": _quobyte,
    "secret": _items,
    "storageos": _storage_os,
}
