"""Values of single fields and maps: between JSON and what the protobuf library holds."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from google.protobuf.message import Message

from apimachinery.meta.times import instant, utc_text
from apimachinery.wire.durations import duration_text, nanoseconds
from apimachinery.wire.protobuf_faults import ProtobufFault

_MAY_BE_FALSE: Final = frozenset(
    {"x-kubernetes-preserve-unknown-fields", "default", "example", "additionalProperties", "additionalItems"}
)


def without_zeros(schema: Any) -> Any:
    """A schema within a schema without the empty texts and false flags that its struct leaves out. No definition says
    what is in such a place, so the typed form of the whole does not reach there."""
    if isinstance(schema, list):
        return [without_zeros(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if (value == "" or value is False) and key not in _MAY_BE_FALSE:
            continue
        if key in ("properties", "patternProperties", "definitions"):
            kept[key] = {name: without_zeros(each) for name, each in value.items()}
        elif key in ("allOf", "anyOf", "oneOf", "not"):
            kept[key] = without_zeros(value)
        else:
            kept[key] = value
    return kept


def _same(value: Any) -> Any:
    return value


def text_of(value: Any) -> str:
    """A string field; the library gives bytes for what is not UTF-8, which becomes U+FFFD, as when Go writes JSON."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")


class KeysBegin(Exception):
    """One key of a map begins with another."""


def check_keys(value: Mapping[str, Any]) -> None:
    """Raises KeysBegin."""
    if len(value) > 1:
        before = "\x00"
        for key in sorted(value):
            if key.startswith(before):
                raise KeysBegin
            before = key or "\x00"


def in_map(message: Message, attribute: str, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The messages of a map, with what they are to hold. Raises KeysBegin."""
    check_keys(value)
    target = getattr(message, attribute)
    for key, item in value.items():
        yield target[key], item


def in_entries(message: Message, attribute: str, value: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The _same, of a map that is written entry by entry."""
    target = getattr(message, attribute)
    for key in sorted(value):
        yield target.add(key=key, value={}).value, value[key]


def _to_bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError, TypeError):
        raise ProtobufFault("illegal base64 data") from None


def _read_raw(found: Any) -> Any:
    try:
        return json.loads(found.raw) if found.raw else {}
    except (ValueError, RecursionError):
        raise ProtobufFault("raw extension is not JSON") from None


def _fill_raw(target: Any, value: Any) -> None:
    target.raw = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _fill_duration(target: Any, value: Any) -> None:
    target.duration = nanoseconds(value)


def _fill_text(target: Any, value: Any) -> None:
    target.string = str(value)


def _fill_int_or_string(target: Any, value: Any) -> None:
    if isinstance(value, str):
        target.type, target.intVal, target.strVal = 1, 0, value
    else:
        target.type, target.intVal, target.strVal = 0, value, ""


def _read_instant(found: Any, digits: int) -> str | None:
    if not found.HasField("seconds"):
        return None
    text = utc_text(found.seconds)
    return f"{text}.{found.nanos // 1000:06d}Z" if digits else f"{text}Z"


def _fill_instant(target: Any, value: Any) -> None:
    moment = instant(str(value))
    if moment is None:
        raise ProtobufFault(f"{value!r} is no time")
    target.seconds, target.nanos = moment


Reader: TypeAlias = Callable[[Any], Any]
Filler: TypeAlias = Callable[[Any, Any], None]
MESSAGES: Final[dict[str, tuple[Reader, Filler]]] = {
    ".k.Raw": (_read_raw, _fill_raw),
    ".k.Text": (lambda found: text_of(found.string), _fill_text),
    ".k.Duration": (lambda found: duration_text(found.duration), _fill_duration),
    ".k.Strings": (
        lambda found: [*map(text_of, found.items)],
        lambda target, value: target.items.extend(value),
    ),
    ".k.IntOrString": (
        lambda found: text_of(found.strVal) if found.type else found.intVal,
        _fill_int_or_string,
    ),
}
"""How messages that are one value in JSON are read and filled."""


def instant_codec(digits: int) -> tuple[Reader, Filler]:
    """The same of a time with so many digits of its second."""
    return lambda found: _read_instant(found, digits), _fill_instant


_SCALARS: Final[dict[str, tuple[Reader, Reader, Any]]] = {
    "bytes": (lambda found: base64.b64encode(found).decode("ascii"), _to_bytes, b""),
    "double": (_same, float, 0),
    "string": (text_of, _same, ""),
    "bool": (_same, _same, False),
}


def scalar_codec(kind: str) -> tuple[Reader, Reader, Any]:
    """How a scalar is read, how it is made for a message, and what null is in lists and maps of them."""
    return _SCALARS.get(kind, (_same, _same, 0))
