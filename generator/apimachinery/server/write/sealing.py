"""What the storage gets of an object: its bytes at the storage version, with a place for the revision."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import msgspec

from apimachinery.kinds.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.target import WriteTarget
from apimachinery.storage.interface import REVISION_MARK, Record, Value
from apimachinery.wire.json import decode, encode, encode_as_go, encode_in_steps, with_go_numbers

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_EMPTIES = b" "
"""Ends what is stored of an object that has empties (``WriteTarget``); JSON may end so, and readers need not look."""
_ZERO_TIME = b'"0001-01-01T00:00:00'
Pack = Callable[[Any], bytes]


def sealed(target: WriteTarget, obj: Json) -> Value:
    """What storing ``obj`` takes; of a dry run all that is shown of it."""
    pack = _pack_large if target.large else _pack
    if target.options.dry_run:
        return Value(_packed(target.served, obj, pack), b"")
    value = _sealed(target.served, obj, pack)
    return Value(value.head, value.tail + _EMPTIES, value.ttl) if target.has_empties else value


def sealed_last(target: WriteTarget, record: Record, last: Json) -> Value:
    """What ending an object takes, ``last`` as ``record`` shows it; no webhook is asked to convert it again."""
    if not target.served.asks:
        return sealed(target, last)
    if target.options.dry_run:
        return Value(record.value, b"")
    stored = decode(record.value)
    stored["metadata"]["resourceVersion"] = REVISION_MARK
    return Value.cut(_pack(stored))


def unstored(target: WriteTarget, record: Record, obj: Json) -> Record:
    """A record of an object that is shown and not stored: the last state of one whose deletion has ended."""
    pack = _pack_large if target.large else _pack
    return Record(record.key, record.revision, record.created, _packed(target.served, obj, pack))


def changes(target: WriteTarget, record: Record, old: Json, new: Json) -> bool:
    """Whether storing ``new`` in place of ``old``, which is what ``record`` shows, would change anything. It does where
    the record waits to be brought to another version or form."""
    if target.has_empties or record.value.endswith(_EMPTIES) or record.stale:
        return True
    # ``==`` alone takes 1, 1.0 and true for the same.
    if new != old or _encode_sorted(new) != _encode_sorted(old) or not _is_stored(target.served, new, record):
        return True
    fills_in = target.served.hooks.fills_in_when_read
    return fills_in is not None and record.created == record.revision and fills_in(old)


def _is_stored(served: Served, obj: Json, record: Record) -> bool:
    if served.is_plain(record):
        return True
    stored = decode(_sealed(served, obj, _pack).at(record.revision))
    return _encode_sorted(stored) == _encode_sorted(decode(record.value))


def _sealed(served: Served, obj: Json, pack: Pack) -> Value:
    if served.asks:
        # A webhook that converts is not shown what stands in for the revision.
        metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        stored = _stored(served, {**obj, "metadata": metadata})
        stored["metadata"]["resourceVersion"] = REVISION_MARK
        return Value.cut(pack(served.family.in_order(stored)))
    marked = {**obj, "metadata": {**obj["metadata"], "resourceVersion": REVISION_MARK}}
    return Value.cut(_packed(served, marked, pack), served.ttl)


def _packed(served: Served, obj: Json, pack: Pack) -> bytes:
    encoded = pack(_stored(served, obj))
    if _ZERO_TIME in encoded and served.compiled.to_form is not None:
        obj = deepcopy(obj)
        served.compiled.to_form.unset(obj)
        encoded = pack(_stored(served, obj))
    return encoded


def _stored(served: Served, obj: Json) -> Json:
    """The object at the storage version, kind and apiVersion first; leaves ``obj`` as it is."""
    stored = {"kind": served.kind, "apiVersion": served.api_version, **obj}
    if served.to_storage is None and served.first_status is not None and "status" not in stored:
        # kube-apiserver fills it in when it reads what it stored: rules and admission do not see it.
        stored["status"] = deepcopy(served.first_status)
    if served.to_storage is not None:
        stored = served.to_storage(msgspec.json.decode(encode(stored)))
    return served.family.in_order(stored)


def _pack(stored: Json) -> bytes:
    return encode_as_go(stored)


def _pack_large(stored: Json) -> bytes:
    return with_go_numbers(encode_in_steps(stored))
