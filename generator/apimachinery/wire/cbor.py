"""CBOR as Kubernetes speaks it (KEP-4222): JSON values to and from self-described CBOR.

What is written begins with the self-described tag (55799); text is written as byte strings, which is what keys and
values of Go strings are there; keys are in order of their bytes. Read are byte strings and text strings alike, with
the tag or without. Tagged times become texts, bytes that wait for a later encoding get it, and other tags pass
unseen. What JSON has no word for is refused: NaN, infinities, integers past 64 bits, simple values, other keys
than strings, and keys that come twice.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import cbor2

from apimachinery.meta.times import SECONDS_LAYOUT, parse_fault, reformatted
from apimachinery.wire.cbor_items import first_repeated, form_fault
from apimachinery.wire.json import DecodeFault, InnerFault

MAX_DEPTH: Final = 64
MANY_ITEMS: Final = 200
_TAG: Final = b"\xd9\xd9\xf7"  # 55799, self-described
_LATER_BASE64: Final = 22
_ARRAY, _MAP = 0x80, 0xA0
_REFUSED: Final = "cbor: data item of cbor type {} is not accepted by protocol: {}"
_INTO: Final = "cbor: cannot unmarshal {} into Go value of type {}"


class _Tagged:
    """A tagged item, whose tag means something here."""

    __slots__ = ("content", "number")

    def __init__(self, number: int, content: Any):
        self.number = number
        self.content = content


def _marked(number: int) -> Callable[[Any, bool], _Tagged]:
    return lambda content, immutable: _Tagged(number, content)


def _bare(content: Any, immutable: bool) -> Any:
    return content


# Tags that cbor2 would make Python objects of; all others come to ``tag_hook``.
_MEANT: Final = (0, 1, 2, 3, 21, 22, 23)
_KNOWN: Final = (4, 5, 25, 28, 29, 30, 35, 36, 37, 43000, 52, 54, 100, 256, 258, 260, 261, 1004)
_SEMANTICS: Final = {number: _marked(number) for number in _MEANT} | dict.fromkeys(_KNOWN, _bare)


def decode(data: bytes) -> Any:
    """The value of a CBOR document. Raises DecodeFault, for what is wrong inside an object whose kind can be read
    InnerFault."""
    if not data:
        raise DecodeFault("EOF")
    stream = io.BytesIO(data)
    decoder = _decoder(stream, exact=True)
    try:
        value = decoder.decode()
    except cbor2.CBORDecodeError as fault:
        # cbor2 names the first thing that it cannot use; Go checks first that all of it is well-formed.
        if (wrong := form_fault(data)) is not None:
            raise DecodeFault(wrong) from None
        return _again(data, _worded(str(fault)))
    except (RecursionError, MemoryError, OverflowError, ValueError, TypeError) as fault:
        raise DecodeFault(f"cbor: {fault}") from None
    # Bytes behind the document make it malformed for Go.
    if stream.tell() < len(data) and (wrong := form_fault(data)) is not None:
        raise DecodeFault(wrong)
    return _plain(value)


def _decoder(stream: io.BytesIO, *, exact: bool) -> cbor2.CBORDecoder:
    return cbor2.CBORDecoder(
        stream,
        max_depth=MAX_DEPTH,
        allow_duplicate_keys=not exact,
        str_errors="strict" if exact else "replace",
        semantic_decoders=_SEMANTICS,
        tag_hook=lambda tag, immutable: tag.value,
    )


def _again(data: bytes, fault: str) -> Any:
    """A document that ``fault`` is said of, read without heed of keys that come twice and of text that is not UTF-8:
    the kind is read first, and bad keys of a struct are no more than unknown fields. Raises DecodeFault, InnerFault."""
    stream = io.BytesIO(data)
    try:
        value = _plain(_decoder(stream, exact=False).decode())
    except (cbor2.CBORDecodeError, RecursionError, MemoryError, OverflowError, ValueError, TypeError):
        raise DecodeFault(fault) from None
    # A key that cannot be read might have been the apiVersion or kind.
    if not isinstance(value, dict) or any("\ufffd" in key for key in value):
        raise DecodeFault(fault)
    if "duplicate" in fault and (found := first_repeated(data)) is not None:
        depth, name, place = found
        fault = f'cbor: found duplicate map key "{name}" at map element index {place}'
        if depth == 0:
            raise DecodeFault(fault)
    elif not _has_replaced(value):
        return value
    api_version, kind = value.get("apiVersion", ""), value.get("kind", "")
    if not isinstance(api_version, str) or not isinstance(kind, str) or "\ufffd" in api_version + kind:
        raise DecodeFault(fault)
    raise InnerFault(fault, api_version, kind)


def _has_replaced(value: Any) -> bool:
    if isinstance(value, dict):
        return any("\ufffd" in key for key in value) or any(map(_has_replaced, value.values()))
    if isinstance(value, list):
        return any(map(_has_replaced, value))
    return isinstance(value, str) and "\ufffd" in value


def _worded(fault: str) -> str:
    """A fault of cbor2 in the words of the library that Kubernetes reads with."""
    if "Duplicate map key" in fault:
        key = fault.rpartition(": ")[2].removeprefix("b")
        return (
            f'cbor: found duplicate map key "{key[1:-1]}"'
            if key[:1] in "'\""
            else f"cbor: found duplicate map key {key}"
        )
    if "decoding text string" in fault:
        return "cbor: invalid UTF-8 string"
    return f"cbor: {fault}"


def type_at(data: bytes, path: Iterable[str], json_type: str) -> str:
    """What the decoder calls the string or number at a path of a good document; lists on the way are gone through."""
    places: list[Any] = [_decoder(io.BytesIO(data), exact=False).decode()]
    for name in path:
        inner = [
            each[key]
            for each in places
            if isinstance(each, Mapping)
            for key in (name, name.encode())
            if key in each
        ]
        places = [item for each in inner for item in (each if isinstance(each, list | tuple) else [each])]
    wanted: Any = str | bytes if json_type == "string" else int | float
    found = next((each for each in places if isinstance(each, wanted) and not isinstance(each, bool)), None)
    if found is None:
        return "UTF-8 text string" if json_type == "string" else "positive integer"
    return "byte string" if isinstance(found, bytes) else type_name(found)


def text_strings(data: bytes, paths: Collection[tuple[str, ...]]) -> Iterator[str]:
    """Those of ``paths`` (``*`` is any key or index) where a good document has a text string, by their first name."""
    document = _decoder(io.BytesIO(data), exact=False).decode()

    def texts(value: Any, path: tuple[str, ...]) -> Iterator[Any]:
        if not path:
            yield value
        elif path[0] != "*" and isinstance(value, Mapping):
            # A key is a byte string or a text string.
            for key in (path[0], path[0].encode()):
                if key in value:
                    yield from texts(value[key], path[1:])
        elif path[0] == "*":
            items = (
                value.values()
                if isinstance(value, Mapping)
                else value
                if isinstance(value, list | tuple)
                else ()
            )
            for item in items:
                yield from texts(item, path[1:])

    for path in paths:
        if any(isinstance(value, str) for value in texts(document, path)):
            yield path[0]


class Binary(str):
    """Base64 text that CBOR shows as the bytes themselves, tagged so that JSON gets base64 again."""


def mark_binary(value: Any, path: tuple[str, ...]) -> None:
    """Makes the base64 texts at a path (``*`` is any key or index) ``Binary``, in place."""
    *above, last = path
    places = [value]
    for name in above:
        if name == "*":
            inner = [(p.values() if isinstance(p, dict) else p) for p in places if isinstance(p, dict | list)]
            places = [each for some in inner for each in some]
        else:
            places = [p[name] for p in places if isinstance(p, dict) and p.get(name) is not None]
    for place in places:
        if isinstance(place, dict):
            for key in list(place) if last == "*" else [last]:
                if isinstance(place.get(key), str):
                    place[key] = Binary(place[key])
        elif isinstance(place, list) and last == "*":
            place[:] = [Binary(each) if isinstance(each, str) else each for each in place]


def encode(value: Any) -> bytes:
    """The self-described CBOR of a JSON value."""
    items = value.get("items") if isinstance(value, Mapping) else None
    if not isinstance(items, list) or len(items) < MANY_ITEMS:
        return _TAG + _encoded(value)
    return b"".join(encode_list(value, items, len(items)))


def encode_list(
    value: Mapping[str, Any], items: Iterable[Any], count: int, member: str = "items"
) -> Iterator[bytes]:
    """The same of a list with ``count`` items, which are its ``member``. The encoder holds the interpreter until it is
    done, so they go to it one by one."""
    yield _TAG + _head(_MAP, len(value))
    # Deterministic: shorter keys first, then by bytes (RFC 8949 section 4.2.3).
    for key in sorted(value, key=lambda key: (len(key.encode()), key.encode())):
        yield _encoded(key)
        if key != member:
            yield _encoded(value[key])
        else:
            yield _head(_ARRAY, count)
            yield from map(_encoded, items)


def _encoded(value: Any) -> bytes:
    if _is_wide(value):
        return b"".join(_in_steps(value, STEPS_DEPTH))
    data: bytes = cbor2.dumps(_strings_as_bytes(value), canonical=True)
    return data


STEP = 1_000
"""So many members of a map or array are encoded at once..."""
STEPS_DEPTH = 4
"""...where they lie no deeper than this."""


def _is_wide(value: Any, depth: int = STEPS_DEPTH) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(members) > STEP or (
        depth > 0 and any(_is_wide(each, depth - 1) for each in members if isinstance(each, dict | list))
    )


def _in_steps(value: Any, depth: int) -> Iterator[bytes]:
    if not depth or not isinstance(value, dict | list):
        yield cbor2.dumps(_strings_as_bytes(value), canonical=True)
    elif isinstance(value, list):
        yield _head(_ARRAY, len(value))
        if len(value) > STEP:
            for low in range(0, len(value), STEP):
                part = value[low : low + STEP]
                # The head of the part is left out: the whole map has one of its own.
                yield cbor2.dumps(_strings_as_bytes(part), canonical=True)[len(_head(_ARRAY, len(part))) :]
        else:
            for each in value:
                yield from _in_steps(each, depth - 1)
    else:
        yield _head(_MAP, len(value))
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        if len(keys) > STEP:
            for low in range(0, len(keys), STEP):
                some = {key: value[key] for key in keys[low : low + STEP]}
                yield cbor2.dumps(_strings_as_bytes(some), canonical=True)[len(_head(_MAP, len(some))) :]
        else:
            for key in keys:
                yield cbor2.dumps(_strings_as_bytes(key), canonical=True)
                yield from _in_steps(value[key], depth - 1)


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
        return _text(value)
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int):
        # JSON numbers of kube-apiserver end at 64 bits; CBOR's do not.
        if not -(2**63) <= value < 2**63:
            wrong = f"{value} overflows Go's int64"
            raise DecodeFault(f"{_INTO.format(type_name(value), 'int64')} ({wrong})")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            kind = "NaN" if math.isnan(value) else "infinity"
            raise DecodeFault(_REFUSED.format("primitives", f"floating-point {kind}"))
        # JSON shows a whole float without a fraction, and objects are kept in JSON.
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, _Tagged):
        return _tagged(value)
    number = 23 if value is cbor2.undefined else getattr(value, "value", None)
    raise DecodeFault(_REFUSED.format("primitives", f"simple value {number} is not recognized"))


def _text(value: bytes) -> str:
    """A byte string as a text: each byte that is not UTF-8 becomes U+FFFD, as it does when Go writes JSON."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        read = value.decode("utf-8", "surrogateescape")
        return "".join("\ufffd" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in read)


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for place, (key, item) in enumerate(value.items()):
        name = key if isinstance(key, str) else _text(key) if isinstance(key, bytes) else None
        if name is None:
            raise DecodeFault(_INTO.format(type_name(_plain(key)), "string"))
        if name in found:
            raise DecodeFault(f'cbor: found duplicate map key "{name}" at map element index {place}')
        found[name] = _plain(item)
    return found


