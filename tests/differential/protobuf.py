"""Protobuf without descriptors for reading, with the project's own for writing.

Answers of both servers are read by their wire form alone, so that nothing of the project judges itself: a message is
a mapping of field numbers to lists of values. What is text is told by looking: printable bytes are a string.
"""

from __future__ import annotations

import functools
from typing import Any

MAGIC = b"k8s\x00"


def decode(raw: bytes) -> Any:
    """An answer: one enveloped message, or a row of frames of them (a watch)."""
    if raw[:4] == MAGIC:
        return {"protobuf": _message(raw[4:])}
    frames, place = [], 0
    while place + 4 <= len(raw):
        size = int.from_bytes(raw[place : place + 4], "big")
        frames.append(_value(raw[place + 4 : place + 4 + size]))
        place += 4 + size
    return {"frames": frames}


def _value(raw: bytes) -> Any:
    if raw[:4] == MAGIC:
        return {"protobuf": _message(raw[4:])}
    if all(32 <= byte < 127 for byte in raw):
        return raw.decode()
    try:
        return _message(raw)
    except (ValueError, IndexError):
        pass
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"hex": raw.hex()}


def _message(raw: bytes) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    place = 0
    while place < len(raw):
        key, place = _varint(raw, place)
        number, kind = key >> 3, key & 7
        if not number:
            raise ValueError("field 0")
        value: Any
        if kind == 0:
            value, place = _varint(raw, place)
        elif kind == 2:
            size, place = _varint(raw, place)
            if place + size > len(raw):
                raise ValueError("cut short")
            value, place = _value(raw[place : place + size]), place + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            if place + size > len(raw):
                raise ValueError("cut short")
            value, place = {"fixed": raw[place : place + size].hex()}, place + size
        else:
            raise ValueError("wire type")
        found.setdefault(f"{number}", []).append(value)
    # A field that has its zero value and one that is missing read the same.
    for number in [
        number for number, values in found.items() if all(value in ("", 0, {}) for value in values)
    ]:
        del found[number]
    # A time is seconds (and no nanoseconds that count): what differs from run to run.
    if set(found) <= {"1", "2"} and len(found.get("1", [])) == 1 and isinstance(found["1"][0], int):
        if 1_700_000_000 < found["1"][0] < 4_000_000_000:
            return {"1": ["<time>"]}
    return found


def _varint(raw: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = raw[place]
        place += 1
        value |= (byte & 127) << shift
        if not byte & 128:
            return value, place
        shift += 7
        if shift > 63:
            raise ValueError("varint")


@functools.cache
def _messages() -> Any:
    import json
    from pathlib import Path

    import kubernetes_api
    from apimachinery.wire.protobuf import Messages
    from kubernetes_api.protobuf import FIELD_NUMBERS

    definitions = json.loads((Path(kubernetes_api.__file__).parent / "definitions.json").read_text())
    return Messages(definitions.get("definitions", definitions), FIELD_NUMBERS)


def encode(body: Any) -> bytes:
    """An object of a built-in kind, enveloped; what has no protobuf form goes as an empty message of its name."""
    try:
        return bytes(_messages().encode(body))
    except Exception:  # drawn bodies may have any form; both servers get the same bytes
        return envelope(str(body.get("apiVersion", "")), str(body.get("kind", "")), b"")


def envelope(api_version: str, kind: str, raw: bytes, content_type: str = "") -> bytes:
    """``raw`` in the envelope that the media type asks for."""
    meta = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, meta) + field(2, raw) + (field(4, content_type.encode()) if content_type else b"")


def field(number: int, raw: bytes) -> bytes:
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def varint(value: int) -> bytes:
    """A varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
