"""Which records are objects at all: what is stored is input, whoever wrote it.

A record that is none is kept from everybody who reads, and is named with the reason, so that one bad record stops
nothing but the reads that it belongs to. What is checked here holds for every kind; what a kind wants of its fields
only the API knows.
"""

from __future__ import annotations

from typing import Any

import msgspec

from apimachinery.storage.interface import Record

MAX_DEPTH = 200
"""How deep an object may nest: more than any schema, less than a walk in Python takes."""


class _Owner(msgspec.Struct):
    apiVersion: str = ""  # noqa: N815
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    blockOwnerDeletion: bool | None = None  # noqa: N815


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str  # noqa: N815
    creationTimestamp: str  # noqa: N815
    namespace: str | None = None
    generateName: str | None = None  # noqa: N815
    generation: int | None = None
    deletionTimestamp: str | None = None  # noqa: N815
    deletionGracePeriodSeconds: int | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815
    finalizers: list[str] | None = None
    managedFields: list[dict[str, Any]] | None = None  # noqa: N815


class _Object(msgspec.Struct):
    apiVersion: str  # noqa: N815
    kind: str
    metadata: _Metadata


_read = msgspec.json.Decoder(_Object).decode
_decode = msgspec.json.Decoder().decode


def record_fault(record: Record) -> str:
    """Why a record is no object of its key; empty of a good one."""
    try:
        obj = _read(record.value)
        record.value.decode()
        if record.value.count(b"{") + record.value.count(b"[") > MAX_DEPTH:
            _check_depth(_decode(record.value))
    except RecursionError:
        return f"it nests deeper than {MAX_DEPTH} levels"
    except (msgspec.MsgspecError, ValueError) as fault:
        return str(fault)
    if not obj.kind:
        return "it has no kind"
    metadata = obj.metadata
    place = record.key.split("/", 3)[3]
    if place != (f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name):
        return f"it says that it is {metadata.namespace or ''}/{metadata.name}"
    for part in (metadata.name, metadata.namespace or "x", metadata.uid):
        if (
            part in ("", ".", "..")
            or not part.isprintable()
            or not part.isascii()
            or "/" in part
            or "%" in part
        ):
            return f"it has an impossible name or uid: {part[:40]!a}"
    if metadata.resourceVersion != str(record.revision):
        return f"it says that it is of revision {metadata.resourceVersion[:40]}"
    return ""


def _check_depth(value: Any) -> None:
    """Raises RecursionError; needs none itself."""
    depth, level = 0, [value]
    while level:
        depth += 1
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        level = below
        if depth > MAX_DEPTH:
            raise RecursionError