def _tagged(value: _Tagged) -> Any:
    number, content = value.number, value.content
    if number in (2, 3):
        raise DecodeFault(_REFUSED.format("tag", "bignum"))
    plain = _plain(content)
    if number == 0:
        return _stated_time(plain)
    if number == 1:
        return _unix_time(content if isinstance(content, float) else plain)
    if not isinstance(content, bytes):
        return plain
    if number == 21:
        return base64.urlsafe_b64encode(content).decode().rstrip("=")
    return base64.b64encode(content).decode() if number == 22 else content.hex()


def _stated_time(text: Any) -> str:
    if not isinstance(text, str):
        raise DecodeFault(_INTO.format(type_name(text), "time.Time"))
    if (fault := parse_fault(text, SECONDS_LAYOUT)) is not None:
        raise DecodeFault(f"cbor: cannot set text for time.Time: {fault}")
    return reformatted(text)


def _unix_time(seconds: Any) -> str:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise DecodeFault(_INTO.format(type_name(seconds), "time.Time"))
    fraction, whole = math.modf(seconds) if isinstance(seconds, float) else (0.0, seconds)
    nanos = int(fraction * 1e9)
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(whole) + nanos // 10**9)
    except OverflowError:
        raise DecodeFault(
            "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: "
            "Time.MarshalText: year outside of range [0,9999]"
        ) from None
    # As Go's RFC3339Nano: no zeros at the end of a fraction.
    rest = f".{nanos % 10**9:09d}".rstrip("0").rstrip(".")
    return f"{moment:%Y-%m-%dT%H:%M:%S}{rest}Z".rjust(20 + len(rest), "0")


def _strings_as_bytes(value: Any) -> Any:
    if isinstance(value, Binary):
        return cbor2.CBORTag(_LATER_BASE64, base64.b64decode(value))
    if isinstance(value, str):
        # surrogatepass: half of a surrogate pair is written as it was sent.
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, Mapping):
        return {key.encode(): _strings_as_bytes(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strings_as_bytes(item) for item in value]
    return value


def type_name(value: Any) -> str:
    """What kube-apiserver calls a value's type where another was wanted."""
    if isinstance(value, str):
        return "UTF-8 text string"
    if isinstance(value, list):
        return "array"
    if isinstance(value, dict):
        return "map"
    if isinstance(value, int) and not isinstance(value, bool):
        return "negative integer" if value < 0 else "positive integer"
    return "primitives"
