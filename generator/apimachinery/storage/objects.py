"""Stored objects without their resourceVersion, as they lie in etcd, where it is the revision of the key; and with it.

Theory. ``interface.Value`` comes with the place of the revision, so what is written costs two slices. What is read has
lost the place, and to find it by decoding every object would cost more than all else. Two patterns find it where
objects are written in one of the orders that are known:

- a struct's: kind, apiVersion, and a metadata that begins with the names and the uid, behind which it belongs;
- sorted keys: a metadata that ends with the uid, before which it belongs.

Anything else is taken apart at its two outer levels, all below them as it is.
"""

from __future__ import annotations

import re

import msgspec

from apimachinery.storage.interface import REVISION_MARK, StorageError, Value

_HEAD, _TAIL = b'"resourceVersion":"', b'"'
_TEXT = rb'"[^"\\]*"'
_STRUCT = re.compile(
    rb'\{"kind":%b,"apiVersion":%b,"metadata":\{'
    rb'((?:"name":%b,)?(?:"generateName":%b,)?(?:"namespace":%b,)?(?:"selfLink":%b,)?"uid":%b)'
    % ((_TEXT,) * 7)
)
_SORTED = re.compile(rb'\{"apiVersion":%b,"kind":%b,"metadata":' % (_TEXT, _TEXT))
_LAST_UID = re.compile(rb',"uid":"[^"\\]*"\}\Z')
_UID_WINDOW = 64
_STRUCT_ORDER = ("name", "generateName", "namespace", "selfLink", "uid")
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Outline(msgspec.Struct):
    metadata: msgspec.Raw


_decode_outline = msgspec.json.Decoder(_Outline).decode


class NotAnObject(StorageError):
    """Bytes that are no JSON object with metadata."""


def without_revision(value: Value) -> bytes:
    """What is stored of a value. Raises ValueError where its mark is not that of a resourceVersion."""
    head, tail = value.head, value.tail
    if not head.endswith(_HEAD) or not tail.startswith(_TAIL):
        raise ValueError("the revision mark of an object is its resourceVersion")
    head, tail = head[: -len(_HEAD)], tail[len(_TAIL) :]
    if tail.startswith(b","):
        return head + tail[1:]
    return head.removesuffix(b",") + tail


def with_revision(stored: bytes, revision: int) -> bytes:
    """A stored object as it is served at a revision. Raises NotAnObject."""
    match = _STRUCT.match(stored)
    if match is not None:
        end = match.end()
        return b'%b,"resourceVersion":"%d"%b' % (stored[:end], revision, stored[end:])
    match = _SORTED.match(stored)
    if match is not None:
        try:
            metadata = bytes(_decode_outline(stored).metadata)
        except msgspec.MsgspecError as fault:
            raise NotAnObject(str(fault)) from None
        start = match.end()
        end = start + len(metadata)
        low = max(start, end - _UID_WINDOW)
        uid = _LAST_UID.search(stored[low:end])
        if uid is not None and stored.startswith(metadata, start) and b'"selfLink"' not in metadata:
            place = low + uid.start()
            return b'%b,"resourceVersion":"%d"%b' % (stored[:place], revision, stored[place:])
    return _rebuilt(stored, b"%d" % revision)


def at_other_revision(served: bytes, revision: int) -> bytes:
    """A served object as of another revision. Raises NotAnObject."""
    return _rebuilt(served, b"%d" % revision)


def value_of(served: bytes) -> Value:
    """A served object as it can be stored again. Raises NotAnObject."""
    return Value.cut(_rebuilt(served, REVISION_MARK.encode()))


def _rebuilt(stored: bytes, version: bytes) -> bytes:
    try:
        fields = _decode_fields(stored)
        metadata = _decode_fields(fields["metadata"])
    except (msgspec.MsgspecError, KeyError) as fault:
        raise NotAnObject(f"no object with metadata: {fault}") from None
    number = msgspec.Raw(b'"%b"' % version)
    if "resourceVersion" in metadata:
        metadata["resourceVersion"] = number
    elif list(metadata) == sorted(metadata) and next(iter(fields), "") != "kind":
        metadata["resourceVersion"] = number
        metadata = dict(sorted(metadata.items()))
    else:
        first = {key: metadata[key] for key in _STRUCT_ORDER if key in metadata}
        metadata = {
            **first,
            "resourceVersion": number,
            **{k: v for k, v in metadata.items() if k not in first},
        }
    fields["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(fields)
