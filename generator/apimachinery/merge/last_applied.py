"""The last-applied-configuration annotation, by which client-side apply hands over to server-side apply.

Only the manager named ``kubectl`` takes part: what the annotation says, and the live object still has, may be
changed without conflict; and after an apply the annotation, where it exists, follows what was applied.
"""

from __future__ import annotations

import json
from typing import Any, Final

from apimachinery.merge.field_set import FieldSet, difference
from apimachinery.merge.schema import JsonObject
from apimachinery.merge.typed import MergeType, Misfit, compare_objects

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
MANAGER: Final = "kubectl"
_ANNOTATIONS_LIMIT: Final = 256 * 1024


def _annotations(obj: JsonObject) -> Any:
    metadata = obj.get("metadata")
    return metadata.get("annotations") if isinstance(metadata, dict) else None


def recorded(obj: JsonObject) -> str:
    """The annotation's text, empty where there is none."""
    annotations = _annotations(obj)
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    return text if isinstance(text, str) else ""


def unchanged_since(live: JsonObject, type_: MergeType, api_version: str) -> FieldSet | None:
    """The fields of the annotation that ``live`` still has as they were applied; None without a usable
    one."""
    text = recorded(live)
    if not text:
        return None
    try:
        applied = json.loads(text)
        # An annotation of another version says nothing about these fields.
        if not isinstance(applied, dict) or applied.get("apiVersion") != api_version:
            return None
        fields = type_.owned(applied) or {}
        # What others have changed since is theirs, and stays in conflict.
        delta = compare_objects(type_, applied, live)
    except (ValueError, RecursionError, Misfit):
        return None
    for changed in delta:
        fields = difference(fields, changed or {})
    return fields


def follow(obj: JsonObject, applied: JsonObject) -> JsonObject:
    """``obj`` with its annotation, where it has one, saying what was applied."""
    if not recorded(obj):
        return obj
    annotations = _annotations(applied)
    # The annotation must not contain itself.
    if isinstance(annotations, dict):
        kept = {key: text for key, text in annotations.items() if key != ANNOTATION}
        applied = {**applied, "metadata": {**applied["metadata"], "annotations": kept}}
    changed = {**_annotations(obj), ANNOTATION: _go_json(applied)}
    # The limit of all annotations together; without the annotation the apply still succeeds.
    if sum(len(key.encode()) + len(str(text).encode()) for key, text in changed.items()) > _ANNOTATIONS_LIMIT:
        del changed[ANNOTATION]
    return {**obj, "metadata": {**obj["metadata"], "annotations": changed}}


def _go_json(value: JsonObject) -> str:
    """JSON as kube-apiserver's encoder writes an object: sorted keys, HTML escaped, and a line end."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text + "\n"
