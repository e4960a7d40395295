"""What mutating policies and webhooks share: how a changed object is checked and taken, and how a JSON patch fails."""

from __future__ import annotations

from typing import Any

from apimachinery.merge import json_patch
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.meta.errors import internal
from apimachinery.server.admission.interface import Operation
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form
from apimachinery.wire.json import type_name


def take(operation: Operation, changed: Json) -> None:
    """Makes ``changed`` the operation's object: what the kind does not know goes, defaults are filled in."""
    obj, served = operation.obj, operation.target.served
    assert obj is not None
    served.compiled.schema.prune(changed)
    finish_form(changed, served)
    obj.clear()
    obj.update(changed)


def check_form(changed: Any, served: Served, *, typed: bool = True) -> None:
    """Sees to it that a changed object is still one of its kind; not ``typed``: a call's, whose kind is its own.

    Raises ApiError 500.
    """
    if not isinstance(changed, dict):
        raise internal(
            f"json: cannot unmarshal {type_name(changed)} into Go value of type map[string]interface {{}}"
        )
    if not typed:
        return
    api_version, kind = changed.get("apiVersion"), changed.get("kind")
    # What a patch of the whole leaves out is filled in, as everywhere that a kind is known.
    changed["apiVersion"] = api_version or served.api_version
    changed["kind"] = kind or served.kind
    if (changed["apiVersion"], changed["kind"]) != (served.api_version, served.kind):
        raise internal(
            f'no kind "{kind}" is registered for version "{api_version}" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"'
        )
    if fault := served.compiled.schema.decode_fault(changed):
        raise internal(fault)


def keep_owners(operation: Operation, before: Any) -> None:
    """Nobody's field is lost to who spoils managedFields: the client is warned, and they stay as they were."""
    obj = operation.obj
    assert obj is not None
    after = obj.setdefault("metadata", {}).get("managedFields")
    fault = "" if after == before else _owners_fault(after or ())
    if not fault:
        return
    obj["metadata"]["managedFields"] = before
    operation.warn(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated "
        f"mutating admission controller; please fix your requests: {fault}"
    )


def _owners_fault(entries: Any) -> str:
    for number, entry in enumerate(entries):
        if entry.get("operation") not in ("Apply", "Update"):
            return "operation must be `Apply` or `Update`"
        if not entry.get("apiVersion"):
            return "apiVersion must not be empty"
        if (fields_type := entry.get("fieldsType") or "") != "FieldsV1":
            word = f'invalid fieldsType "{fields_type}"' if fields_type else "missing fieldsType"
            return f"{word} in managed fields entry {number}"
    return ""


def patch_fault(document: Any, operations: list[Json], failed: JsonPatchFailed) -> str:
    """Why an operation of a patch cannot be done, in the words of kube-apiserver's JSON patch library."""
    before = json_patch.apply(document, operations[: failed.operation])
    return _why(before, operations[failed.operation])


def _why(document: Any, operation: Json) -> str:
    word, path = str(operation.get("op")), str(operation.get("path") or "")
    if word not in _OPERATIONS:
        return f"Unexpected kind: {word}"
    if word == "test":
        return f"testing value {path} failed: test failed"
    if word in ("move", "copy") and _found(document, str(operation.get("from") or "")) is _MISSING:
        return f"{word} operation does not apply: doc is missing from path: {operation.get('from')}: missing value"
    parent, _, key = path.rpartition("/")
    held = _found(document, parent)
    if not isinstance(held, (dict, list)):
        shown = path if word == "replace" else f'"{path}"'
        return f"{word} operation does not apply: doc is missing path: {shown}: missing value"
    if isinstance(held, list):
        return f"error in {word} for path: '{path}': Unable to access invalid index: {key}: invalid index referenced"
    if word == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    return f"error in {word} for path: '{path}': Unable to remove nonexistent key: {key}: missing value"


_OPERATIONS = frozenset({"add", "copy", "move", "remove", "replace", "test"})
_MISSING = object()


def _found(document: Any, path: str) -> Any:
    held = document
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(held, dict):
            held = held.get(name, _MISSING)
        elif isinstance(held, list) and name.isdigit() and int(name) < len(held):
            held = held[int(name)]
        else:
            return _MISSING
    return held
