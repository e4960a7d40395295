"""Views of resources: as stored, at another version, as YAML, as metadata alone, as a Table.

What a view shows is made of JSON bytes; where another codec is asked for, the finished answer is encoded again.
Plain JSON, the usual case, copies stored bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any

from apimachinery.http.messages import Request
from apimachinery.meta.errors import ApiError, bad_request, not_acceptable
from apimachinery.server.answer.table import Columns, columns_of
from apimachinery.server.answer.view import JsonView, ListMeta, View, blank_object, encode_list_meta
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import CBOR, JSON, Codecs, WireCodec
from apimachinery.server.request.negotiation import (
    METADATA,
    METADATA_LIST,
    PLAIN,
    TABLE,
    AnswerForm,
    negotiate,
)
from apimachinery.storage.interface import Record
from apimachinery.wire.blocks import in_blocks
from apimachinery.wire.json import decode, elements, encode, encode_as_go

KEPT_VIEWS = 64
QUICK_TABLE_BYTES = 256 << 10


class ServedView(JsonView):
    """A resource's objects at its version."""

    def __init__(self, served: Served) -> None:
        super().__init__(
            served.api_version,
            served.kind,
            served.list_kind,
            typed=served.family.has_structs,
            blank=served.blank(),
        )
        self.key = ("json", served.number)
        self._served = served

    def copies(self, record: Record) -> bool:
        """Where it is stored at this version."""
        return self._served.is_plain(record)

    def object(self, record: Record) -> bytes:
        """The bytes at this version."""
        return self._served.shown(record)

    def join(self, records: Sequence[Record]) -> bytes:
        """The same, joined."""
        shown = self._served.shown
        if not self._typed:
            return b",".join([shown(record) for record in records])
        return b",".join([self._untyped(shown(record)) for record in records])

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """One event."""
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self._served.shown(record))


class MetadataView:
    """PartialObjectMetadata: kind and apiVersion of meta.k8s.io, and the metadata."""

    content_type = "application/json"
    watch_content_type: str = "application/json"
    lists_quickly = True
    quick_bytes = 256 << 10

    def __init__(self, served: Served, version: str) -> None:
        self.key: Hashable = ("metadata", served.number, version)
        self._served = served
        self._names = {"kind": METADATA, "apiVersion": f"meta.k8s.io/{version}"}

    def shown(self, record: Record) -> dict[str, Any]:
        """One object's metadata."""
        return {
            **self._names,
            "metadata": _alone(self._served, decode(self._served.shown(record))["metadata"]),
        }

    def copies(self, record: Record) -> bool:
        """Never."""
        return False

    def object(self, record: Record) -> bytes:
        """One object."""
        return encode(self.shown(record))

    def join(self, records: Sequence[Record]) -> bytes:
        """The items of a list."""
        return b",".join([encode(self.shown(record)) for record in records])

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """A PartialObjectMetadataList; an empty one has no items at all."""
        opening = encode({"kind": METADATA_LIST, "apiVersion": self._names["apiVersion"]})[:-1]
        listed = b"[" + items + b"]" if items else b"null"
        return (opening, b',"metadata":', encode_list_meta(meta, True), b',"items":', listed, b"}\n")

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """One event."""
        return encode({"type": kind, "object": self.shown(record)}) + b"\n"

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """An object with nothing but its version."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if annotations:
            metadata["annotations"] = dict(annotations)
        return encode({"type": "BOOKMARK", "object": {**self._names, "metadata": metadata}}) + b"\n"

    def error(self, status: Mapping[str, Any]) -> bytes:
        """The Status as the object."""
        return encode({"type": "ERROR", "object": status}) + b"\n"


def _alone(served: Served, metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata without its object, which lacks the annotations that are fields in kube-apiserver's struct."""
    for name in served.hooks.internal_annotations:
        annotations = metadata.get("annotations") or {}
        if annotations.pop(name, None) is not None and not annotations:
            del metadata["annotations"]
    return metadata


