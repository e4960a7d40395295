"""What a patch is refused with, and the text of the object that a refusal shows."""

from __future__ import annotations

from collections.abc import Callable
from json import dumps
from typing import Any

from apimachinery.kinds.hooks import Json
from apimachinery.merge.errors import MergeError
from apimachinery.meta.errors import ApiError, Cause
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.meta.printing import html_escaped
from apimachinery.wire import json


def translated(error: MergeError) -> ApiError:
    """A failed merge as the API says it."""
    causes = tuple(Cause(c.reason, c.message, c.field) for c in error.causes)
    has_details = error.reason in ("Conflict", "Invalid")
    return ApiError(error.code, error.reason, error.message, causes=causes, has_details=has_details)


STEPS_DEPTH = 8
"""Below this a large object is copied at once: no field of an API with many entries lies deeper."""


def copied(obj: Json, *, large: bool = False, exact: bool = False) -> Json:
    """An object that shares nothing with another. A ``large`` one is copied a value at a time: the codec would hold
    the interpreter for all of it. Doubles without a fraction become integers, unless it is to be ``exact``."""
    made: Json
    if large:
        made = _copied_in_steps(obj, STEPS_DEPTH, json.encode if exact else json.encode_as_go)
    else:
        made = json.decode(json.encode(obj)) if exact else json.copied_as_go(obj)
    return made


def _copied_in_steps(value: Any, depth: int, encode: Callable[[Any], bytes]) -> Any:
    kind = type(value)
    if kind is bool or value is None or (kind is str and value.isascii()):
        return value
    if depth and kind is dict and all(map(str.isascii, value)):
        return {key: _copied_in_steps(item, depth - 1, encode) for key, item in value.items()}
    if depth and kind is list:
        return [_copied_in_steps(item, depth - 1, encode) for item in value]
    return json.decode(encode(value))


def encoded(value: Any) -> str:
    """A value as refusals show it: JSON as Go writes it, which could stand in a page of HTML."""
    return html_escaped(dumps(value, ensure_ascii=False, separators=(",", ":")))


def patch_fault(shown: str, why: str) -> ApiError:
    """422 with the field ``patch``: ``shown`` is the object or patch that cannot be read as the kind."""
    return invalid("", "", "", [invalid_value("patch", shown, why)])
