"""Persistent volumes: their sources, where they may be used, and what may change in them."""

from __future__ import annotations

import posixpath
from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core import pod_affinity
from apimachinery.kinds.core.claims import access_modes, kept_attributes_class
from apimachinery.kinds.core.volume_sources import (
    csi_driver_name,
    initiator,
    secret_reference,
    source,
)
from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    same,
    struct,
)
from apimachinery.meta.field_errors import FieldError, Reason, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder
from apimachinery.meta.quantity import parse_quantity

_SOURCES = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
)
_SHOWN = {"gcePersistentDisk": "persistentDisk"}
"""Where errors name a source otherwise than the API does."""
_GA_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}
_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def volume(value: Json, path: str) -> Errors:
    """A persistent volume."""
    del path
    spec = struct(value, "spec") or {}
    yield from volume_spec(spec, "spec", name=lookup(value, "metadata", "name") or "")


def volume_spec(spec: Json, path: str, *, name: str = "", inline: bool = False) -> Errors:
    """The spec of a volume; an ``inline`` one is part of an attachment and of CSI alone."""
    if inline:
        for key in ("claimRef", "capacity"):
            if spec.get(key):
                yield forbidden(f"{path}.{key}", "may not be specified in the context of inline volumes")
        if spec.get("csi") is None:
            yield required_error(f"{path}.csi", "has to be specified in the context of inline volumes")
    if not spec.get("accessModes"):
        yield required_error(f"{path}.accessModes")
    yield from access_modes(spec.get("accessModes"), f"{path}.accessModes")
    if not inline:
        yield from _capacity(struct(spec, "capacity"), f"{path}.capacity")
    yield from _policy(spec, path, inline)
    affinity = struct(spec, "nodeAffinity")
    if affinity is not None:
        yield from _affinity(affinity, f"{path}.nodeAffinity", inline)
    yield from _source(spec, path, name)
    where = lookup(spec, "hostPath", "path") or ""
    if where and posixpath.normpath(where) in ("/", "//"):
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            yield forbidden(
                f"{path}.persistentVolumeReclaimPolicy", "may not be 'recycle' for a hostPath mount of '/'"
            )
    yield from _classes(spec, path, inline)


def _capacity(given: Json | None, path: str) -> Errors:
    capacity = given or {}
    if not capacity:
        yield required_error(path)
    if set(capacity) != {"storage"}:
        yield not_supported(path, given, ("storage",))
    for name, amount in sorted(capacity.items()):
        try:
            quantity = parse_quantity(str(amount))
        except ValueError:
            continue
        if quantity.value < 0:
            yield invalid_value(f"{path}[{name}]", int(quantity.value), "must be a valid resource quantity")
        yield from checks.quantity_above_zero(amount, f"{path}[{name}]")


def _policy(spec: Json, path: str, inline: bool) -> Errors:
    policy, place = spec.get("persistentVolumeReclaimPolicy"), f"{path}.persistentVolumeReclaimPolicy"
    if not policy:
        return
    if inline:
        if policy != "Retain":
            yield forbidden(place, "may only be Retain in the context of inline volumes")
    elif policy not in ("Delete", "Recycle", "Retain"):
        yield not_supported(place, policy, ("Delete", "Recycle", "Retain"))


def _affinity(affinity: Json, path: str, inline: bool) -> Errors:
    if inline:
        yield forbidden(path, "may not be specified in the context of inline volumes")
    elif affinity.get("required") is None:
        yield required_error(f"{path}.required", "must specify required node constraints")
    else:
        yield from pod_affinity.node_selector(affinity["required"], f"{path}.required")


def _source(spec: Json, path: str, name: str) -> Errors:
    chosen = [key for key in _SOURCES if spec.get(key) is not None]
    if not chosen:
        yield required_error(path, "must specify a volume type")
        return
    if "flexVolume" in chosen[1:]:
        # Of a flexVolume next to another source nobody says that it is one too many, only what is wrong with it.
        chosen.remove("flexVolume")
        yield from source("flexVolume", struct(spec, "flexVolume") or {}, f"{path}.flexVolume")
    for extra in chosen[1:]:
        shown = "cephFS" if extra == "cephfs" else extra
        yield forbidden(f"{path}.{shown}", "may not specify more than 1 volume type")
    kind, value = chosen[0], spec[chosen[0]]
    if not isinstance(value, dict):
        return
    place = f"{path}.{_SHOWN.get(kind, kind)}"
    if kind == "csi":
        yield from _csi(value, place)
        return
    if kind == "iscsi":
        yield from _iscsi(value, place, name)
        return
    yield from source(kind, value, place)
    if kind in ("cinder", "storageos") and struct(value, "secretRef") is not None:
        if not value["secretRef"].get("namespace"):
            yield required_error(f"{place}.secretRef.namespace")
    elif kind == "glusterfs" and value.get("endpointsNamespace") is not None:
        namespace = value["endpointsNamespace"]
        if not namespace:
            detail = "if the endpointnamespace is set, it must be a valid namespace name"
            yield invalid_value(f"{place}.endpointsNamespace", namespace, detail)
        else:
            yield from checks.each_fault(namespace, f"{place}.endpointsNamespace", "dns-label")
    elif kind == "azureFile" and value.get("secretNamespace") == "":
        yield required_error(f"{place}.secretNamespace")
    elif kind == "local" and spec.get("nodeAffinity") is None:
        yield required_error(f"{path}.nodeAffinity", "Local volume requires node affinity")


