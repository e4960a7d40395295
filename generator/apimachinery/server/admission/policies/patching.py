"""What mutating policies and webhooks share: how a changed object is checked and taken, and how a JSON patch fails."""

from __future__ import annotations

from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.merge import json_patch
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.meta.errors import internal
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.policies.request_values import at_version, from_version
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form
from apimachinery.wire.json import type_name


def is_of_own_kind(operation: Operation) -> bool:
    """Whether an operation's object is of the kind of its resource: a Scale, a Binding and an Eviction are not."""
    obj, served = operation.obj or {}, operation.target.served
    return operation.target.shown_as is None and (obj.get("kind") or served.kind) == served.kind


def shown(operation: Operation) -> Json:
    """An operation's object as who may change it sees it, with its kind."""
    found = at_version(operation, operation.target.served, operation.obj)
    assert found is not None, "what has no object is not changed"
    return found


def take(operation: Operation, changed: Any, before: Json, served: Served | None = None) -> None:
    """Makes ``changed``, which was ``before``, the operation's object: what the kind does not know goes, defaults are
    filled in. ``served`` is the version of both, by default that of the request. Raises ApiError 500 for what is none
    of its kind any more."""
    obj, own = operation.obj, operation.target.served
    assert obj is not None
    version = own if served is None else served
    _check_form(changed, before, version, typed=is_of_own_kind(operation))
    if operation.target.takes is not None:
        operation.target.takes(obj, changed)
        return
    if not is_of_own_kind(operation):
        obj.clear()
        obj.update(changed)
        return
    owners = obj["metadata"].get("managedFields")
    changed = from_version(operation, version, changed)
    own.compiled.schema.prune(changed)
    finish_form(changed, own)
    obj.clear()
    obj.update(changed)
    _keep_owners(operation, owners)


def _check_form(changed: Any, before: Json, served: Served, *, typed: bool) -> None:
    if not isinstance(changed, dict):
        raise internal(
            f"json: cannot unmarshal {type_name(changed)} into Go value of type map[string]interface {{}}"
        )
    # What a patch of the whole leaves out is filled in, as everywhere that a kind is known.
    for key in ("apiVersion", "kind"):
        changed[key] = changed.get(key) or before.get(key)
    if any(changed[key] != before.get(key) for key in ("apiVersion", "kind")):
        raise internal(
            f'no kind "{changed["kind"]}" is registered for version "{changed["apiVersion"]}" in scheme '
            '"pkg/api/legacyscheme/scheme.go:30"'
        )
    if typed and (fault := served.compiled.schema.decode_fault(changed)):
        raise internal(fault)


def _keep_owners(operation: Operation, before: Any) -> None:
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
