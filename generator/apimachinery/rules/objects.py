"""Checks of configuration, storage, quota and node objects that compare several places."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    NO_VALUE,
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid_value,
    not_supported,
    too_long,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.meta.quantity import parse_quantity
from apimachinery.rules import checks
from apimachinery.rules.fields import Json, lookup, numbered, struct

Errors = Iterator[FieldError]

MAX_DATA_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_POD_QUOTA = ("cpu", "memory", "limits.cpu", "limits.memory", "pods", "requests.cpu", "requests.memory")
_SCOPES = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
)
_COUNTED = (
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
)
_QUOTA_NAMES = frozenset(
    {*_COUNTED, *_POD_QUOTA, "storage", "requests.storage", "ephemeral-storage"}
    | {"requests.ephemeral-storage", "limits.ephemeral-storage"}
)


def config_keys(value: Json, path: str) -> Errors:
    """Keys of a ConfigMap; none is in both ``data`` and ``binaryData``."""
    del path
    binary = struct(value, "binaryData") or {}
    for key in sorted(struct(value, "data") or {}):
        for detail in names.config_key_faults(key):
            yield invalid_value(f"data[{key}]", key, detail)
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        for detail in names.config_key_faults(key):
            yield invalid_value(f"binaryData[{key}]", key, detail)


def data_size(value: Json, path: str) -> Errors:
    """A ConfigMap or Secret holds 1 MiB at most."""
    total = sum(
        len(text.encode("utf-8", "surrogatepass"))
        for text in (struct(value, "data") or {}).values()
        if isinstance(text, str)
    )
    if value.get("kind") == "Secret":
        total = total * 3 // 4
        path = "data"
    else:
        path = "[]"  # the empty path, as kube-apiserver prints it
        total += sum(
            len(text) * 3 // 4
            for text in (struct(value, "binaryData") or {}).values()
            if isinstance(text, str)
        )
    if total > MAX_DATA_BYTES:
        yield too_long(path, MAX_DATA_BYTES)


def immutable_data(value: Json, path: str, old: Json) -> Errors:
    """What is marked ``immutable`` stays, and stays marked."""
    del path
    if old.get("immutable") is not True:
        return
    if value.get("immutable") is not True:
        yield forbidden("immutable", _IMMUTABLE)
    for field in ("data", "binaryData"):
        if (value.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, _IMMUTABLE)


def secret_of_type(value: Json, path: str) -> Errors:
    """What secrets of the built-in types must hold."""
    del path
    kind, data = value.get("type"), struct(value, "data") or {}
    if kind == "kubernetes.io/service-account-token":
        annotation = "kubernetes.io/service-account.name"
        if not lookup(value, "metadata", "annotations", annotation):
            yield required_error(f"metadata.annotations[{annotation}]")
    elif kind == "kubernetes.io/basic-auth" and "username" not in data and "password" not in data:
        yield required_error("data[username]")
        yield required_error("data[password]")
    for key in _SECRET_KEYS.get(str(kind), ()):
        if key not in data:
            yield required_error(f"data[{key}]")
        elif key.startswith(".docker"):
            yield from _json_text(data[key], f"data[{key}]")


def _json_text(value: Any, path: str) -> Errors:
    try:
        json.loads(base64.b64decode(value))
    except (ValueError, TypeError, RecursionError):
        yield invalid_value(path, "<secret contents redacted>", "must be JSON")


def namespace_finalizers(value: Any, path: str) -> Errors:
    """Finalizers in a namespace's spec are standard ones or qualified by a domain."""
    for text in value if isinstance(value, list) else ():
        if not isinstance(text, str):
            continue
        faults = names.qualified_name_faults(text)
        for detail in faults:
            yield invalid_value(path, text, detail)
        if not faults and "/" not in text and text not in _FINALIZERS:
            yield invalid_value(
                path, text, "name is neither a standard finalizer name nor is it fully qualified"
            )


