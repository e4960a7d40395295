"""JSON values to CEL values by their schema.

Most schemas need nothing: JSON is CEL's data already, and ``converter`` returns None. Bytes, durations, dates,
doubles written as integers and lists of type set or map become what their schema says. A text that is not of its
format stays a text.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.cel.schemas.schema_types import with_object_meta
from apimachinery.cel.values.errors import EvalError
from apimachinery.cel.values.values import Duration, KeyedList, SetList, Timestamp

Convert = Callable[[Any], Any]


def converter(schema: Mapping[str, Any], is_root: bool = False) -> Convert | None:
    """What makes CEL values of the values of ``schema``, or None if they are such already."""
    if schema.get("x-kubernetes-int-or-string"):
        return _whole
    if is_root:
        schema = with_object_meta(schema)
    kind = schema.get("type")
    if kind == "string":
        form = schema.get("format")
        return _FORMATS.get(form) if isinstance(form, str) else None
    if kind == "number":
        return _double
    if kind == "integer":
        return _whole
    if kind == "array":
        return _list_converter(schema)
    if kind == "object":
        return _object_converter(schema)
    return None


def _list_converter(schema: Mapping[str, Any]) -> Convert | None:
    items = schema.get("items")
    item = (
        converter(items, bool(items.get("x-kubernetes-embedded-resource")))
        if isinstance(items, Mapping)
        else None
    )
    if item is _whole and isinstance(items, Mapping):
        item = _whole
    how = schema.get("x-kubernetes-list-type")
    if how == "set":
        return _guard(list, lambda found: SetList([item(x) for x in found] if item else found))
    if how == "map":
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return _guard(list, lambda found: KeyedList([item(x) for x in found] if item else found, keys))
    if item is None or item is _whole:
        return None
    return _guard(list, lambda found: [item(x) for x in found])


def _guard(kind: type, convert: Convert) -> Convert:
    return lambda value: convert(value) if isinstance(value, kind) else value


def _object_converter(schema: Mapping[str, Any]) -> Convert | None:
    values = schema.get("additionalProperties")
    if isinstance(values, Mapping):
        each = converter(values, bool(values.get("x-kubernetes-embedded-resource")))
        if each is None or each is _whole:
            return None
        return _guard(dict, lambda found: {key: each(value) for key, value in found.items()})
    fields: dict[str, Convert] = {}
    for name, sub in (schema.get("properties") or {}).items():
        if isinstance(sub, Mapping):
            convert = converter(sub, bool(sub.get("x-kubernetes-embedded-resource")))
            if convert is not None and convert is not _whole:
                fields[name] = convert
    if not fields:
        return None

    def record(found: dict[str, Any]) -> dict[str, Any]:
        changed = dict(found)
        for name, convert in fields.items():
            value = changed.get(name)
            if value is not None:
                changed[name] = convert(value)
        return changed

    return _guard(dict, record)


def _whole(value: Any) -> Any:
    """An integer: nothing to do except for a whole number written with a fraction at the top of a value."""
    return int(value) if type(value) is float and value.is_integer() else value


def _double(value: Any) -> Any:
    return float(value) if type(value) is int and abs(value) < 2**1000 else value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else value
    except (binascii.Error, ValueError):
        return value


_LONG_UNITS = {"d": 24, "day": 24, "days": 24, "w": 168, "wk": 168, "week": 168, "weeks": 168}
_LONG_DURATION = re.compile(r"\s*(\d+)\s*(d|days?|w|wk|weeks?)\s*", re.ASCII)


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        span = Duration.parse(value)
        found = _LONG_DURATION.fullmatch(value) if span is None else None
        if found:
            span = Duration(int(found[1]) * _LONG_UNITS[found[2]] * 3600 * 10**9)
    except EvalError:
        return value
    return value if span is None else span


def _date(value: Any) -> Any:
    stamp = Timestamp.parse(value + "T00:00:00Z") if isinstance(value, str) else None
    return value if stamp is None else stamp


def _date_time(value: Any) -> Any:
    stamp = Timestamp.parse(value.replace("t", "T").replace("z", "Z")) if isinstance(value, str) else None
    return value if stamp is None else stamp


_FORMATS: dict[str, Convert] = {"byte": _bytes, "duration": _duration, "date": _date, "date-time": _date_time}
