"""Nodes: taints, blocks of addresses for their pods, what they can do and what they are configured by."""

from __future__ import annotations

import json
import re
from typing import Any

from apimachinery.kinds import checks
from apimachinery.kinds.checks import Errors
from apimachinery.kinds.core.pod_resources import amount
from apimachinery.kinds.fields import (
    Json,
    lookup,
    numbered,
    struct,
)
from apimachinery.meta import addresses
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.printing import InOrder

_AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# Python's ``re`` is safe here: the pattern is ours and linear.
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_FORM = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def node(value: Json, path: str) -> Errors:
    """A new node."""
    del path
    yield from _any_node(value)
    yield from _new_blocks(value)
    capacity = lookup(value, "status", "nodeInfo", "swap", "capacity")
    if capacity is not None and capacity <= 0:
        yield invalid_value("metadata.nodeSwapStatus.capacity", capacity, "must be greater than zero")


def _any_node(value: Json) -> Errors:
    """What holds of new and changed nodes. Taints are named by their old place, as kube-apiserver does."""
    avoided = lookup(value, "metadata", "annotations", _AVOID)
    if avoided:
        yield from _avoided(avoided, "metadata.annotations")
    yield from taints(lookup(value, "spec", "taints"), "metadata.taints")
    status = struct(value, "status") or {}
    for key in ("capacity", "allocatable"):
        for name, quantity in (struct(status, key) or {}).items():
            yield from amount(name, quantity, f"status.{key}.{name}")
    yield from _features(status.get("declaredFeatures") or [], "status.declaredFeatures")


def _new_blocks(value: Json) -> Errors:
    yield from _blocks(lookup(value, "spec", "podCIDRs") or [], "spec.podCIDRs")


def _avoided(text: str, path: str) -> Errors:
    """The annotation with which a node avoids pods of some controllers, from before there were taints."""
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        yield invalid_value(f"{path}.AvoidPods", _AVOID, "must be JSON")
        return
    for index, entry in numbered(read if isinstance(read, dict) else {}, "preferAvoidPods"):
        place = f"{path}.{_AVOID}[{index}].PodSignature"
        controller = struct(entry, "podSignature", "podController")
        if controller is None:
            yield required_error(place)
        elif not controller.get("controller"):
            yield invalid_value(f"{place}.PodController.Controller", False, "must point to a controller")


def taints(value: Any, path: str) -> Errors:
    """Taints of a node: one for each key and effect."""
    seen = set()
    for index, taint in numbered({"taints": value}, "taints"):
        place, key, effect = f"{path}[{index}]", taint.get("key") or "", taint.get("effect") or ""
        yield from checks.each_fault(key, f"{place}.key", "qualified-name")
        yield from checks.string_format(taint.get("value"), f"{place}.value", "label-value")
        if not effect:
            yield required_error(f"{place}.effect")
        elif effect not in _EFFECTS:
            yield not_supported(f"{place}.effect", effect, _EFFECTS)
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value") or "", "Effect": effect, "TimeAdded": None}
            detail = "taints must be unique by key and effect pair"
            yield FieldError(Reason.DUPLICATE, place, detail, InOrder(shown))
        seen.add((key, effect))


def _features(features: list[str], path: str) -> Errors:
    for index, feature in enumerate(features):
        if len(feature) > 253:
            detail = f'invalid feature name "{feature}": must be no more than 253 characters'
            yield invalid_value(f"{path}[{index}]", feature, detail)
        elif not _FEATURE.fullmatch(feature):
            detail = f'invalid feature name "{feature}": {_FEATURE_FORM}'
            yield invalid_value(f"{path}[{index}]", feature, detail)
        if index and features[index - 1] == feature:
            yield duplicate(f"{path}[{index}]", feature)
        elif index and features[index - 1] > feature:
            yield invalid_value(f"{path}[{index}]", feature, "list must be sorted alphabetically")


def _blocks(blocks: list[str], path: str) -> Errors:
    """Blocks of addresses for pods: one, or one of each family."""
    for index, text in enumerate(blocks):
        yield from checks.each_fault(text, f"{path}[{index}]", "cidr")
    if len(blocks) > 1:
        parsed = [addresses.parse_cidr(text) for text in blocks]
        bad = next((index for index, each in enumerate(parsed) if each is None), None)
        if bad is not None:
            detail = (
                "invalid PodCIDRs. failed to check with dual stack with "
                f"error:invalid CIDR[{bad}]: <nil> (invalid CIDR address: {blocks[bad]})"
            )
            yield checks.internal_error(path, detail)
        families = {each.network.version for each in parsed if each is not None}
        if bad is not None or len(blocks) > 2 or families != {4, 6}:
            yield invalid_value(path, blocks, "may specify no more than one CIDR for each IP family")


def node_update(value: Json, path: str, old: Json) -> Errors:
    """What of a node stays once it is said: its blocks of addresses, and what its provider calls it."""
    del path
    yield from _any_node(value)
    yield from _addresses(value)
    spec, before = struct(value, "spec") or {}, struct(old, "spec") or {}
    blocks, kept = spec.get("podCIDRs") or [], before.get("podCIDRs") or []
    detail = 'node updates may not change podCIDR except from "" to valid'
    if kept and len(kept) != len(blocks):
        yield forbidden("spec.podCIDRs", detail)
    elif kept:
        for now, was in zip(blocks, kept, strict=True):
            if now != was:
                yield forbidden("spec.podCIDRs", detail)
    if before.get("providerID") and before["providerID"] != spec.get("providerID"):
        detail = 'node updates may not change providerID except from "" to valid'
        yield forbidden("spec.providerID", detail)
    if (source := struct(spec, "configSource")) is not None:
        yield from _source(source, "spec.configSource", known=False)
    config = struct(value, "status", "config") or {}
    for key in ("assigned", "active", "lastKnownGood"):
        if (source := struct(config, key)) is not None:
            yield from _source(source, f"status.config.{key}", known=True)
    if (spec.get("externalID") or "") != (before.get("externalID") or ""):
        yield forbidden("spec.externalID", "may not be updated")


def _addresses(value: Json) -> Errors:
    seen = []
    for index, each in numbered(struct(value, "status") or {}, "addresses"):
        shown = InOrder({"Type": each.get("type") or "", "Address": each.get("address") or ""})
        if shown in seen:
            yield duplicate(f"status.addresses[{index}]", shown)
        seen.append(shown)


def _source(source: Json, path: str, *, known: bool) -> Errors:
    """Where a node's configuration is; which version of it, a status knows and a spec does not."""
    config, place = struct(source, "configMap"), f"{path}.configMap"
    if config is None:
        yield invalid_value(path, source, "exactly one reference subfield must be non-nil")
        return
    for key in ("uid", "resourceVersion"):
        if known and not config.get(key):
            yield required_error(f"{place}.{key}")
        elif not known and config.get(key):
            yield forbidden(f"{place}.{key}", f"{key} must not be set in spec")
    yield from checks.name(config.get("namespace"), f"{place}.namespace", "dns-label")
    yield from checks.name(config.get("name"), f"{place}.name", "dns-subdomain")
    yield from checks.name(config.get("kubeletConfigKey"), f"{place}.kubeletConfigKey", "config-key")