class TableView:
    """A Table: columns, and a row for each object with its cells and what ``includeObject`` asks for."""

    content_type = watch_content_type = "application/json"
    lists_quickly = True

    def __init__(self, served: Served, version: str, include: str, columns: Columns) -> None:
        self._served = served
        self._version = version
        self._include = include
        self._columns = columns
        self._names = {"kind": TABLE, "apiVersion": f"meta.k8s.io/{version}"}
        self._metadata = MetadataView(served, version)
        self.quick_bytes = QUICK_TABLE_BYTES // columns.weight
        self._encode = encode_as_go if columns.doubles or include == "Object" else encode

    @property
    def key(self) -> Hashable:
        """Ages are shown, so what was joined is good for a second."""
        return ("table", self._served.number, self._version, self._include, int(time.time()))

    def _row(self, record: Record) -> dict[str, Any]:
        obj = decode(self._served.shown(record))
        shown: dict[str, Any] | None = None
        if self._include == "Object":
            shown = obj
        elif self._include != "None":
            shown = {
                "kind": METADATA,
                "apiVersion": f"meta.k8s.io/{self._version}",
                "metadata": _alone(self._served, obj["metadata"]),
            }
        return {"cells": self._columns.cells(obj), "object": shown}

    def _table(
        self, rows: Sequence[dict[str, Any]], metadata: dict[str, Any], defined: bool
    ) -> dict[str, Any]:
        definitions = self._columns.definitions if defined else None
        return {**self._names, "metadata": metadata, "columnDefinitions": definitions, "rows": rows}

    def copies(self, record: Record) -> bool:
        """Never."""
        return False

    def object(self, record: Record) -> bytes:
        """A Table of one row."""
        row = self._row(record)
        revision = decode(record.value)["metadata"].get("resourceVersion", "")
        metadata = {"resourceVersion": revision} if revision else {}
        return self._encode(self._table([row], metadata, True))

    def join(self, records: Sequence[Record]) -> bytes:
        """The rows."""
        if (order := self._columns.order) is not None:
            records = sorted(records, key=lambda record: order(decode(record.value)))
        return b",".join([self._encode(self._row(record)) for record in records])

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """A Table of a list."""
        opening = encode(self._names)[:-1]
        definitions = encode(self._columns.definitions)
        metadata = encode_list_meta(meta, True)
        parts = (opening, b',"metadata":', metadata, b',"columnDefinitions":', definitions)
        if not items and self._columns.by_default:
            return (*parts, b',"rows":null}\n')
        return (*parts, b',"rows":[', items, b"]}\n")

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """A Table of one row; the columns are in the first alone."""
        row = self._row(record)
        metadata = {"resourceVersion": decode(record.value)["metadata"]["resourceVersion"]}
        return self._encode({"type": kind, "object": self._table([row], metadata, first)}) + b"\n"

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """A Table with one row, whose object has the version."""
        if self._include == "Object":
            names, blank = (
                {"kind": self._served.kind, "apiVersion": self._served.api_version},
                self._served.blank(),
            )
        else:
            names, blank = {"kind": METADATA, "apiVersion": f"meta.k8s.io/{self._version}"}, {}
        shown = blank_object(names, blank, revision, annotations)
        row = {"cells": self._columns.nothing(), "object": shown}
        table = self._table([row], {"resourceVersion": str(revision)}, first)
        return encode({"type": "BOOKMARK", "object": table}) + b"\n"

    def error(self, status: Mapping[str, Any]) -> bytes:
        """The Status as the object."""
        return encode({"type": "ERROR", "object": status}) + b"\n"


LONG_BYTES = 1 << 20
"""From here on a list in another form than JSON is encoded object by object."""


class EncodedView:
    """Another view's JSON in another codec."""

    lists_quickly = False

    def __init__(self, view: View, codec: WireCodec, binary: Collection[tuple[str, ...]] = ()) -> None:
        self._view = view
        self._codec = codec
        self._binary = binary  # paths of bytes, for a codec that does not write them as base64
        self.content_type = codec.media_type
        self.watch_content_type = codec.stream_media_type
        self.quick_bytes = min(codec.quick_bytes, view.quick_bytes)

    @property
    def key(self) -> Hashable:
        """That of the other view: joined items are the same."""
        return self._view.key

    def _again(self, data: bytes) -> bytes:
        value = decode(data)
        if self._binary:
            from apimachinery.wire.cbor import mark_binary

            if value.keys() == {"type", "object"}:
                shown = [value["object"]]
            else:
                shown = value["items"] if isinstance(value.get("items"), list) else [value]
            for obj in shown:
                for path in self._binary:
                    mark_binary(obj, path)
        return self._codec.encode(value)

    def copies(self, record: Record) -> bool:
        """Never."""
        return False

    def object(self, record: Record) -> bytes:
        """One object."""
        return self._again(self._view.object(record))

    def join(self, records: Sequence[Record]) -> bytes:
        """Items, still in JSON."""
        return self._view.join(records)

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """A list. A long one is never decoded whole."""
        if len(items) < min(LONG_BYTES, self.quick_bytes):
            return (self._again(b"".join(self._view.list(meta, items))),)
        value = decode(b"".join(self._view.list(meta, b"{}")))
        member = "items" if "items" in value else "rows"
        count, objects = elements(items)
        if member == "items":
            objects = map(self._marked, objects)
        return tuple(in_blocks(self._codec.encode_list({**value, member: []}, objects, count, member)))

    def _marked(self, obj: Any) -> Any:
        if self._binary:
            from apimachinery.wire.cbor import mark_binary

            for path in self._binary:
                mark_binary(obj, path)
        return obj

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """One event."""
        return self._codec.frame(self._again(self._view.event(kind, record, first)))

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """A bookmark."""
        return self._codec.frame(self._again(self._view.bookmark(revision, annotations, first)))

    def error(self, status: Mapping[str, Any]) -> bytes:
        """An error."""
        return self._codec.frame(self._again(self._view.error(status)))


