"""Slices of pools of devices: which devices there are, where, and what each has to give."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from fractions import Fraction
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.conditions import conditions
from apimachinery.kinds.core.pod_affinity import node_selector
from apimachinery.kinds.core.pod_resources import is_native
from apimachinery.kinds.core.volume_sources import csi_driver_name
from apimachinery.kinds.fields import (
    Json,
    items,
    lookup,
    named,
    numbered,
    struct,
)
from apimachinery.kinds.resource.devices import (
    Check,
    attribute_name,
    binding,
    distinct,
    label,
    limited,
    pool_name,
    taint,
)
from apimachinery.meta.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid_value,
    too_long,
    too_many,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.quantity import Quantity, parse_quantity

_PLACES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_OWN_PLACES = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
    "true in the ResourceSlice spec"
)
_NO_PLACES = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the "
    "ResourceSlice spec"
)
_ONE_VALUE = "exactly one value must be specified"
_LONGEST_KEY = 63 + 1 + 32
_LISTS = ("bools", "ints", "strings", "versions")
_VALUES = ("bool", "int", "string", "version", *_LISTS)
_NUMBER = r"(0|[1-9][0-9]*)"
_BEFORE_RELEASE = r"(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
# Python's ``re`` is safe here: the pattern is ours, and texts are short before it looks.
_SEMANTIC_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_BEFORE_RELEASE}(\.{_BEFORE_RELEASE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"
)


def device_slice(value: Json, path: str, old: Json | None = None) -> Errors:
    """A slice, next to the stored one where there is one."""
    del path
    spec, before = struct(value, "spec") or {}, struct(old or {}, "spec")
    yield from csi_driver_name(spec.get("driver"), "spec.driver")
    yield from _pool(struct(spec, "pool") or {}, "spec.pool")
    if before is not None:
        for keys in (("pool", "name"), ("driver",), ("nodeName",)):
            now, was, place = lookup(spec, *keys), lookup(before, *keys), ".".join(("spec", *keys))
            yield from checks.immutable(now, place, was, pointer=keys == ("nodeName",))
    own_places = spec.get("perDeviceNodeSelection")
    found = yield from _nodes(
        spec, "spec", "must be either unset or set to a non-empty string", one_term=True
    )
    if own_places:
        found.append("`perDeviceNodeSelection`")
    elif own_places is False:
        yield invalid_value("spec.perDeviceNodeSelection", False, "must be either unset or set to true")
    yield from _only_one(found, "spec", _PLACES, f"{_PLACES}, but multiple fields are set")
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        yield invalid_value("spec", "", "only one of `sharedCounters` or `devices` is allowed")

    def device(item: Json, at: str) -> Errors:
        stored = next(
            (each for each in items(before or {}, "devices") if each.get("name") == item.get("name")), None
        )
        yield from _device(item, at, stored, bool(own_places))

    most = 64 if any(_is_advanced(each) for each in items(spec, "devices")) else 128
    yield from distinct(
        spec.get("devices"), "spec.devices", most, device, lambda each: each.get("name") or ""
    )
    yield from distinct(
        spec.get("sharedCounters"),
        "spec.sharedCounters",
        8,
        lambda item, at: _counters(item, at, "name"),
        lambda each: each.get("name") or "",
    )


def _is_advanced(device: Json) -> bool:
    lists = any(each.get(key) is not None for _, each in named(device, "attributes") for key in _LISTS)
    return bool(device.get("taints") or device.get("consumesCounters") or lists)


def _pool(pool: Json, path: str) -> Errors:
    yield from pool_name(pool.get("name"), f"{path}.name")
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        yield invalid_value(f"{path}.resourceSliceCount", count, "must be greater than zero")
    if generation < 0:
        yield invalid_value(f"{path}.generation", generation, "must be greater than or equal to zero")


def _nodes(
    holder: Json, path: str, no_name: str, *, one_term: bool = False
) -> Generator[FieldError, None, list[str]]:
    """Where devices are. Returns which fields say so."""
    found = []
    node, selector, everywhere = holder.get("nodeName"), holder.get("nodeSelector"), holder.get("allNodes")
    if node:
        found.append("`nodeName`")
        yield from checks.each_fault(node, f"{path}.nodeName", "dns-subdomain")
    elif node is not None:
        yield invalid_value(f"{path}.nodeName", node, no_name)
    if selector is not None:
        found.append("`nodeSelector`")
        yield from node_selector(selector, f"{path}.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if one_term and len(terms or ()) != 1:
            detail = "must have exactly one node selector term"
            yield invalid_value(f"{path}.nodeSelector.nodeSelectorTerms", terms, detail)
    if everywhere:
        found.append("`allNodes`")
    elif everywhere is not None:
        yield invalid_value(f"{path}.allNodes", False, "must be either unset or set to true")
    return found


def _only_one(found: list[str], path: str, none: str, several: str) -> Errors:
    if not found:
        yield required_error(path, none)
    elif len(found) > 1:
        yield invalid_value(path, f"{{{', '.join(found)}}}", several)


def _counters(holder: Json, path: str, key: str) -> Errors:
    """A set of counters, or what a device takes of one."""
    yield from checks.name(holder.get(key), f"{path}.{key}", "dns-label")
    counters = holder.get("counters") or {}
    if not counters:
        yield required_error(f"{path}.counters")
    elif len(counters) > 32:
        yield too_many(f"{path}.counters", len(counters), 32)
    else:
        for name in counters:
            yield from label(name, f"{path}.counters")


def _device(value: Json, path: str, old: Json | None, own_places: bool) -> Errors:
    yield from label(value.get("name"), f"{path}.name")
    attributes, capacity = value.get("attributes") or {}, value.get("capacity") or {}
    if len(attributes) + len(capacity) > 32:
        detail = "the total number of attributes and capacities must not exceed 32"
        yield invalid_value(path, len(attributes) + len(capacity), detail)
    count = sum(max(1, sum(len(each.get(key) or ()) for key in _LISTS)) for each in attributes.values())
    if count > 48:
        yield invalid_value(path, count, "the total number of attribute values must not exceed 48")
    yield from _by_name(attributes, f"{path}.attributes", _attribute)
    shared = value.get("allowMultipleAllocations")
    yield from _by_name(capacity, f"{path}.capacity", _shared_capacity if shared else _whole_capacity)
    if old is None or (old.get("taints") or []) != (value.get("taints") or []):
        yield from limited(value.get("taints"), f"{path}.taints", 16, taint)
    yield from distinct(
        value.get("consumesCounters"),
        f"{path}.consumesCounters",
        2,
        lambda item, at: _counters(item, at, "counterSet"),
        lambda each: each.get("counterSet") or "",
    )
    if own_places:
        found = yield from _nodes(value, path, "must not be empty")
        yield from _only_one(found, path, _OWN_PLACES, _OWN_PLACES)
    elif any(value.get(key) is not None for key in ("nodeName", "nodeSelector", "allNodes")):
        yield invalid_value(path, None, _NO_PLACES)
    yield from binding(value, path)
    for name, mapping in named(value, "nodeAllocatableResourceMappings"):
        place = f"{path}.nodeAllocatableResourceMappings[{name}]"
        yield from _mapping(name, mapping, place, capacity)


def _by_name(value: Json, path: str, check: Check) -> Errors:
    for key, item in value.items():
        yield from attribute_name(key, path)
        yield from check(item, f"{path}[{_shortened(key)}]")


def _shortened(key: str) -> str:
    if len(key) <= _LONGEST_KEY:
        return key
    left = _LONGEST_KEY - 3
    return f"{key[: (left + 1) // 2]}...{key[len(key) - left // 2 :]}"


def _attribute(value: Json, path: str) -> Errors:
    texts: tuple[tuple[str, Callable[[str, str], Errors]], ...] = (("string", _text), ("version", _version))
    for key, check in texts:
        if value.get(key) is not None:
            yield from check(value[key], f"{path}.{key}")
    for key in _LISTS:
        if value.get(key) == []:
            yield invalid_value(f"{path}.{key}", [], "must not be empty if specified")
    for key, check in texts:
        for index, text in enumerate(value.get(f"{key}s") or ()):
            yield from check(text, f"{path}.{key}s[{index}]")
    count = sum(value.get(key) is not None for key in _VALUES)
    if count != 1:
        yield invalid_value(path, value if count else "", _ONE_VALUE)


def _text(value: str, path: str) -> Errors:
    if len(value.encode()) > 64:
        yield too_long(path, 64)


def _version(value: str, path: str) -> Errors:
    if len(value) > 4096 or not _SEMANTIC_VERSION.fullmatch(value):
        yield invalid_value(path, value, "must be a string compatible with semver.org spec 2.0.0")
    yield from _text(value, path)


def _whole_capacity(value: Json, path: str) -> Errors:
    if value.get("requestPolicy") is not None:
        yield forbidden(f"{path}.requestPolicy", "allowMultipleAllocations must be true")


def _shared_capacity(value: Json, path: str) -> Errors:
    policy, most = struct(value, "requestPolicy"), _quantity(value.get("value"))
    if policy is None or most is None:
        return
    at, chosen = f"{path}.requestPolicy", _quantity(policy.get("default"))
    choices, span = policy.get("validValues") or [], struct(policy, "validRange")
    if choices and span is not None:
        detail = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        yield forbidden(at, detail)
    elif choices and chosen is None:
        yield required_error(f"{at}.default", "required when validValues is defined")
    elif choices and chosen is not None:
        parsed = [each for each in map(_quantity, choices) if each is not None]
        yield from _choices(parsed, chosen, most, f"{at}.validValues")
    elif span is not None and chosen is None:
        yield required_error(f"{at}.default", "required when validRange is defined")
    elif span is not None and chosen is not None:
        yield from _span(span, chosen, most, f"{at}.validRange")


def _quantity(value: Any) -> Quantity | None:
    try:
        return None if value is None else parse_quantity(str(value))
    except ValueError:
        return None


def _choices(choices: list[Quantity], chosen: Quantity, most: Quantity, path: str) -> Errors:
    for index in range(1, len(choices)):
        if choices[index - 1].value > choices[index].value:
            detail = "values must be sorted in ascending order"
            yield invalid_value(f"{path}[{index}]", str(choices[index]), detail)
    if len(choices) > 10:
        yield too_many(path, len(choices), 10)
        return
    seen = set()
    for index, choice in enumerate(choices):
        if choice.value > most.value:
            detail = f"option is larger than capacity value: {most}"
            yield invalid_value(f"{path}[{index}]", str(choice), detail)
        whole = _whole(choice.value)
        if whole in seen:
            yield duplicate(f"{path}[{index}]", str(whole))
        seen.add(whole)
    if all(choice.value != chosen.value for choice in choices):
        yield invalid_value(path, str(chosen), "default value is not valid according to the requestPolicy")


def _whole(value: Fraction) -> int:
    return -int(-value // 1)


def _span(span: Json, chosen: Quantity, most: Quantity, path: str) -> Errors:
    least, highest, step = (_quantity(span.get(key)) for key in ("min", "max", "step"))
    if least is None:
        yield required_error(f"{path}.min", "required when validRange is defined")
        return
    if least.value > most.value:
        yield invalid_value(f"{path}.min", str(least), f"min is larger than capacity value: {most}")
    if chosen.value < least.value:
        yield invalid_value(f"{path}.min", str(chosen), f"default is less than min: {least}")
    if highest is not None:
        if least.value > highest.value:
            yield invalid_value(f"{path}.max", str(least), f"min is larger than max: {highest}")
        if highest.value > most.value:
            yield invalid_value(f"{path}.max", str(highest), f"max is larger than capacity value: {most}")
        if chosen.value > highest.value:
            yield invalid_value(f"{path}.max", str(chosen), f"default is more than max: {highest}")
    if step is not None and step.value:
        added = Quantity(least.value + step.value, least.form)
        if added.value > most.value:
            detail = f"one step {added} is larger than capacity value: {most}"
            yield invalid_value(f"{path}.step", str(step), detail)
        for each in (chosen, highest):
            if each is not None and (_whole(each.value) - _whole(least.value)) % _whole(step.value):
                detail = f"value is not a multiple of a given step ({step}) from ({least})"
                yield invalid_value(f"{path}.step", str(each), detail)


def _mapping(name: str, value: Json, path: str, capacity: Json) -> Errors:
    if not is_native(name):
        yield invalid_value(path, name, "must be a node allocatable resource name")
    factor, key = value.get("allocationMultiplier"), value.get("capacityKey")
    if factor is None and key is None:
        yield invalid_value(path, "", "at least one of allocationMultiplier or capacityKey must be set")
    parsed = _quantity(factor)
    if parsed is not None and parsed.value <= 0:
        yield invalid_value(f"{path}.allocationMultiplier", str(parsed), "must be positive")
    if key == "":
        yield invalid_value(f"{path}.capacityKey", "", "capacityKey must not be an empty string")
    elif key is not None and key not in capacity:
        yield checks.not_found(f"{path}.capacityKey", key)


def taint_rule(value: Json, path: str, old: Json | None = None) -> Errors:
    """A rule that taints the devices that it selects."""
    del path
    selector = lookup(value, "spec", "deviceSelector") or {}
    place = "spec.deviceSelector"
    for key, check in (("driver", csi_driver_name), ("pool", pool_name), ("device", label)):
        if selector.get(key) is not None:
            yield from check(selector[key], f"{place}.{key}")
    yield from taint(lookup(value, "spec", "taint") or {}, "spec.taint", lookup(old, "spec", "taint"))


def taint_rule_status(value: Json, path: str, old: Json) -> Errors:
    """What became of a rule."""
    del path, old
    status = struct(value, "status") or {}
    yield from conditions(status, "status.conditions")
    count = sum(1 for _ in numbered(status, "conditions"))
    if count > 8:
        yield too_many("status.conditions", count, 8)
