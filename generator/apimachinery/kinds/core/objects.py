"""Checks of configuration, secrets and namespaces that compare several places."""

from __future__ import annotations

import base64
from typing import Any

from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    lookup,
    of_missing,
    struct,
)
from apimachinery.meta import names
from apimachinery.meta.field_errors import (
    forbidden,
    invalid_value,
    too_long,
)
from apimachinery.meta.field_errors import required as required_error
from apimachinery.wire.json import decode, syntax_fault, type_name

MAX_DATA_BYTES = 1024 * 1024
_IMMUTABLE = "field is immutable when `immutable` is set"
_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_SECRET_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


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


@of_missing
def revision_data(value: Any, path: str) -> Errors:
    """What a revision keeps is an object; which, nobody but its controller knows."""
    if value is None:
        yield required_error(path, "data is mandatory")
    elif not isinstance(value, dict):
        yield required_error(path, "data must be a valid JSON object")


def kept_data(value: Any, path: str, old: Any) -> Errors:
    """What a revision keeps stays; it is compared as it was written, so a null is not nothing."""
    if value != old:
        yield invalid_value(path, value, "field is immutable")


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
    """An object of JSON; the words are those of Go's decoder."""
    try:
        data = base64.b64decode(value)
    except (ValueError, TypeError):
        return
    fault = syntax_fault(data)
    if not fault and (decoded := decode(data)) is not None and not isinstance(decoded, dict):
        kind = type_name(decoded)
        fault = f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    if fault:
        yield invalid_value(path, "<secret contents redacted>", fault)


def namespace_finalizers(value: Any, path: str, old: Any = None, indexed: bool = False) -> Errors:
    """Finalizers in a namespace's spec are standard ones or qualified by a domain; the latter fault bears an index
    where they are replaced."""
    del old
    for index, text in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(text, str):
            continue
        place = f"{path}[{index}]" if indexed else path
        faults = names.qualified_name_faults(text)
        for detail in faults:
            yield invalid_value(place, text, detail)
        if "/" not in text and text not in _FINALIZERS:
            yield invalid_value(
                place, text, "name is neither a standard finalizer name nor is it fully qualified"
            )


def namespace_phase(value: Json, path: str, old: Any) -> Errors:
    """A namespace is active until it is deleted, and terminating from then on."""
    del path, old
    phase, deleted = lookup(value, "status", "phase"), lookup(value, "metadata", "deletionTimestamp")
    if deleted is None and phase not in (None, "", "Active"):
        yield invalid_value("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
    if deleted is not None and phase != "Terminating":
        detail = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        yield invalid_value("status.Phase", phase, detail)
