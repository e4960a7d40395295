"""What a patch is refused with, and the text of the object that a refusal shows."""

from __future__ import annotations

from json import dumps
from typing import Any

from apimachinery.merge.errors import MergeError
from apimachinery.meta.errors import ApiError, Cause
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.server.catalog.hooks import Json
from apimachinery.wire import json


def translated(error: MergeError) -> ApiError:
    """A failed merge as the API says it."""
    causes = tuple(Cause(c.reason, c.message, c.field) for c in error.causes)
    has_details = error.reason in ("Conflict", "Invalid")
    return ApiError(error.code, error.reason, error.message, causes=causes, has_details=has_details)


def copied(obj: Json) -> Json:
    """An object that shares nothing with another."""
    made: Json = json.decode(json.encode(obj))
    return made


def encoded(value: Any) -> str:
    """A value as refusals show it: JSON."""
    return dumps(value, ensure_ascii=False, separators=(",", ":"))


def patch_fault(shown: str, why: str) -> ApiError:
    """422 with the field ``patch``: ``shown`` is the object or patch that cannot be read as the kind."""
    return invalid("", "", "", [invalid_value("patch", shown, why)])
