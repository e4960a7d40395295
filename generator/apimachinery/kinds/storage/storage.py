"""Classes and drivers of storage, attachments of volumes, and migrations of what is stored."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.conditions import conditions
from apimachinery.kinds.core.persistent_volumes import volume_spec
from apimachinery.kinds.core.volume_sources import csi_driver_name
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    numbered,
    of_missing,
    struct,
)
from apimachinery.kinds.formats import FORMATS
from apimachinery.kinds.gates import enabled
from apimachinery.meta.field_errors import (
    duplicate,
    forbidden,
    invalid_value,
    too_long,
)
from apimachinery.meta.field_errors import required as required_error

_METADATA_BYTES = 256 * 1024
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


@of_missing
def provisioner(value: Any, path: str) -> Errors:
    """The name of what makes volumes, in any case of letters."""
    if value:
        yield from checks.each_fault(value.lower(), path, "qualified-name")
    else:
        yield required_error(path)


@of_missing
def parameters(value: Any, path: str, needed: bool = False) -> Errors:
    """What a driver alone understands: up to 512 texts, 256 KiB in all."""
    given = value if isinstance(value, dict) else {}
    if len(given) > 512:
        yield too_long(path, 512)
        return
    if "" in given:
        yield invalid_value(path, "", "field can not be empty.")
    if sum(len(key.encode()) + len(str(text).encode()) for key, text in given.items()) > _METADATA_BYTES:
        yield too_long(path, _METADATA_BYTES)
    if needed and not given:
        yield required_error(path, "must contain at least one key/value pair")


def topologies(value: Any, path: str) -> Errors:
    """Where volumes of a class may be; no two terms say the same."""
    # kube-apiserver compares with an empty term for each that there is, too.
    seen: list[Any] = [{}] * (len(value) if isinstance(value, list) else 0)
    for index, term in numbered({"terms": value}, "terms"):
        place, by_key = f"{path}[{index}].matchLabelExpressions", {}
        for number, each in numbered(term, "matchLabelExpressions"):
            at, key, values = f"{place}[{number}]", each.get("key") or "", each.get("values") or []
            if not values:
                yield required_error(f"{at}.values")
            for position, text in enumerate(values):
                if text in values[:position]:
                    yield duplicate(f"{at}.values[{position}]", text)
            yield from checks.each_fault(key, f"{at}.key", "qualified-name")
            if key in by_key:
                yield duplicate(f"{at}.key", key)
            by_key[key] = set(values)
        for _ in range(seen.count(by_key)):
            yield duplicate(place, "")
        seen.append(by_key)


def attachment(value: Json, path: str) -> Errors:
    """A volume on a node."""
    del path
    spec, status = struct(value, "spec") or {}, struct(value, "status") or {}
    yield from csi_driver_name(spec.get("attacher"), "spec.attacher")
    source = struct(spec, "source") or {}
    inline, name = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and name is None:
        yield required_error("spec.source", _ONE_SOURCE)
    elif inline is not None and name is not None:
        yield forbidden("spec.source", _ONE_SOURCE)
    elif name == "":
        detail = "must specify non empty persistentVolumeName"
        yield required_error("spec.source.persistentVolumeName", detail)
    elif inline is not None:
        yield from volume_spec(inline, "spec.source.inlineVolumeSpec", inline=True)
    if name is not None:
        yield from checks.each_fault(name, "spec.source.persistentVolumeName", "dns-subdomain")
    yield from checks.each_fault(spec.get("nodeName") or "", "spec.nodeName", "dns-subdomain")
    yield from attachment_status(status, "status")


def attachment_status(status: Any, path: str) -> Errors:
    """What a driver says of a volume it attached, and of those it could not."""
    if not isinstance(status, dict):
        return
    texts = struct(status, "attachmentMetadata") or {}
    if sum(len(key.encode()) + len(str(text).encode()) for key, text in texts.items()) > _METADATA_BYTES:
        yield too_long(f"{path}.attachmentMetadata", _METADATA_BYTES)
    for key in ("attachError", "detachError"):
        problem = struct(status, key) or {}
        if len((problem.get("message") or "").encode()) > 1024:
            yield too_long(f"{path}.{key}.message", _METADATA_BYTES)
        code = problem.get("errorCode")
        if code is not None and code < 0:
            detail = f"must be between 0 and {checks.MAX_INT32}, inclusive"
            yield invalid_value(f"{path}.{key}.errorCode", code, detail)


def node_drivers(value: Any, path: str) -> Errors:
    """The drivers of a node, each once."""
    seen = set()
    for index, driver in numbered({"drivers": value}, "drivers"):
        place, name, node = f"{path}[{index}]", driver.get("name") or "", driver.get("nodeID") or ""
        yield from csi_driver_name(name, f"{place}.name")
        if not node:
            yield required_error(f"{place}.nodeID")
        if len(node.encode()) > 256:
            yield invalid_value(f"{place}.nodeID", node, "must be 256 characters or less")
        yield from checks.minimum(lookup(driver, "allocatable", "count"), f"{place}.allocatable.count")
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)
        keys = driver.get("topologyKeys") or []
        for number, key in enumerate(keys):
            if not key:
                yield required_error(place)
            if key in keys[:number]:
                yield duplicate(place, key)
            yield from checks.each_fault(key, place, "qualified-name")


def kept_drivers(value: Any, path: str, old: Any) -> Errors:
    """A driver of a node stays what it is except, since 1.35, for how much it can attach."""
    kept = _without_amount if enabled("MutableCSINodeAllocatableCount") else _stated
    for before in items({"drivers": old}, "drivers"):
        for driver in items({"drivers": value}, "drivers"):
            if driver.get("name") == before.get("name"):
                if kept(driver) != kept(before):
                    yield invalid_value(path, {**driver, "allocatable": None}, "field is immutable")


def _stated(driver: Json) -> Json:
    return {key: value for key, value in driver.items() if value not in (None, [])}


def _without_amount(driver: Json) -> Json:
    return {key: value for key, value in driver.items() if key != "allocatable" and value not in (None, [])}


def attaching(value: Json, path: str) -> Errors:
    """How a driver attaches is said always. One field is named as kube-apiserver names it."""
    for key, shown in (
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ):
        if value.get(key) is None:
            yield required_error(f"{path}.{shown}")


def lifecycles(value: Any, path: str) -> Errors:
    """The modes of a driver's volumes; a fault is the list's."""
    for mode in value or ():
        yield from checks.supported(mode, path, ("Persistent", "Ephemeral"))


def kept_spec(value: Any, path: str, old: Any) -> Errors:
    """How a driver attaches stays as it is. The field is named as kube-apiserver names it."""
    now, was = (each if isinstance(each, dict) else {} for each in (value, old))
    for key, shown in (
        ("attachRequired", "attachedRequired"),
        ("volumeLifecycleModes", "volumeLifecycleModes"),
    ):
        yield from checks.immutable(now.get(key), f"{path}.{shown}", was.get(key))


def tokens(value: Any, path: str) -> Errors:
    """The tokens that a driver wants, one for each audience."""
    seen = set()
    for index, request in numbered({"requests": value}, "requests"):
        place, audience = f"{path}[{index}]", request.get("audience") or ""
        if audience in seen:
            yield duplicate(f"{place}.audience", audience)
            continue
        seen.add(audience)
        seconds, place = request.get("expirationSeconds"), f"{place}.expirationSeconds"
        yield from checks.minimum(
            seconds, place, 600, detail="may not specify a duration less than 10 minutes"
        )
        yield from checks.maximum(
            seconds, place, 2**32, detail="may not specify a duration larger than 2^32 seconds"
        )


def migration(value: Json, path: str) -> Errors:
    """Which resource is stored again."""
    del path
    resource = lookup(value, "spec", "resource") or {}
    name, group, place = resource.get("resource") or "", resource.get("group") or "", "spec.resource"
    if not name:
        yield required_error(f"{place}.resource", "resource is required to be set")
    elif faults := FORMATS["dns-1035-label"](name):
        yield invalid_value(f"{place}.resource", name, ",".join(faults))
    if group and (faults := FORMATS["dns-subdomain"](group)):
        yield invalid_value(f"{place}.group", group, ",".join(faults))


def migration_status(value: Json, path: str, old: Json) -> Errors:
    """A migration that has ended stays so."""
    del path
    status, before = struct(value, "status") or {}, struct(old, "status") or {}
    version, was = status.get("resourceVersion") or "", before.get("resourceVersion") or ""
    if version and not (version.isascii() and version.isdigit() and version[0] != "0"):
        detail = f"resource version is not well formed: {version}"
        yield invalid_value("status.resourceVersion", version, detail)
    yield from conditions(status, "status.conditions")
    if was and was != version:
        yield invalid_value("status.resourceVersion", version, "field is immutable")
    now, then = _ended(status), _ended(before)
    shown, place = status.get("conditions"), "status.conditions"
    if len(now) > 1:
        detail = "Both success and failed conditions cannot be true at the same time"
        yield invalid_value(place, shown, detail)
    for kind, word in (("Succeeded", "Success"), ("Failed", "Failed")):
        if kind in then and kind not in now:
            detail = f"{word} condition cannot be set to false once it is true"
            yield invalid_value(place, shown, detail)


def _ended(status: Json) -> set[str]:
    true = {each.get("type") or "" for each in items(status, "conditions") if each.get("status") == "True"}
    return true & {"Succeeded", "Failed"}
