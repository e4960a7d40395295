"""Request bodies: from bytes of a media type to an object of the kind that the path names.

What is refused on the way, in order: the media type (415); bytes that cannot be decoded, or that do not say
what they are; another kind or version; a value that does not fit the kind (400). What the kind does not know is
dropped, and told as ``fieldValidation`` says: not at all, as warnings, or as a refusal.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from apimachinery.http.messages import Request, Trail
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import unsupported_media_type
from apimachinery.schema.typed_form import Empties
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.refusals import cannot_handle, unrecognized
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import CBOR, JSON, YAML, Codec, Codecs
from apimachinery.wire import yaml
from apimachinery.wire.cbor_faults import typed_fault, unknown_place
from apimachinery.wire.json import (
    DecodeFault,
    InnerFault,
    NumberFault,
    decode,
    decode_first,
    decode_merging,
    encode,
    type_name,
)
from apimachinery.wire.strict import (
    field_texts,
    has_duplicate_fields,
    in_order_of,
    repeated_fields,
    strict_error,
)

TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def codec_of(request: Request, codecs: Codecs) -> Codec:
    """The codec of a request's body; JSON if nothing is given. Raises ApiError 415."""
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower() if content_type else "application/json"
    codec = codecs.reading(media_type)
    if codec is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(codecs.media_types)
        )
    return codec


class Sent(list[str]):
    """The texts about keys that are in a body twice, and how else faults of it are worded."""

    def __init__(self, codec: Codec, data: bytes) -> None:
        super().__init__()
        self._codec = codec
        self._data = data

    def own_fault(self, served: Served) -> str | None:
        """What only the body shows: a value of a wrong type that a repeated key has replaced; text where CBOR, which
        has a type of its own for them, should have bytes."""
        if self._codec is JSON and self and served.builtin:
            return served.compiled.schema.decode_fault(decode_first(self._data))
        if self._codec is not CBOR or not served.binary_fields:
            return None
        from apimachinery.wire.cbor import text_strings

        for name in text_strings(self._data, served.binary_fields):
            return f"json: cannot unmarshal string into Go struct field {served.kind}.{name} of type []uint8"
        return None

    def misfit(self, fault: str, served: Served) -> str:
        """A fault of a value's type in the words of the body's decoder."""
        in_cbor = self._codec is CBOR and served.builtin
        return typed_fault(fault, f"{served.version}.{served.kind}", self._data) if in_cbor else fault

    def unknown(self, dropped: Collection[str], served: Served) -> list[str]:
        """The texts about both duplicate and unknown fields, in the order in which the body's decoder meets them."""
        if self._codec is CBOR and not served.builtin:
            return []  # what a CRD's schema drops is noticed in text alone
        if self._codec is CBOR and dropped:
            place = unknown_place(self._data, dropped)
            return [*self, f"cbor: found unknown field at map element index {place}"]
        if dropped and served.builtin:
            # A struct has no place for an unknown field, so it is not there twice.
            strangers = {*field_texts(dropped, [])}
            self[:] = [text for text in self if text not in strangers]
        if self._codec is YAML and served.builtin:
            dropped = sorted(dropped, key=_along)  # the keys of the JSON that YAML is made to are in order
        texts = [*self, *field_texts([], dropped)]
        return (
            in_order_of(self._data, texts)
            if self and dropped and served.builtin and self._codec is JSON
            else texts
        )


def _along(path: str) -> list[tuple[int, str]]:
    """What paths are sorted by in the order of a document whose keys are: indices as numbers."""
    parts = re.findall(r"\[\d+\]|[^.\[]+", path)
    return [(int(part[1:-1]), "") if part.startswith("[") else (0, part) for part in parts]


def read_body(
    request: Request, codecs: Codecs, served: Served, is_kind: IsKind, same: Collection[str] = ()
) -> tuple[Json, Sent]:
    """The object of a body, and the keys that are in it twice; ``same`` are versions of the kind that have the same
    fields, and are read as it. Raises ApiError 400, 415, 422."""
    codec = codec_of(request, codecs)
    data = request.body
    duplicates = Sent(codec, data)
    try:
        value = codec.decode(data, duplicates, (served.api_version, served.kind))
    except NumberFault as fault:
        raise cannot_handle(served.kind, served.version, served.kind, str(fault)) from None
    except InnerFault as fault:
        # What is wrong inside the object is noticed after its kind was read.
        raise cannot_handle(fault.kind, fault.version, served.kind, str(fault)) from None
    except DecodeFault as fault:
        raise unrecognized(served.kind, codec.explain(str(fault)), data) from None
    value = {} if value is None else value
    if (
        same
        and isinstance(value, dict)
        and value.get("apiVersion") in same
        and value.get("kind") == served.kind
    ):
        value["apiVersion"] = served.api_version
    doubtful = codec.checks_duplicates and not duplicates and has_duplicate_fields(data, value)
    _name_kind(value, codec, data, served, is_kind)
    if doubtful:
        duplicates += field_texts(repeated_fields(data), [])
        if duplicates and served.family.merges_duplicates:
            value = {**decode_merging(data), "kind": value["kind"], "apiVersion": value["apiVersion"]}
    return value, duplicates


