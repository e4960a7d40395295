"""What mutating policies and webhooks share: how a changed object is taken, and how a JSON patch fails."""

from __future__ import annotations

from typing import Any

from apimachinery.merge import json_patch
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.server.admission.interface import Operation
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.request.bodies import finish_form


def take(operation: Operation, changed: Json) -> None:
    """Makes ``changed`` the operation's object: what the kind does not know goes, defaults are filled in."""
    obj, served = operation.obj, operation.target.served
    assert obj is not None
    served.compiled.schema.prune(changed)
    finish_form(changed, served)
    obj.clear()
    obj.update(changed)


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
