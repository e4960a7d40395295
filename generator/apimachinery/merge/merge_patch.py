"""JSON Merge Patch (RFC 7386): null deletes, objects merge, all else replaces."""

from __future__ import annotations

from typing import Any

from apimachinery.merge.errors import BadPatch, refuse_deep
from apimachinery.merge.value import json_form, same


@refuse_deep
def apply(document: Any, patch: Any, *, checked: bool = True) -> Any:
    """The patched document, sharing what the patch does not touch with the given one.

    kube-apiserver takes only objects as patches, and where it is not to look at fields (``checked`` is False) lists
    too, which then take the document's place. Raises ``BadPatch`` for any other.
    """
    # null is JSON, but no patch.
    if patch is None or not (checked or isinstance(patch, dict | list)):
        raise BadPatch("Invalid JSON Patch")
    if not checked and isinstance(patch, list):
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        raise BadPatch(
            f"error decoding patch: json: cannot unmarshal {json_form(patch)} into Go value of type "
            "map[string]interface {}"
        )
    return _merge(document, patch)


def _merge(document: Any, patch: Any) -> Any:
    if not isinstance(document, dict):
        # What a patch creates must have no nulls: they only ever mean deletion.
        return _without_nulls(patch)
    if not isinstance(patch, dict):
        return patch
    out = dict(document)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merge(out.get(key), value)
    return out


def _without_nulls(value: Any) -> Any:
    """A value that is new, without the null members of its objects, those in lists too.

    RFC 7386 leaves lists alone; kube-apiserver does only where a list takes the place of an object.
    """
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def create(original: Any, modified: Any) -> Any:
    """The merge patch from one document to another. Nulls of ``modified`` cannot be said, nor changes inside lists."""
    if not isinstance(original, dict) or not isinstance(modified, dict):
        return modified
    patch: dict[str, Any] = {}
    for key, value in modified.items():
        if key not in original:
            patch[key] = value
        elif not same(original[key], value):
            patch[key] = create(original[key], value)
    for key in original:
        if key not in modified:
            patch[key] = None
    return patch


def create_three_way(original: Any, modified: Any, current: Any) -> Any:
    """The merge patch that brings ``current`` to ``modified``, deleting what ``modified`` no longer has of
    ``original``: what client-side apply sends for kinds without strategic merge patch."""
    # What others added to the live object is neither in original nor in modified, and stays.
    wanted = _without_deletions(create(current, modified), modified)
    gone = _only_deletions(create(original, modified))
    return _joined(gone, wanted)


def _without_deletions(patch: Any, modified: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(modified, dict):
        return patch
    return {key: _without_deletions(value, modified[key]) for key, value in patch.items() if key in modified}


def _only_deletions(patch: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in patch.items() if isinstance(patch, dict) else ():
        if value is None:
            out[key] = None
        elif isinstance(value, dict) and (inner := _only_deletions(value)):
            out[key] = inner
    return out


def _joined(gone: dict[str, Any], wanted: Any) -> Any:
    if not isinstance(wanted, dict):
        return wanted
    out = dict(gone)
    for key, value in wanted.items():
        # A deletion inside an object survives only where that object is changed, not replaced.
        below = out.get(key)
        out[key] = _joined(below, value) if isinstance(below, dict) else value
    return out