def read_sent(
    request: Request,
    codecs: Codecs,
    served: Served,
    is_kind: IsKind,
    validation: str,
    warnings: list[str],
    same: Collection[str] = (),
) -> tuple[Json, Empties]:
    """Reads the object of a body; gives it in form and noted for the audit, and what is empty in it. Raises ApiError
    400, 415, 422."""
    obj, duplicates = read_body(request, codecs, served, is_kind, same)
    empties = bring_into_form(obj, served, validation, duplicates, warnings)
    note_object(request.trail, obj)
    return obj, empties


def hold_body(request: Request) -> None:
    """Counts what the body's object takes. Raises Crowded."""
    content_type = request.headers.get("content-type", "")
    request.hold(request.body, binary="cbor" in content_type or "protobuf" in content_type)


def note_object(trail: Trail | None, obj: Json) -> None:
    """Keeps what the client sent for the audit, and its name where the path has none."""
    if trail is None:
        return
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    trail.note_name(name if isinstance(name, str) else "")
    if trail.wants_objects:
        trail.note_object(encode(obj))


def note_patch(request: Request) -> None:
    """Keeps a patch for the audit as it came; one in YAML as JSON, or the event would not be JSON."""
    if request.trail is None or not request.trail.wants_objects:
        return
    try:
        value = (
            yaml.decode(request.body)
            if "yaml" in request.headers.get("content-type", "")
            else decode(request.body)
        )
        request.trail.note_object(encode(value))
    except DecodeFault:
        return


def _name_kind(value: Any, codec: Codec, data: bytes, served: Served, is_kind: IsKind) -> None:
    """Sees to it that the value is an object of the kind, and fills in what the path says."""
    kind_name = served.kind
    given = codec
    if codec is YAML:
        codec = JSON  # which YAML is made before it is read
    if not isinstance(value, dict):
        fault = f"json: cannot unmarshal {type_name(value)} into Go value of type {TYPE_META}"
        raise unrecognized(kind_name, codec.explain(_said(fault, codec, data)), data)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str) and value[name] is not None:
            fault = (
                f"json: cannot unmarshal {type_name(value[name])} into Go struct field .{name} of type string"
            )
            raise unrecognized(kind_name, codec.explain(_said(fault, codec, data)), data)
    api_version = value.get("apiVersion") or ""
    if api_version.count("/") > 1:
        raise unrecognized(kind_name, f"unexpected GroupVersion string: {api_version}", data)
    if api_version.startswith("/"):
        value["apiVersion"] = api_version[1:]
    elif api_version.endswith("/"):
        kind = value.get("kind") or kind_name
        said = f"Object 'apiVersion' is missing in '{_shown(given, data, value)}'"
        raise cannot_handle(kind, "", kind_name, said)
    if codec is CBOR and not served.builtin and not api_version and value.get("kind"):
        said = f"Object 'apiVersion' is missing in '{_shown(given, data, value)}'"
        raise cannot_handle(value["kind"], "", kind_name, said)
    served.family.name_kind(served, value, data, is_kind, lambda: _shown(given, data, value))


def _shown(codec: Codec, data: bytes, value: Json) -> str:
    """A whole body as a fault shows it."""
    if codec is CBOR:
        from apimachinery.wire.cbor_items import diagnosed

        return diagnosed(data)
    return encode(value).decode() if codec is YAML else data.decode("utf-8", "replace")


def _said(fault: str, codec: Codec, data: bytes) -> str:
    return typed_fault(fault, "v1.TypeMeta", data) if codec is CBOR else fault


def bring_into_form(
    obj: Json, served: Served, validation: str, duplicates: Collection[str], warnings: list[str]
) -> Empties:
    """Reads an object as its kind: checks types, drops what is unknown, fills in defaults; in place. What is empty and
    left out is given back.

    Adds to ``warnings``. Raises ApiError 400.
    """
    compiled = served.compiled
    schema = compiled.schema
    fault = duplicates.own_fault(served) if isinstance(duplicates, Sent) else None
    if fault := fault or schema.decode_fault(obj):
        if isinstance(duplicates, Sent):
            fault = duplicates.misfit(fault, served)
        raise cannot_handle(obj.get("kind") or served.kind, served.version, served.kind, fault)
    if unknown := unknown_faults(obj, served, validation, duplicates, warnings):
        raise cannot_handle(
            obj.get("kind") or served.kind, served.version, served.kind, strict_error(unknown)
        )
    return finish_form(obj, served)


def unknown_faults(
    obj: Json, served: Served, validation: str, duplicates: Collection[str], warnings: list[str]
) -> list[str]:
    """Drops unknown fields, and gives those that ``Strict`` refuses; ``Warn`` makes them warnings."""
    dropped = served.compiled.schema.prune(obj)
    if (not dropped and not duplicates) or validation == "Ignore":
        return []
    if isinstance(duplicates, Sent):
        texts = duplicates.unknown(dropped, served)
    else:
        texts = [*duplicates, *field_texts([], dropped)]
    if validation == "Strict":
        return texts
    warnings.extend(texts)
    return []


def finish_form(obj: Json, served: Served) -> Empties:
    """Typed form and defaults; the empty lists and maps that the form leaves out."""
    compiled = served.compiled
    fill_in = compiled.defaulter or compiled.schema.default
    if compiled.to_form is None:
        fill_in(obj)
        return ()
    metadata = obj.get("metadata")
    resets = isinstance(metadata, dict) and metadata.get("managedFields") == []
    empties = compiled.to_form.read(obj, fill_in)
    if resets and isinstance(metadata, dict):
        # An empty list is not a field of the object, yet it says that nobody should own anything.
        metadata["managedFields"] = []
    return empties
