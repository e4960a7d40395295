"""Request bodies: from bytes of a media type to an object of the kind that the path names.

What is refused on the way, in order: the media type (415); bytes that cannot be decoded, or that do not say
what they are; another kind or version; a value that does not fit the kind (400). What the kind does not know is
dropped, and told as ``fieldValidation`` says: not at all, as warnings, or as a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from apimachinery.http.messages import Request, Trail
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, unsupported_media_type
from apimachinery.schema.known_specs import Aside
from apimachinery.schema.typed_form import Empties
from apimachinery.server.catalog.family import IsKind
from apimachinery.server.catalog.refusals import cannot_handle, unrecognized
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import Codecs, WireCodec
from apimachinery.server.request.decoded import Decoded, decoded_as
from apimachinery.wire import yaml
from apimachinery.wire.json import (
    DecodeFault,
    InnerFault,
    NumberFault,
    decode,
    decode_merging,
    encode,
    type_name,
)
from apimachinery.wire.strict import field_texts, has_duplicate_fields, repeated_fields, strict_error

TYPE_META = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
)


def codec_of(request: Request, codecs: Codecs) -> WireCodec:
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


def read_body(
    request: Request,
    codecs: Codecs,
    served: Served,
    is_kind: IsKind,
    same: Collection[str] = (),
    *,
    lenient: bool = False,
) -> tuple[Json, Decoded]:
    """The object of a body, and how faults of it are worded; ``same`` are versions of the kind that have the same
    fields, and are read as it. ``lenient``: unknown fields are ignored, which another decoder does. Raises ApiError
    400, 415, 422."""
    codec = codec_of(request, codecs)
    data = request.body
    duplicates: list[str] = []
    try:
        value = codec.decode(data, duplicates, (served.api_version, served.kind))
    except NumberFault as fault:
        raise cannot_handle(served.kind, served.version, served.kind, str(fault)) from None
    except InnerFault as fault:
        # What is wrong inside the object is noticed after its kind was read.
        raise cannot_handle(fault.kind, fault.version, served.kind, str(fault)) from None
    except DecodeFault as fault:
        raise unrecognized(served.kind, codec.explain(str(fault)), data) from None
    decoded = decoded_as(codec, served.family)(data, duplicates)
    value = {} if value is None else value
    if (
        same
        and isinstance(value, dict)
        and value.get("apiVersion") in same
        and value.get("kind") == served.kind
    ):
        value["apiVersion"] = served.api_version
    doubtful = codec.checks_duplicates and not duplicates and has_duplicate_fields(data, value)
    _name_kind(value, decoded, served, is_kind, lenient=lenient)
    if doubtful:
        # Only where they are needed: finding their places reads the body again.
        decoded.duplicates += field_texts(repeated_fields(data), [])
        # Of a repeated map Go keeps the fields of both.
        if decoded.duplicates and served.family.merges_duplicates:
            value = {**decode_merging(data), "kind": value["kind"], "apiVersion": value["apiVersion"]}
    return value, decoded


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
    obj, decoded = read_body(request, codecs, served, is_kind, same, lenient=validation == "Ignore")
    empties = bring_into_form(obj, served, validation, decoded, warnings)
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


def _name_kind(value: Any, decoded: Decoded, served: Served, is_kind: IsKind, *, lenient: bool) -> None:
    """Sees to it that the value is an object of the kind, and fills in what the path says."""
    kind_name, data = served.kind, decoded.data
    if not isinstance(value, dict):
        fault = f"json: cannot unmarshal {type_name(value)} into Go value of type {TYPE_META}"
        raise unrecognized(kind_name, decoded.explain(fault), data)
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name, ""), str) and value[name] is not None:
            fault = (
                f"json: cannot unmarshal {type_name(value[name])} into Go struct field .{name} of type string"
            )
            raise unrecognized(kind_name, decoded.explain(fault), data)
    api_version = value.get("apiVersion") or ""
    if api_version.count("/") > 1:
        raise unrecognized(kind_name, f"unexpected GroupVersion string: {api_version}", data)
    if api_version.startswith("/"):
        value["apiVersion"] = api_version[1:]
    elif api_version.endswith("/"):
        raise _no_api_version(value.get("kind") or kind_name, decoded, value, served)
    elif decoded.needs_api_version and not api_version and value.get("kind"):
        raise _no_api_version(value["kind"], decoded, value, served)
    shown = decoded.shown if lenient else decoded.sent
    served.family.name_kind(served, value, data, is_kind, lambda: shown(value), lenient=lenient)


def _no_api_version(kind: str, decoded: Decoded, value: Json, served: Served) -> ApiError:
    said = f"Object 'apiVersion' is missing in '{decoded.shown(value)}'"
    return cannot_handle(kind, "", served.kind, said)


def bring_into_form(
    obj: Json, served: Served, validation: str, decoded: Decoded, warnings: list[str]
) -> Empties:
    """Reads an object as its kind: checks types, drops what is unknown, fills in defaults; in place. What is empty and
    left out is given back.

    Adds to ``warnings``. Raises ApiError 400.
    """
    fault = decoded.own_fault(served)
    dropped: list[str] = []
    aside = None
    if not fault:
        aside = set_aside(obj, served)
        fault, dropped = served.compiled.schema.read(obj)
    if fault:
        fault = decoded.misfit(fault, served)
        raise cannot_handle(obj.get("kind") or served.kind, served.version, served.kind, fault)
    if unknown := unknown_faults(dropped, validation, decoded, warnings):
        raise cannot_handle(
            obj.get("kind") or served.kind, served.version, served.kind, strict_error(unknown)
        )
    return finish_form(obj, served, aside)


def set_aside(obj: Json, served: Served) -> Aside | None:
    """Sets the spec of an object aside, where that was read before."""
    return None if served.compiled.to_form is None else served.known_specs.set_aside(obj)


def unknown_faults(dropped: list[str], validation: str, decoded: Decoded, warnings: list[str]) -> list[str]:
    """The texts about unknown fields, which were dropped, that ``Strict`` refuses; ``Warn`` makes them warnings."""
    # Most requests have neither, and must not pay for the texts.
    if (not dropped and not decoded.duplicates) or validation == "Ignore":
        return []
    texts = decoded.unknown(dropped)
    if validation == "Strict":
        return texts
    warnings.extend(texts)
    return []


def finish_form(obj: Json, served: Served, aside: Aside | None = None) -> Empties:
    """Typed form and defaults; the empty lists and maps that the form leaves out. Puts back what was set ``aside`` of
    the object."""
    compiled = served.compiled
    fill_in = compiled.defaulter or compiled.schema.default
    if compiled.to_form is None:
        fill_in(obj)
        return ()
    metadata = obj.get("metadata")
    resets = isinstance(metadata, dict) and metadata.get("managedFields") == []
    if aside is None:
        empties = compiled.to_form.read(obj, fill_in)
    else:
        empties = compiled.to_form.read(obj, partial(_put_back, aside, fill_in), aside.learn)
    if resets and isinstance(metadata, dict):
        # An empty list is not a field of the object, yet it says that nobody should own anything.
        metadata["managedFields"] = []
    return empties


def _put_back(aside: Aside, fill_in: Callable[[Json], None], obj: Json) -> None:
    aside.put_back(obj)
    fill_in(obj)
