"""Claims of devices: what is requested, with which constraints and configuration, and what was allocated."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.conditions import conditions
from apimachinery.kinds.core.pod_affinity import node_selector
from apimachinery.kinds.core.pod_resources import is_extended
from apimachinery.kinds.core.volume_sources import csi_driver_name
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    of_missing,
    struct,
)
from apimachinery.kinds.resource.device_expressions import device_expression
from apimachinery.meta import addresses
from apimachinery.meta.field_errors import (
    duplicate,
    forbidden,
    invalid_value,
    too_long,
    too_many,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder

Check = Callable[[Any, str], Errors]

_REQUESTS = 32
_SLASHED = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_UID_FORM = (
    "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal "
    "characters"
)
# Python's ``re`` is safe here: the pattern is ours and linear.
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def limited(value: Any, path: str, most: int, check: Check) -> Errors:
    """Each item of a list, unless there are too many."""
    found = value if isinstance(value, list) else []
    if len(found) > most:
        yield too_many(path, len(found), most)
        return
    for index, item in enumerate(found):
        yield from check(item, f"{path}[{index}]")


def distinct(value: Any, path: str, most: int, check: Check, key: Callable[[Any], Any]) -> Errors:
    """Each item of a list, unless there are too many, and which are there twice."""
    yield from limited(value, path, most, check)
    found = value if isinstance(value, list) else []
    if len(found) > most:
        return
    seen: list[Any] = []
    for index, item in enumerate(found):
        name = key(item)
        if name in seen:
            yield duplicate(f"{path}[{index}]", name)
        seen.append(name)


def _itself(item: Any) -> Any:
    return item


def _name(item: Json) -> str:
    return item.get("name") or ""


def label(value: Any, path: str) -> Errors:
    """A label, which an empty text is not."""
    yield from checks.each_fault(value or "", path, "dns-label")


def qualified(value: Any, path: str) -> Errors:
    """A name as that of a label."""
    yield from checks.each_fault(value or "", path, "qualified-name")


def pool_name(value: Any, path: str) -> Errors:
    """The name of a pool: domains with slashes between them."""
    if not value:
        yield required_error(path)
        return
    if len(value.encode()) > 253:
        yield too_long(path, 253)
    for part in value.split("/"):
        yield from checks.each_fault(part, path, "dns-subdomain")


def attribute_name(value: str, path: str) -> Errors:
    """The name of an attribute or a capacity: an identifier, with or without a domain before it."""
    domain, slash, name = value.rpartition("/")
    if value.count("/") > 1:
        return
    if slash:
        if domain:
            yield from csi_driver_name(domain, path)
        else:
            yield invalid_value(path, "", "the domain must not be empty")
        if not name:
            yield invalid_value(path, "", "the name must not be empty")
            return
    if len(name.encode()) > 32:
        yield too_long(path, 32)
    yield from checks.each_fault(name, path, "c-identifier")


def with_domain(value: Any, path: str) -> Errors:
    """The name of an attribute, behind a domain."""
    if not isinstance(value, str):
        return
    yield from attribute_name(value, path)
    if "/" not in value:
        detail = "a fully qualified name must be a domain and a name separated by a slash"
        yield invalid_value(path, value, detail)


def _uid(value: Any, path: str) -> Errors:
    if value is None or (_UID.fullmatch(value) and value == value.lower()):
        return
    if len(value) in (32, 36, 38, 45):
        yield invalid_value(path, value, _UID_FORM)
    else:
        yield invalid_value(path, value, f"error validating uid: invalid UUID length: {len(value)}")


def references(value: Any, path: str, devices: Any) -> Errors:
    """The names of requests of a claim, or of what they ask for in turn."""
    known = _known(devices if isinstance(devices, dict) else {})
    yield from distinct(value, path, _REQUESTS, lambda name, at: _reference(name, at, known), _itself)


def _known(devices: Json) -> set[str]:
    """The names of requests, and of what they ask for in turn."""
    known = set()
    for request in items(devices, "requests"):
        known.add(_name(request))
        known.update(f"{_name(request)}/{_name(each)}" for each in items(request, "firstAvailable"))
    return known


def _reference(name: str, path: str, known: set[str]) -> Errors:
    if name.count("/") > 1:
        yield invalid_value(path, name, _SLASHED)
        return
    for part in name.split("/"):
        yield from label(part, path)
    if name not in known:
        yield invalid_value(path, name, _SLASHED)


def one_kind(value: Json, path: str) -> Errors:
    """A request is for exactly one thing, or for the first of several that is available."""
    exactly, first = value.get("exactly"), value.get("firstAvailable")
    if first and exactly is not None:
        yield invalid_value(path, None, f"{_ONE_KIND}, but multiple fields are set")
    elif not first and exactly is None:
        yield required_error(path, _ONE_KIND)


@of_missing
def expression(value: Any, path: str) -> Errors:
    """An expression that selects devices."""
    text = value or ""
    if len(text.encode()) > 10 * 1024:
        yield too_long(path, 10 * 1024)
    else:
        yield from device_expression(text, path)


def taint(value: Json, path: str, old: Json | None = None) -> Errors:
    """A taint of a device."""
    yield from qualified(value.get("key"), f"{path}.key")
    yield from checks.string_format(value.get("value"), f"{path}.value", "label-value")
    if old is None or old.get("effect") != value.get("effect"):
        yield from checks.must_be_one_of(value.get("effect"), f"{path}.effect", _EFFECTS)


def configuration(value: Json, path: str) -> Errors:
    """What a driver is told, which it alone understands."""
    opaque = struct(value, "opaque")
    if opaque is None:
        yield required_error(f"{path}.opaque")
        return
    yield from csi_driver_name(opaque.get("driver"), f"{path}.opaque.driver")
    yield from _raw(opaque.get("parameters"), f"{path}.opaque.parameters")


def _raw(value: Any, path: str) -> Errors:
    """What a driver alone understands: an object of at most 10 KiB."""
    if value is None:
        yield required_error(path)
    elif len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()) > 10 * 1024:
        yield too_long(path, 10 * 1024)
    elif not isinstance(value, dict):
        yield invalid_value(path, "<value omitted>", "must be a valid JSON object")


def extended_name(value: Any, path: str) -> Errors:
    """The name of a resource by which containers ask for the devices of a class."""
    if isinstance(value, str) and not is_extended(value):
        yield invalid_value(path, value, "must be a valid extended resource name")


def claim_status(value: Json, path: str, old: Json) -> Errors:
    """Who uses a claim, and what was allocated for it."""
    del path
    status, before = struct(value, "status") or {}, struct(old, "status") or {}
    known = _known(lookup(value, "spec", "devices") or {})
    reserved, allocation = status.get("reservedFor") or [], struct(status, "allocation")
    uid: Callable[[Json], str] = lambda item: item.get("uid") or ""  # noqa: E731
    yield from distinct(reserved, "status.reservedFor", 256, _consumer, uid)
    allocated = [_device_id(each) for each in items(lookup(allocation, "devices") or {}, "results")]

    def device(item: Json, at: str) -> Errors:
        yield from _device_status(item, at, allocated)

    yield from distinct(status.get("devices"), "status.devices", 2**31, device, _device_id)
    if reserved and allocation is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif reserved and lookup(value, "metadata", "deletionTimestamp"):
        held = before.get("reservedFor") or []
        if any(each not in held for each in reserved):
            detail = (
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            )
            yield forbidden("status.reservedFor", detail)
    if allocation is None:
        return
    if before.get("allocation") is not None:
        yield from checks.immutable(allocation, "status.allocation", before["allocation"])
    else:
        yield from _allocation(allocation, "status.allocation", known)


def _consumer(value: Json, path: str) -> Errors:
    for key in ("resource", "name", "uid"):
        yield from checks.required(value.get(key), f"{path}.{key}")


def _device_id(device: Json) -> InOrder:
    parts = {"Driver": "driver", "Pool": "pool", "Device": "device"}
    shown = {shown: device.get(key) or "" for shown, key in parts.items()}
    return InOrder({**shown, "ShareID": device.get("shareID") or ""})


def _allocation(value: Json, path: str, known: set[str]) -> Errors:
    def reference(name: str, at: str) -> Errors:
        yield from _reference(name, at, known)

    def result(item: Json, at: str) -> Errors:
        yield from reference(item.get("request") or "", f"{at}.request")
        yield from _place(item, at)
        yield from binding(item, at)
        yield from _uid(item.get("shareID"), f"{at}.shareID")

    def config(item: Json, at: str) -> Errors:
        sources = ("FromClaim", "FromClass")
        yield from checks.must_be_one_of(item.get("source"), f"{at}.source", sources)
        yield from distinct(item.get("requests"), f"{at}.requests", _REQUESTS, reference, _itself)
        yield from configuration(item, at)

    devices = struct(value, "devices") or {}
    yield from limited(devices.get("results"), f"{path}.devices.results", 32, result)
    yield from limited(devices.get("config"), f"{path}.devices.config", 64, config)
    yield from node_selector(value.get("nodeSelector"), f"{path}.nodeSelector")


def _place(device: Json, path: str) -> Errors:
    yield from csi_driver_name(device.get("driver"), f"{path}.driver")
    yield from pool_name(device.get("pool"), f"{path}.pool")
    yield from label(device.get("device"), f"{path}.device")


def binding(value: Json, path: str) -> Errors:
    """The conditions under which a pod may be bound to the device's node, and those that forbid it."""
    good, bad = value.get("bindingConditions") or [], value.get("bindingFailureConditions") or []
    at_good, at_bad = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    yield from limited(good, at_good, 4, qualified)
    yield from limited(bad, at_bad, 4, qualified)
    for index, kind in enumerate(good):
        if kind in good[:index]:
            yield duplicate(f"{at_good}[{index}]", kind)
    for index, kind in enumerate(bad):
        if kind in bad[:index]:
            yield duplicate(f"{at_bad}[{index}]", kind)
        if kind in good:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            yield invalid_value(f"{at_bad}[{index}]", kind, detail)
    if bad and not good:
        detail = "bindingConditions are required to use bindingFailureConditions"
        yield invalid_value(at_good, value.get("bindingConditions"), detail)
    if good and not bad:
        detail = "bindingFailureConditions are required to use bindingConditions"
        yield invalid_value(at_bad, value.get("bindingFailureConditions"), detail)


def _device_status(value: Json, path: str, allocated: list[InOrder]) -> Errors:
    yield from _place(value, path)
    yield from _uid(value.get("shareID"), f"{path}.shareID")
    if _device_id(value) not in allocated:
        yield invalid_value(path, _device_id(value), "must be an allocated device in the claim")
    count = len(value.get("conditions") or ())
    if count > 8:
        yield too_many(f"{path}.conditions", count, 8)
    yield from conditions(value, f"{path}.conditions")
    if value.get("data") is not None:
        yield from _raw(value["data"], f"{path}.data")
    network = struct(value, "networkData")
    if network is None:
        return
    for key, most in (("interfaceName", 256), ("hardwareAddress", 128)):
        if len((network.get(key) or "").encode()) > most:
            yield too_long(f"{path}.networkData.{key}", most)
    yield from distinct(network.get("ips"), f"{path}.networkData.ips", 16, _interface, _itself)


def _interface(value: str, path: str) -> Errors:
    for detail in addresses.interface_faults(value):
        yield invalid_value(path, value, detail)
