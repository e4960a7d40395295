"""JSON Merge Patch (RFC 7386): null deletes, objects merge, all else replaces."""

from __future__ import annotations

from typing import Any

from apimachinery.merge.errors import BadPatch
from apimachinery.merge.value import json_form, same


def apply(document: Any, patch: Any) -> Any:
    """The patched document, sharing what the patch does not touch with the given one.

    kube-apiserver takes only objects as patches. Raises ``BadPatch`` for any other.
    """
    if patch is None:
        raise BadPatch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise BadPatch(
            f"error decoding patch: json: cannot unmarshal {json_form(patch)} into Go value of type "
            "map[string]interface {}"
        )
    return _merge(document, patch)


def _merge(document: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    out = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merge(out.get(key), value)
    return out


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
