"""Checks of API services: group-versions that another server may serve."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from apimachinery.kinds.checks import Errors
from apimachinery.kinds.fields import (
    Json,
    lookup,
    struct,
)
from apimachinery.meta.field_errors import invalid_value

_STATUSES = ("True", "False", "Unknown")


def name(value: Json, path: str) -> Errors:
    """An API service is named after its version and group."""
    spec = struct(value, "spec") or {}
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    given = lookup(value, "metadata", "name") or ""
    if given != wanted:
        detail = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        yield invalid_value(f"{path}metadata.name", given, detail)


def local_bundle(value: Any, path: str) -> Errors:
    """What this server serves by itself needs no certificates; the fault shows how many bytes of them there are."""
    if value:
        yield invalid_value(path, f"{_size(value)} bytes", "local APIServices may not have a caBundle")


def _size(encoded: str) -> int:
    """How many bytes base64 holds; 0 for what is none, which decoders refuse."""
    try:
        return len(b64decode(encoded))
    except ValueError:
        return 0