def _iscsi(value: Json, path: str, name: str) -> Errors:
    portal = value.get("targetPortal") or ""
    if not portal:
        yield required_error(f"{path}.targetPortal")
    # The node makes an interface of that name for open-iscsi, which takes no longer one.
    if value.get("initiatorName") is not None and len(f"{name}:{portal}") > 64:
        yield invalid_value(
            f"{path}.targetportal",
            portal,
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
            "iscsi.initiatorName is specified.",
        )
    if not value.get("iqn"):
        yield required_error(f"{path}.iqn")
    yield from initiator(value.get("iqn"), f"{path}.iqn", "must be valid format")
    yield from checks.between(value.get("lun"), f"{path}.lun", 0, 255)
    secret = value.get("secretRef")
    if (value.get("chapAuthDiscovery") or value.get("chapAuthSession")) and secret is None:
        yield required_error(f"{path}.secretRef")
    yield from secret_reference(secret, f"{path}.secretRef")
    yield from initiator(value.get("initiatorName"), f"{path}.initiatorname", "must be valid format")


def _csi(value: Json, path: str) -> Errors:
    yield from csi_driver_name(value.get("driver"), f"{path}.driver")
    if not value.get("volumeHandle"):
        yield required_error(f"{path}.volumeHandle")
    for key in _CSI_SECRETS:
        secret = struct(value, key)
        if secret is not None:
            yield from checks.name(secret.get("name"), f"{path}.{key}.name", "dns-subdomain")
            yield from checks.name(secret.get("namespace"), f"{path}.{key}.namespace", "dns-label")


def _classes(spec: Json, path: str, inline: bool) -> Errors:
    storage, mode = spec.get("storageClassName"), spec.get("volumeMode")
    if storage:
        if inline:
            yield forbidden(
                f"{path}.storageClassName", "may not be specified in the context of inline volumes"
            )
        else:
            yield from checks.each_fault(storage, f"{path}.storageClassName", "dns-subdomain")
    if mode is not None:
        if inline and mode != "Filesystem":
            detail = "may not specify volumeMode other than Filesystem in the context of inline volumes"
            yield forbidden(f"{path}.volumeMode", detail)
        elif not inline and mode not in ("Block", "Filesystem"):
            yield not_supported(f"{path}.volumeMode", mode, ("Block", "Filesystem"))
    attributes, place = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if attributes is not None:
        if not attributes:
            yield required_error(place, "an empty string is disallowed")
        yield from checks.string_format(attributes, place, "dns-subdomain")
        if spec.get("csi") is None:
            yield required_error(f"{path}.csi", "has to be specified when using volumeAttributesClassName")


def volume_update(value: Json, path: str, old: Json) -> Errors:
    """A volume keeps its source, its mode and where it may be used."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    now, last = ({key: each[key] for key in _SOURCES if each.get(key) is not None} for each in (spec, before))
    csi = struct(now, "csi")
    if csi is not None and struct(last, "csi") is not None and "controllerExpandSecretRef" not in last["csi"]:
        # A secret for expanding may be given later.
        now["csi"] = {key: item for key, item in csi.items() if key != "controllerExpandSecretRef"}
    if not same(now, last):
        detail = "spec.persistentvolumesource is immutable after creation"
        compared = ("core.PersistentVolumeSource", last, now)
        yield FieldError(Reason.FORBIDDEN, "spec.persistentvolumesource", detail, compared=compared)
    # Neither this path nor nodeAffinity has ``spec`` before it, as in kube-apiserver.
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), "field is immutable")
    if before.get("nodeAffinity") is not None and not gates.enabled("MutablePVNodeAffinity"):
        if not _same_affinity(spec.get("nodeAffinity"), before["nodeAffinity"]):
            detail = "field is immutable, except for updating from beta label to GA"
            yield invalid_value("nodeAffinity", _go_affinity(spec.get("nodeAffinity")), detail)
    if before.get("volumeAttributesClassName") is not None and spec.get("volumeAttributesClassName") is None:
        yield forbidden("spec.volumeAttributesClassName", "update from non-nil value to nil is forbidden")
    yield from kept_attributes_class(spec, before)


def _same_affinity(new: Any, old: Any) -> bool:
    """Whether nothing changed but labels that have a newer name."""
    if new == old:
        return True
    terms, before = (lookup(each, "required", "nodeSelectorTerms") or [] for each in (new, old))
    if len(terms) != len(before):
        return False
    for term, last in zip(terms, before, strict=True):
        for key in ("matchExpressions", "matchFields"):
            given, stored = term.get(key) or [], last.get(key) or []
            if len(given) != len(stored):
                return False
            for one, other in zip(given, stored, strict=True):
                renamed = _GA_LABELS.get(other.get("key", ""), "")
                if one != other and one != {**other, "key": renamed}:
                    return False
    return True


def _go_affinity(value: Any) -> Any:
    """The affinity as Go prints it: its structs name every field."""
    if not isinstance(value, dict):
        return None
    required = struct(value, "required")
    if required is None:
        return InOrder({"Required": None})

    def requirements(term: Json, key: str) -> list[Json] | None:
        found = [
            {
                "Key": each.get("key") or "",
                "Operator": each.get("operator") or "",
                "Values": each.get("values"),
            }
            for _, each in numbered(term, key)
        ]
        return found or None

    terms = [
        {
            "MatchExpressions": requirements(term, "matchExpressions"),
            "MatchFields": requirements(term, "matchFields"),
        }
        for _, term in numbered(required, "nodeSelectorTerms")
    ]
    return InOrder({"Required": {"NodeSelectorTerms": terms or None}})