def limit_types(value: Any, path: str) -> Errors:
    """Each type of a limit range once; within one, minimum ≤ default request ≤ default ≤ maximum."""
    seen = set()
    for index, limit in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(limit, dict):
            continue
        place = f"{path}[{index}]"
        kind = limit.get("type", "")
        yield from checks.string_format(kind, f"{place}.type", "qualified-name")
        if kind in seen:
            yield duplicate(f"{place}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for key in ("default", "defaultRequest"):
                if limit.get(key):
                    yield forbidden(f"{place}.{key}", "may not be specified when `type` is 'Pod'")
        yield from _ordered_limits(limit, place)


_ORDER = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)


def _ordered_limits(limit: Json, path: str) -> Errors:
    for name in sorted(
        {name for key in ("min", "max", "default", "defaultRequest") for name in struct(limit, key) or {}}
    ):
        for low, high, place, text in _ORDER:
            try:
                less, more = (parse_quantity(str(lookup(limit, key, name))) for key in (low, high))
            except ValueError:
                continue
            if less.value > more.value:
                yield invalid_value(
                    f"{path}.{place}[{name}]", str(lookup(limit, place, name)), text.format(less, more)
                )


def quota_hard(value: Any, path: str) -> Errors:
    """What a quota counts: standard names or qualified ones, whole numbers of objects."""
    for name, amount in value.items() if isinstance(value, dict) else ():
        place = f"{path}[{name}]"
        faults = names.qualified_name_faults(name)
        for detail in faults:
            yield invalid_value(place, name, detail)
        plain = "/" not in name and not name.startswith(("requests.hugepages-", "hugepages-"))
        if not faults and plain and name not in _QUOTA_NAMES:
            yield invalid_value(place, name, "must be a standard resource type or fully qualified")
            yield invalid_value(place, name, "must be a standard resource for quotas")
        yield from checks.quantity(amount, place)
        try:
            whole = parse_quantity(str(amount)).value.denominator == 1
        except ValueError:
            continue
        if not whole and (name in _COUNTED or name.startswith("count/")):
            yield invalid_value(place, str(amount), "must be an integer")


def quota_scopes(value: Any, path: str, hard: Any = None) -> Errors:
    """Scopes of a quota fit what it counts, and each other."""
    if not isinstance(value, list):
        return
    for scope in value:
        if scope not in _SCOPES:
            yield invalid_value(path, value, "unsupported scope")
        counted = ("pods",) if scope == "BestEffort" else _POD_QUOTA
        for name in hard if isinstance(hard, dict) else ():
            if name in _QUOTA_NAMES and name not in counted:
                yield invalid_value(path, value, "unsupported scope applied to resource")
    for pair in (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating")):
        if set(pair) <= set(value):
            yield invalid_value(path, value, "conflicting scopes")


def taints(value: Any, path: str) -> Errors:
    """Taints of a node: one for each key and effect."""
    seen = set()
    for index, taint in numbered({"taints": value}, "taints"):
        place = f"{path}[{index}]"
        yield from checks.string_format(taint.get("key"), f"{place}.key", "qualified-name")
        yield from checks.string_format(taint.get("value"), f"{place}.value", "label-value")
        effect = taint.get("effect")
        if not effect:
            yield required_error(f"{place}.effect")
        elif effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            yield not_supported(f"{place}.effect", effect, ("NoExecute", "NoSchedule", "PreferNoSchedule"))
        pair = (taint.get("key"), effect)
        if pair in seen:
            yield FieldError(
                Reason.DUPLICATE, place, "taints must be unique by key and effect pair", NO_VALUE
            )
        seen.add(pair)


def exclusive(value: Json, path: str, fields: Sequence[str], detail: str, missing: str = "") -> Errors:
    """At most one of ``fields`` may be there; with ``missing``, exactly one."""
    chosen = [field for field in fields if value.get(field) is not None]
    if not chosen and missing:
        yield required_error(path, missing)
    if len(chosen) > 1:
        yield invalid_value(path, value, detail)
