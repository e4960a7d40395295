"""Equal parts of the objects of a mirror, kept once: containers of one template, labels, managed fields. No I/O.

Objects of a mirror are read-only, so they may share what is equal. Parts are told apart by their JSON, which is cheap
to make, and compared before they are shared. What is remembered is bounded: a mirror of objects that have little in
common forgets, and begins again.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any, Final, TypeVar

import msgspec

from apimachinery.client.calls import Codec, no_event

T = TypeVar("T")
MOST_PARTS: Final = 2_000
"""Objects that have parts in common stand together in a list: more than this costs memory and finds hardly more."""
_OWN: Final = frozenset({"metadata", "api_version", "kind"})
_WORDS: Final = ("namespace", "generate_name", "creation_timestamp")
_ALIKE: Final = ("labels", "annotations", "owner_references", "finalizers")
"""Of metadata: what objects of one owner have alike."""
_encode: Final = msgspec.json.Encoder().encode


class SharedParts:
    """The parts that objects may share."""

    def __init__(self) -> None:
        self._known: dict[int, Any] = {}
        self._used: set[int] = set()

    def share(self, obj: T) -> T:
        """Puts known parts in the place of equal ones of ``obj``, which is new."""
        if not isinstance(obj, msgspec.Struct):
            return obj
        if len(self._known) > MOST_PARTS:
            self._known.clear()
        self._used.clear()
        metadata: Any = getattr(obj, "metadata", None)
        for owner, names in ((metadata, _WORDS), (obj, ("api_version", "kind"))):
            for name in names:
                if isinstance(text := getattr(owner, name, None), str):
                    setattr(owner, name, sys.intern(text))
        for name in _ALIKE:
            if value := getattr(metadata, name, None):
                setattr(metadata, name, self._one(value))
        for entry in getattr(metadata, "managed_fields", None) or ():
            entry.fields_v1 = self._one(entry.fields_v1)
        for name in obj.__struct_fields__:
            part = getattr(obj, name)
            if isinstance(part, msgspec.Struct) and name not in _OWN:
                self._inside(part)
        return obj

    def _inside(self, part: Any) -> None:
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if value is None or isinstance(value, (str, int, float)):
                continue
            if isinstance(value, list):
                value[:] = [self._one(item) for item in value]
            else:
                setattr(part, name, self._one(value))

    def _one(self, value: Any) -> Any:
        if value is None or value is msgspec.UNSET:
            return value
        key = hash(_encode(value))
        known = self._known.get(key)
        if known is None or type(known) is not type(value) or known != value:
            self._known[key] = known = value
        # Never twice in one object: a deep copy of it would have one part in two places, which change together.
        if id(known) in self._used:
            return value
        self._used.add(id(known))
        return known


def sharing(codec: Codec[T]) -> Codec[T]:
    """A codec whose objects share what is equal."""
    parts = SharedParts()
    return replace(
        codec,
        decode=lambda raw: parts.share(codec.decode(raw)),
        decode_all=lambda raws: [parts.share(obj) for obj in codec.decode_all(raws)],
        decode_event=no_event,
    )