def asked_view(
    request: Request,
    served: Served,
    codecs: Codecs,
    *,
    of_list: bool,
    subresource: str = "",
    watch: bool = False,
) -> View:
    """The form that a request accepts for objects of a resource; of subresources the status alone may be a Table,
    if that. Raises ApiError 400, 406; for a Table that is not a watch's only once it is to be shown."""
    accept = request.headers.get("accept", "")
    if not accept or accept == JSON.media_type:
        found: View | None = served.views.get(JSON.media_type)
        if found is None:
            found = served.views[JSON.media_type] = view_of(served, PLAIN, "", of_list=of_list)
        return found
    tables = not subresource or (subresource == "status" and served.hooks.status_tables)
    form = negotiate(accept, codecs, has_messages=served.family.has_messages, tables=tables)
    include = request.first("includeObject") if form.shown_as else ""
    view = view_of(served, form, include, of_list=of_list)
    if watch and isinstance(view, WrongInclude):
        raise view.refused()
    return view


def view_of(served: Served, form: AnswerForm, include: str, *, of_list: bool) -> View:
    """The view that shows a resource in a form. Raises ApiError 400, 406."""
    name = f"{id(form.codec)} {form.shown_as} {form.version} {include}"
    if form.shown_as in (METADATA, METADATA_LIST) and (form.shown_as == METADATA_LIST) != of_list:
        return WrongNumber(served, form, of_list)
    if form.shown_as == TABLE and include not in ("", "Metadata", "Object", "None"):
        return WrongInclude(served, form, include)
    found: View | None = served.views.get(name)
    if found is None:
        found = _made(served, form, include)
        if len(served.views) < KEPT_VIEWS:
            served.views[name] = found
    return found


def _made(served: Served, form: AnswerForm, include: str) -> View:
    view: View
    if form.shown_as == TABLE:
        view = TableView(served, form.version, include, columns_of(served))
    elif form.shown_as:
        view = MetadataView(served, form.version)
    else:
        view = ServedView(served)
    if form.codec is JSON:
        return view
    binary = served.binary_fields if form.codec is CBOR and not form.shown_as else ()
    return EncodedView(view, form.codec, binary)


class RefusedView(MetadataView):
    """A form that is refused when it is to be shown, after the work."""

    def __init__(
        self, served: Served, form: AnswerForm, key: Hashable, refused: Callable[[], ApiError]
    ) -> None:
        super().__init__(served, form.version)
        self.key = key
        self.watch_content_type = form.codec.stream_media_type
        self.refused = refused

    def object(self, record: Record) -> bytes:
        """Raises ApiError 400, 406, 500."""
        raise self.refused()

    def list(self, meta: ListMeta, items: bytes) -> tuple[bytes, ...]:
        """Raises ApiError 400, 406."""
        raise self.refused()

    def event(self, kind: str, record: Record, first: bool) -> bytes:
        """Nothing: a watch has begun to answer, and there is nothing to say."""
        return b""

    def bookmark(self, revision: int, annotations: Mapping[str, str], first: bool) -> bytes:
        """Nothing, either."""
        return b""


class WrongNumber(RefusedView):
    """One object asked for as a list, or a list as one object."""

    def __init__(self, served: Served, form: AnswerForm, of_list: bool) -> None:
        super().__init__(
            served,
            form,
            ("wrong number", served, of_list),
            lambda: served.family.wrong_number(served, form.shown_as, of_list=of_list),
        )


class WrongInclude(RefusedView):
    """A Table with something in ``includeObject`` that is none of its values."""

    def __init__(self, served: Served, form: AnswerForm, include: str) -> None:
        said = (
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
        super().__init__(served, form, ("wrong include", served, include), lambda: bad_request(said))


def called_form(obj: dict[str, Any], form: AnswerForm, served: Served) -> dict[str, Any]:
    """The answer to a call, which is not stored, as its metadata alone where that is asked for. Raises ApiError 406."""
    if form.shown_as == METADATA:
        names = {"kind": METADATA, "apiVersion": f"meta.k8s.io/{form.version}"}
        return {**names, "metadata": obj.get("metadata") or {}}
    if form.shown_as:
        go_type = served.family.go_type(served, served.kind, of_list=False)
        raise not_acceptable(
            f"you requested {form.shown_as}, but the requested object is not a list ({go_type})"
        )
    return obj
