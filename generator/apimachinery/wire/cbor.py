"""CBOR as Kubernetes speaks it (KEP-4222): JSON values to and from self-described CBOR.

What is written begins with the self-described tag (55799); text is written as byte strings, which is what keys and
values of Go strings are there; keys are in order of their bytes. Read are byte strings and text strings alike, with
the tag or without. What JSON has no word for (undefined, other tags, keys that are no strings) is refused.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

import cbor2

from apimachinery.wire.json import DecodeFault

SELF_DESCRIBED: Final = 55799
MAX_DEPTH: Final = 64
MANY_ITEMS: Final = 200
_TAG: Final = b"\xd9\xd9\xf7"
_ARRAY, _MAP = 0x80, 0xA0


def decode(data: bytes) -> Any:
    """The value of a CBOR document. Raises DecodeFault."""
    if not data:
        raise DecodeFault("EOF")
    stream = io.BytesIO(data)
    try:
        value = cbor2.CBORDecoder(stream, max_depth=MAX_DEPTH).decode()
    except cbor2.CBORDecodeEOF:
        raise DecodeFault("unexpected EOF") from None
    except cbor2.CBORDecodeError as fault:
        if "break code" in str(fault):
            raise DecodeFault('cbor: unexpected "break" code') from None
        raise DecodeFault(f"cbor: {fault}") from None
    except (RecursionError, MemoryError, OverflowError, ValueError, TypeError) as fault:
        raise DecodeFault(f"cbor: {fault}") from None
    left = len(data) - stream.tell()
    if left:
        raise DecodeFault(f"cbor: {left} bytes of extraneous data starting at index {stream.tell()}")
    return _plain(value)


def encode(value: Any) -> bytes:
    """The self-described CBOR of a JSON value."""
    items = value.get("items") if isinstance(value, Mapping) else None
    if not isinstance(items, list) or len(items) < MANY_ITEMS:
        return _TAG + cbor2.dumps(_strings_as_bytes(value), canonical=True)
    # The encoder holds the interpreter until it is done, so a long list goes to it item by item.
    parts = [_TAG, _head(_MAP, len(value))]
    for key in sorted(value, key=lambda key: (len(key.encode()), key.encode())):
        parts.append(_encoded(key))
        if key != "items":
            parts.append(_encoded(value[key]))
        else:
            parts.append(_head(_ARRAY, len(items)))
            parts.extend(map(_encoded, items))
    return b"".join(parts)


def _encoded(value: Any) -> bytes:
    data: bytes = cbor2.dumps(_strings_as_bytes(value), canonical=True)
    return data


def _head(major: int, length: int) -> bytes:
    """The first bytes of a map or array (RFC 8949 section 3), in their shortest form."""
    if length < 24:
        return bytes((major | length,))
    for extra, size in ((24, 1), (25, 2), (26, 4)):
        if length < 1 << 8 * size:
            return bytes((major | extra,)) + length.to_bytes(size, "big")
    return bytes((major | 27,)) + length.to_bytes(8, "big")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            raise DecodeFault("cbor: invalid UTF-8 string") from None
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        # JSON shows a whole float without a fraction, and objects are kept in JSON.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, Mapping):
        plain = {_plain(key): _plain(item) for key, item in value.items()}
        for key in plain:
            if not isinstance(key, str):
                raise DecodeFault(f"cbor: cannot unmarshal {_named(key)} into Go value of type string")
        return plain
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    raise DecodeFault(f"cbor: cannot unmarshal {type(value).__name__} into Go value of type interface {{}}")


def _named(key: Any) -> str:
    if isinstance(key, bool):
        return "primitives"
    return "negative integer" if isinstance(key, int) and key < 0 else "positive integer"


def _strings_as_bytes(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, Mapping):
        return {key.encode(): _strings_as_bytes(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strings_as_bytes(item) for item in value]
    return value


def type_name(value: Any) -> str:
    """What kube-apiserver calls a value's type where a map was wanted."""
    if isinstance(value, str):
        return "UTF-8 text string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, bool) or value is None:
        return "primitives"
    if isinstance(value, int):
        return "negative integer" if value < 0 else "positive integer"
    return "primitives"
