"""Request bodies: from bytes of a media type to an object of the kind that the path names.

What is refused on the way, in order: the media type (415); bytes that cannot be decoded, or that do not say
what they are; another kind or version; a value that does not fit the kind (400). What the kind does not know is
dropped, and told as ``fieldValidation`` says: not at all, as warnings, or as a refusal.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apimachinery.meta.errors import unsupported_media_type
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.refusals import cannot_handle, unrecognized
from apimachinery.server.catalog.served import Served
from apimachinery.server.http.messages import Request, Trail
from apimachinery.server.request.codecs import Codec, Codecs
from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault, NumberFault, decode, decode_merging, encode, type_name
from apimachinery.wire.strict import duplicate_fields, field_texts, strict_error

_TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def codec_of(request: Request, codecs: Codecs) -> Codec:
    """The codec of a request's body; JSON if nothing is given. Raises ApiError 415."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    codec = codecs.reading(media_type or "application/json")
    if codec is None:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(codecs.media_types)
        )
    return codec


def read_body(request: Request, codecs: Codecs, served: Served, is_kind: IsKind) -> tuple[Json, list[str]]:
    """The object of a body, and the keys that are in it twice. Raises ApiError 400, 415, 422."""
    codec = codec_of(request, codecs)
    data = request.body
    duplicates: list[str] = []
    try:
        value = codec.decode(data, duplicates)
    except NumberFault as fault:
        raise cannot_handle(served.kind, served.version, served.kind, str(fault)) from None
    except DecodeFault as fault:
        raise unrecognized(served.kind, codec.explain(str(fault)), data) from None
    value = {} if value is None else value
    _name_kind(value, codec, data, served, is_kind)
    if codec.checks_duplicates and not duplicates:
        duplicates = field_texts(duplicate_fields(data, value), [])
        if duplicates and served.family.merges_duplicates:
            value = {**decode_merging(data), "kind": value["kind"], "apiVersion": value["apiVersion"]}
    return value, duplicates


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
    if not isinstance(value, dict):
        fault = f"json: cannot unmarshal {type_name(value)} into Go value of type {_TYPE_META}"
        raise unrecognized(kind_name, codec.explain(fault), data)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str) and value[name] is not None:
            fault = (
                f"json: cannot unmarshal {type_name(value[name])} into Go struct field .{name} of type string"
            )
            raise unrecognized(kind_name, codec.explain(fault), data)
    served.family.name_kind(served, value, data, is_kind)


def bring_into_form(
    obj: Json, served: Served, validation: str, duplicates: Collection[str], warnings: list[str]
) -> None:
    """Reads an object as its kind: checks types, drops what is unknown, fills in defaults; in place.

    Adds to ``warnings``. Raises ApiError 400.
    """
    compiled = served.compiled
    schema = compiled.schema
    if fault := schema.decode_fault(obj):
        raise cannot_handle(served.kind, served.version, served.kind, fault)
    if unknown := unknown_faults(obj, served, validation, duplicates, warnings):
        raise cannot_handle(served.kind, served.version, served.kind, strict_error(unknown))
    finish_form(obj, served)


def unknown_faults(
    obj: Json, served: Served, validation: str, duplicates: Collection[str], warnings: list[str]
) -> list[str]:
    """Drops unknown fields, and gives those that ``Strict`` refuses; ``Warn`` makes them warnings."""
    dropped = served.compiled.schema.prune(obj)
    if (not dropped and not duplicates) or validation == "Ignore":
        return []
    texts = [*duplicates, *field_texts([], dropped)]
    if validation == "Strict":
        return texts
    warnings.extend(texts)
    return []


def finish_form(obj: Json, served: Served) -> None:
    """Typed form and defaults."""
    compiled = served.compiled
    if compiled.to_form is not None:
        metadata = obj.get("metadata")
        resets = isinstance(metadata, dict) and metadata.get("managedFields") == []
        compiled.to_form(obj)
        if resets and isinstance(metadata, dict):
            # An empty list is not a field of the object, yet it says that nobody should own anything.
            metadata["managedFields"] = []
    if compiled.defaulter is not None:
        compiled.defaulter(obj)
    else:
        compiled.schema.default(obj)
