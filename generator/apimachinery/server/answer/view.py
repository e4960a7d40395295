"""How a resource is shown: the seam between stored bytes and what a client asked to see.

A ``View`` turns records into list items, lists and watch events in one form: plain JSON as stored, another
version, a Table, metadata only, another encoding. ``JsonView`` is the plain one, which copies stored bytes.
Two views with equal ``key`` show the same bytes, so what one made serves the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from apimachinery.storage.interface import Record


@dataclass(frozen=True, slots=True)
class ListMeta:
    """A list's metadata. ``revision`` is 0 for what has none, ``remaining`` None where it is not told."""

    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """An exact value that a selection demands: an event of a record with another value does not concern its watches.

    Equal ``field`` means equal ``read``, so that the value is read once for all watches that demand one of it.
    """

    field: Hashable
    value: str
    read: Callable[[Record], str]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which records are shown. Equal ``key`` (the selectors' canonical text) means equal choice.

    ``name`` is the one name that may be shown, where namespaces are open; empty where names are.
    """

    key: str
    matches: Callable[[Record], bool]
    trigger: Trigger | None = None
    name: str = ""


class View(Protocol):
    """See the module's text. ``record.value`` is the JSON as stored, its resourceVersion included."""

    @property
    def key(self) -> Hashable:
        """What the form depends on: version, columns, encoding."""

    @property
    def content_type(self) -> str:
        """Of a list or a single object."""

    @property
    def watch_content_type(self) -> str:
        """Of a watch."""

    @property
    def quick_bytes(self) -> int:
        """Of how many stored bytes the form is made in a few milliseconds."""

    @property
    def lists_quickly(self) -> bool:
        """Whether ``list`` only puts a frame around the items."""

    def copies(self, record: Record) -> bool:
        """Whether ``object`` answers with the stored bytes, however many."""

    def object(self, record: Record) -> bytes:
        """A whole answer that shows one object."""

    def join(self, records: Sequence[Record]) -> bytes:
        """The items of a list, encoded and joined."""

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """A whole list around joined items."""

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """One framed watch event; ``first`` of its stream."""

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """A framed BOOKMARK event; ``first`` of its stream."""

    def error(self, status: Mapping[str, Any]) -> bytes:
        """A framed ERROR event with a Status."""


def blank_object(
    names: Mapping[str, Any], blank: Mapping[str, Any], revision: int, annotations: Mapping[str, str]
) -> dict[str, Any]:
    """An object with nothing but its version, what is noted of it, and what an empty one of its kind shows."""
    metadata: dict[str, Any] = {"resourceVersion": str(revision)}
    if noted := {**(blank.get("metadata") or {}).get("annotations", {}), **annotations}:
        metadata["annotations"] = noted
    return {**names, **blank, "metadata": metadata}


class JsonView:
    """Plain JSON as stored.

    ``typed`` is for built-in kinds: their list items leave out kind and apiVersion, and their lists an empty
    ``continue``; custom resources keep both. ``blank`` is what an empty object of a typed kind shows
    next to its metadata (``{"spec": {}}``); a bookmark is such an object.
    """

    content_type = "application/json"
    watch_content_type = "application/json"
    lists_quickly = True
    quick_bytes = 1 << 20

    def __init__(
        self,
        api_version: str,
        kind: str,
        list_kind: str = "",
        *,
        typed: bool,
        blank: Mapping[str, Any] | None = None,
    ) -> None:
        self.key: Hashable = ("json", api_version, kind)
        self._typed = typed
        self._blank = dict(blank or {})
        self._names = {"kind": kind, "apiVersion": api_version}
        encoded = encode(self._names)
        self._opening = encoded[:-1] + b","
        names = encode({"kind": list_kind or f"{kind}List", "apiVersion": api_version})
        self._list_opening = names[:-1] + b',"metadata":'

    def copies(self, record: Record) -> bool:
        """Always."""
        return True

    def object(self, record: Record) -> bytes:
        """The stored bytes."""
        return record.value

    def join(self, records: Sequence[Record]) -> bytes:
        """The stored bytes, joined."""
        if not self._typed:
            return b",".join([record.value for record in records])
        return b",".join([self._untyped(record.value) for record in records])

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """``{"kind": …, "apiVersion": …, "metadata": …, "items": […]}``."""
        return (self._list_opening + encode_list_meta(meta, self._typed) + b',"items":[', items, b"]}\n")

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """``{"type": …, "object": …}`` and a line end."""
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), record.value)

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """An object with its kind, its version and nothing else."""
        shown = blank_object(self._names, self._blank, revision, annotations)
        return encode({"type": "BOOKMARK", "object": shown}) + b"\n"

    def error(self, status: Mapping[str, Any]) -> bytes:
        """The Status as the object."""
        return encode({"type": "ERROR", "object": status}) + b"\n"

    def _untyped(self, value: bytes) -> bytes:
        if value.startswith(self._opening):
            return b"{" + value[len(self._opening) :]
        item = decode(value)
        item.pop("kind", None)
        item.pop("apiVersion", None)
        return encode(item)


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder().decode


def encode_list_meta(meta: ListMeta, typed: bool) -> bytes:
    """A list's ``metadata`` as JSON; a typed one leaves out an empty ``continue``."""
    shown: dict[str, Any] = {"resourceVersion": str(meta.revision)} if meta.revision else {}
    if meta.continue_token or not typed:
        shown["continue"] = meta.continue_token
    if meta.remaining is not None:
        shown["remainingItemCount"] = meta.remaining
    return encode(shown)


class _Metadata(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labeled(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_read_labels = msgspec.json.Decoder(_Labeled).decode


def labels_of(record: Record) -> Mapping[str, str]:
    """``metadata.labels`` of a record, kept with it."""
    memo = record.memo
    if memo is None:
        memo = record.memo = {}
    labels: Mapping[str, str] | None = memo.get("labels")
    if labels is None:
        labels = memo["labels"] = _read_labels(record.value).metadata.labels or {}
    return labels


def at_revision(record: Record, revision: int) -> Record:
    """A record with the same content and another resourceVersion: an object that left a selection."""
    shown = decode(record.value)
    shown["metadata"]["resourceVersion"] = str(revision)
    return Record(record.key, revision, record.created, encode(shown))
