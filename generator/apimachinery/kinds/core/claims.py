"""Claims of volumes: what they ask for, what may change in them, and what their status says."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks, gates
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.pod_resources import is_native
from apimachinery.kinds.fields import Json, lookup, struct
from apimachinery.meta import names
from apimachinery.meta.field_errors import FieldError, Reason, forbidden, invalid_value, not_supported
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder
from apimachinery.meta.quantity import parse_quantity

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_RESIZE = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def access_modes(value: Any, path: str) -> Errors:
    """How a volume may be mounted; for one pod alone excludes all others."""
    modes = value if isinstance(value, list) else []
    for mode in modes:
        if mode not in _MODES:
            yield not_supported(path, mode, _MODES)
    if "ReadWriteOncePod" in modes and any(mode in _MODES[:3] for mode in modes):
        yield forbidden(path, "may not use ReadWriteOncePod with other access modes")


def claim_spec(value: Any, path: str) -> Errors:
    """What a claim asks for."""
    if not isinstance(value, dict):
        return
    if not value.get("accessModes"):
        yield required_error(f"{path}.accessModes", "at least 1 access mode is required")
    yield from checks.label_selector(value.get("selector"), f"{path}.selector")
    yield from access_modes(value.get("accessModes"), f"{path}.accessModes")
    storage, place = lookup(value, "resources", "requests", "storage"), f"{path}.resources[storage]"
    if storage is None:
        yield required_error(place)
    else:
        yield from checks.quantity_above_zero(storage, place)
    for key in ("storageClassName", "volumeAttributesClassName"):
        yield from checks.string_format(value.get(key), f"{path}.{key}", "dns-subdomain")
    if value.get("volumeMode") not in (None, "Block", "Filesystem"):
        yield not_supported(f"{path}.volumeMode", value["volumeMode"], ("Block", "Filesystem"))
    yield from _sources(value, path)


def _sources(spec: Json, path: str) -> Errors:
    source, reference = struct(spec, "dataSource"), struct(spec, "dataSourceRef")
    for key, each in (("dataSource", source), ("dataSourceRef", reference)):
        if each is not None:
            yield from _source(each, f"{path}.{key}")
    if source is None or reference is None:
        return
    detail = ""
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
    elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        detail = "must match dataSourceRef"
    if detail:
        yield invalid_value(path, InOrder({}), detail)


def _source(source: Json, path: str) -> Errors:
    for key in ("name", "kind"):
        if not source.get(key):
            yield required_error(f"{path}.{key}")
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        yield invalid_value(
            path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        )
    yield from checks.string_format(group, f"{path}.apiGroup", "dns-subdomain")
    yield from checks.string_format(source.get("namespace"), f"{path}.namespace", "dns-label")


def claim_update(value: Json, path: str, old: Json) -> Errors:
    """Of a claim's spec only what a bound claim asks for may change; a volume and a class are given once."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    annotations, old_annotations = (lookup(each, "metadata", "annotations") or {} for each in (value, old))
    masked, kept = dict(spec), dict(before)
    if not before.get("volumeName"):
        kept["volumeName"] = masked.get("volumeName")
    new_class, old_class = spec.get("storageClassName"), before.get("storageClassName")
    beta, old_beta = annotations.get(_BETA_CLASS), old_annotations.get(_BETA_CLASS)
    upgraded = (
        old_beta is not None and old_class is None and new_class == old_beta and beta in (None, old_beta)
    )
    if upgraded:
        masked["storageClassName"] = None
    else:
        if (beta or "") != (old_beta or ""):
            yield invalid_value(f"metadata.annotations.{_BETA_CLASS}", beta or "", "field is immutable")
        if new_class is not None and old_class is None and old_beta in (None, new_class):
            masked["storageClassName"] = old_class
    if lookup(value, "status", "phase") == "Bound":
        resources = struct(masked, "resources") or {}
        if resources.get("requests") is not None:
            asked = {**resources["requests"], "storage": lookup(before, "resources", "requests", "storage")}
            masked["resources"] = {**resources, "requests": asked}
        masked["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    if _present(masked) != _present(kept):
        yield FieldError(
            Reason.FORBIDDEN,
            "spec",
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims",
            compared=("core.PersistentVolumeClaimSpec", kept, masked),
        )
    yield from _smaller(spec, before, old)
    if spec.get("volumeMode") != before.get("volumeMode"):
        yield invalid_value("volumeMode", spec.get("volumeMode"), "field is immutable")
    yield from kept_attributes_class(spec, before)
    now = spec.get("volumeAttributesClassName")
    if now != before.get("volumeAttributesClassName") and not now:
        if lookup(old, "status", "currentVolumeAttributesClassName") is not None:
            what = "nil" if now is None else "empty string"
            yield forbidden(
                "spec.volumeAttributesClassName",
                f"update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil",
            )


_POINTERS = frozenset(
    {"selector", "dataSource", "dataSourceRef", "storageClassName", "volumeMode", "volumeAttributesClassName"}
    | {"apiGroup", "namespace"}
)
"""Where Go tells an empty value from none."""


def _present(value: Any) -> Any:
    """A value without what is empty, quantities by what they say."""
    if not isinstance(value, dict):
        return value
    shown = {
        key: {name: _amount(item) for name, item in inner.items()}
        if key in ("requests", "limits") and isinstance(inner, dict)
        else _present(inner)
        for key, inner in value.items()
    }
    return {
        key: item
        for key, item in shown.items()
        if item not in (None, {}, [], "") or (item is not None and key in _POINTERS)
    }


def _amount(value: Any) -> Any:
    try:
        return parse_quantity(str(value)).value
    except ValueError:
        return value


def kept_attributes_class(spec: Json, before: Json) -> Errors:
    """The class of a volume or claim changes only where the release has classes (1.34)."""
    name = "volumeAttributesClassName"
    if spec.get(name) != before.get(name) and not gates.enabled("VolumeAttributesClass"):
        detail = "update is forbidden when the VolumeAttributesClass feature gate is disabled"
        yield forbidden(f"spec.{name}", detail)


def _smaller(spec: Json, before: Json, old: Json) -> Errors:
    new, last, capacity = (
        _amount(each if each is not None else "0")
        for each in (
            lookup(spec, "resources", "requests", "storage"),
            lookup(before, "resources", "requests", "storage"),
            lookup(old, "status", "capacity", "storage"),
        )
    )
    if new < last and not gates.enabled("RecoverVolumeExpansionFailure"):
        yield forbidden("spec.resources.requests.storage", "field can not be less than previous value")
    elif new < last and new <= capacity:
        yield forbidden("spec.resources.requests.storage", "field can not be less than status.capacity")


def claim_status(value: Json, path: str, old: Json) -> Errors:
    """What is wrong with the status of a claim."""
    del path, old
    if not lookup(value, "spec", "accessModes"):
        yield required_error("Spec.accessModes")
    status = struct(value, "status") or {}
    for name, amount in sorted((struct(status, "capacity") or {}).items()):
        yield from _whole(amount, f"status.capacity[{name}]")
    place = "status.allocatedResourceStatuses"
    for name, state in sorted((struct(status, "allocatedResourceStatuses") or {}).items()):
        yield from _resource(name, place)
        if state not in _RESIZE:
            yield not_supported(place, name, _RESIZE)
    place = "status.allocatedResources"
    for name, amount in sorted((struct(status, "allocatedResources") or {}).items()):
        faults = list(_resource(name, place))
        yield from faults or _whole(amount, f"{place}[{name}]")


def _whole(amount: Any, path: str) -> Errors:
    quantity = parse_quantity(str(amount))
    if quantity.value < 0:
        yield invalid_value(path, int(quantity.value), "must be a valid resource quantity")


def _resource(name: str, path: str) -> Errors:
    faults = names.qualified_name_faults(name)
    for detail in faults:
        yield invalid_value(path, name, detail)
    if not faults and is_native(name) and name != "storage":
        yield not_supported(path, name, ("storage",))
