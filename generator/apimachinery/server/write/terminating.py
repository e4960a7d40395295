"""Whether an object is being deleted, what holds it, and which update lets it go."""

from __future__ import annotations

import msgspec

from apimachinery.kinds.hooks import Json
from apimachinery.storage.interface import Record


def finishes_deletion(new: Json, old: Json) -> bool:
    """Whether an update takes away the last thing that a deletion waits for."""
    before = old["metadata"]
    if "deletionTimestamp" not in before or before.get("deletionGracePeriodSeconds"):
        return False
    return not new["metadata"].get("finalizers") and not held_by_spec(new)


def held_by_spec(obj: Json) -> bool:
    """Whether a namespace's own finalizers (``spec.finalizers``) hold it."""
    return (
        obj.get("kind") == "Namespace"
        and obj.get("apiVersion") == "v1"
        and bool((obj.get("spec") or {}).get("finalizers"))
    )


class _Deletion(msgspec.Struct):
    deletionTimestamp: str | None = None  # noqa: N815


class _Deleting(msgspec.Struct):
    metadata: _Deletion


_read_deleting = msgspec.json.Decoder(_Deleting).decode


def is_deleting(record: Record) -> bool:
    """Whether a record's object is being deleted."""
    return _read_deleting(record.value).metadata.deletionTimestamp is not None
