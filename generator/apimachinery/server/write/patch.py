"""PATCH: four kinds of patches, each from the present object to the new one.

A patch of a built-in kind works on its JSON and the result is read as the kind again, so what does not fit is a fault
of the patch (422 with cause ``patch``). Server-side apply creates what is not there; the others do not. A patch
is computed anew on the newest object when somebody was faster.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from apimachinery.merge import json_patch, merge_patch, strategic
from apimachinery.merge.errors import MergeError
from apimachinery.merge.value import go_text
from apimachinery.meta.errors import ApiError, Cause, bad_request, unsupported_media_type
from apimachinery.meta.field_errors import invalid, invalid_value
from apimachinery.server.catalog.hooks import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.http.messages import Request
from apimachinery.server.request.bodies import finish_form, unknown_faults
from apimachinery.server.request.options import read_write_options
from apimachinery.server.request.target import Place, Written, match_name, match_namespace, metadata_of
from apimachinery.server.write.identity import now
from apimachinery.server.write.writes import Writer
from apimachinery.wire import json, yaml
from apimachinery.wire.json import DecodeFault, type_name
from apimachinery.wire.strict import duplicate_fields, field_texts, strict_error, yaml_errors

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_CBOR_PATCH = "application/apply-patch+cbor"
_CUSTOM_TYPES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH, APPLY_CBOR_PATCH)
_BUILTIN_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH, APPLY_CBOR_PATCH)


async def patch(
    request: Request, served: Served, namespace: str, name: str, subresource: str, writer: Writer
) -> Written:
    """Patches an object. Raises ApiError 400, 404, 409, 413, 415, 422, 500."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if media_type not in (_BUILTIN_TYPES if served.typed else _CUSTOM_TYPES):
        raise unsupported(served)
    applies = media_type in (APPLY_PATCH, APPLY_CBOR_PATCH)
    options = read_write_options(request, "PatchOptions", apply=applies)
    place = Place(served, namespace, name, options, subresource, request.warnings)
    try:
        if applies:
            return await _apply(request, place, writer, binary=media_type == APPLY_CBOR_PATCH)
        change = _reader(media_type, request.body, place)
        return await writer.update(place, lambda old: _patched(place, old, change))
    except MergeError as error:
        raise translated(error) from None


def unsupported(served: Served) -> ApiError:
    """415 for a patch of a type that the resource does not take."""
    if served.typed:
        return unsupported_media_type("415: Unsupported Media Type", has_details=True)
    return unsupported_media_type(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(_CUSTOM_TYPES)
    )


def translated(error: MergeError) -> ApiError:
    """A failed merge as the API says it."""
    causes = tuple(Cause(c.reason, c.message, c.field) for c in error.causes)
    has_details = error.reason in ("Conflict", "Invalid")
    return ApiError(error.code, error.reason, error.message, causes=causes, has_details=has_details)


Change = Callable[[Json], tuple[Any, Callable[[Any], str]]]
"""From an object to the patched one, and how a fault of that shows the patch."""


def _reader(media_type: str, body: bytes, place: Place) -> Change:
    try:
        value = json.decode(body)
        place.duplicates = duplicate_fields(body, value) if media_type != STRATEGIC_PATCH else []
    except DecodeFault as fault:
        prefix = "" if media_type == STRATEGIC_PATCH else "error decoding patch: "
        raise bad_request(f"{prefix}{fault}") from None
    if media_type == JSON_PATCH:
        if place.options.validation == "Strict" and (unknown := _unknown_members(value)):
            raise _fault(body.decode("utf-8", "replace"), strict_error(unknown))
        return lambda old: (json_patch.apply(old, value), _encoded)
    if media_type == MERGE_PATCH:
        return lambda old: (merge_patch.apply(old, value), _encoded)
    patch_type = place.served.compiled.patch_type
    assert patch_type is not None
    shown = go_text(value)
    return lambda old: (strategic.apply(old, value, patch_type()), lambda _: shown)


def copied(obj: Json) -> Json:
    """An object that shares nothing with another."""
    made: Json = json.decode(json.encode(obj))
    return made


def _encoded(value: Any) -> str:
    return json.encode(value).decode()


def _patched(place: Place, old: Json, change: Change) -> Json:
    served = place.served
    new, show = change(old)
    if not isinstance(new, dict):
        raise _fault(show(new), f"json: cannot unmarshal {type_name(new)} into Go value")
    # What a patch shares with the object it is applied to must not change with it.
    new = copied(new)
    place.warnings[:] = served.warnings
    _check_kind(served, new, show, place.name)
    schema = served.compiled.schema
    if fault := schema.decode_fault(new):
        raise _fault(show(new), _restored(fault) if show is not _encoded else fault)
    if unknown := unknown_faults(
        new, served, place.options.validation, field_texts(place.duplicates, ()), place.warnings
    ):
        raise _fault(show(new), strict_error(unknown))
    finish_form(new, served)
    match_name(new, place.name)
    match_namespace(metadata_of(new), place.namespace)
    return new


def _check_kind(served: Served, new: Json, show: Callable[[Any], str], name: str) -> None:
    kind, api_version = new.get("kind"), new.get("apiVersion")
    if kind == served.kind and api_version == served.api_version:
        return
    if served.typed:
        fault = f"no kind {_quoted(kind)} is registered for version {_quoted(api_version)}"
        raise _fault(show(new), fault)
    faults = []
    if api_version != served.api_version:
        faults.append(invalid_value("apiVersion", api_version, f"must be {served.api_version}"))
    if kind != served.kind:
        faults.append(invalid_value("kind", kind, f"must be {served.kind}"))
    group = str(api_version).rpartition("/")[0]
    raise invalid(str(kind), group, name, faults)


_MEMBERS = frozenset({"op", "path", "from", "value"})


def _unknown_members(operations: Any) -> list[str]:
    if not isinstance(operations, list):
        return []
    return field_texts(
        (),
        [
            f"[{index}].{name}"
            for index, operation in enumerate(operations)
            if isinstance(operation, dict)
            for name in operation
            if name not in _MEMBERS
        ],
    )


def _quoted(value: Any) -> str:
    return f'"{value}"'


def _fault(shown: str, why: str) -> ApiError:
    return invalid("", "", "", [invalid_value("patch", shown, why)])


_UNMARSHAL = re.compile(r"json: cannot unmarshal (\w+) into .* of type (\S+)\Z")
_GO_FORMS = {"object": "map", "array": "slice", "bool": "bool", "string": "string", "number": "int64"}


def _restored(fault: str) -> str:
    """A decoder's fault as the converter from untyped values says it, which reads strategic patches."""
    match = _UNMARSHAL.match(fault)
    if match is None:
        return fault
    given, wanted = _GO_FORMS.get(match[1], match[1]), match[2]
    if wanted.startswith("[]"):
        return f"cannot restore slice from {given}"
    if wanted.startswith("map["):
        return f"cannot restore map from {given}"
    if "." in wanted:
        return f"cannot restore struct from: {given}"
    return f"unrecognized type: {wanted}"


async def _apply(request: Request, place: Place, writer: Writer, *, binary: bool) -> Written:
    served = place.served
    applied = _cbor_configuration(request.body) if binary else _configuration(request.body, place)
    gvk = (applied.get("apiVersion") or "", applied.get("kind") or "")
    if gvk != (served.api_version, served.kind):
        group, _, version = gvk[0].rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={gvk[1]}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    ownership = served.ownership(place.subresource)
    manager, force = place.options.manager, bool(place.options.force)
    warnings = list(place.warnings)

    def made(live: Json | None) -> Json:
        place.warnings[:] = warnings
        new = ownership.apply(live, applied, manager, force=force, now=now())
        new = copied(new)
        match_name(new, place.name)
        match_namespace(metadata_of(new), place.namespace)
        schema = served.compiled.schema
        if fault := schema.decode_fault(new):
            raise _fault(_encoded(new), fault)
        if unknown := unknown_faults(new, served, place.options.validation, (), place.warnings):
            raise bad_request(f"error strict decoding: {', '.join(unknown)}")
        nulls = [] if served.typed else list(_nulls(new))
        finish_form(new, served)
        for place_of, key in nulls:
            # What is applied as null is refused as null, where a create would drop it.
            place_of.setdefault(key, None)
        if isinstance(metadata, dict) and metadata.get("resourceVersion"):
            metadata_of(new)["resourceVersion"] = metadata["resourceVersion"]
        return new

    def create() -> Json:
        new = made(None)
        if uid := metadata_of(new).get("uid"):
            fault = invalid_value("metadata.uid", uid, "field is immutable")
            raise invalid(served.kind, served.said_group, place.name, [fault])
        return new

    creates = None if place.subresource else create
    return await writer.update(place, made, creates=creates, created_owned=True, owned=True)


def _nulls(value: Any) -> Iterator[tuple[Json, str]]:
    """Where nulls stand: each object and the key in it."""
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            for key, item in inner.items():
                if item is None:
                    yield inner, key
                elif isinstance(item, (dict, list)):
                    waiting.append(item)
        elif isinstance(inner, list):
            waiting.extend(inner)


def _cbor_configuration(body: bytes) -> Json:
    from apimachinery.wire import cbor

    try:
        value = cbor.decode(body)
    except DecodeFault as fault:
        raise bad_request(f"error decoding YAML: {fault}") from None
    if not isinstance(value, dict):
        raise bad_request(
            f"error decoding YAML: cbor: cannot unmarshal {cbor.type_name(value)} into Go value of type "
            "map[string]interface {}"
        )
    return value


def _configuration(body: bytes, place: Place) -> Json:
    duplicates: list[str] = []
    try:
        value = yaml.decode(body, duplicates)
    except DecodeFault as fault:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {fault}") from None
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise bad_request(
            f"error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{type_name(value)} into Go value of type map[string]interface {{}}"
        )
    if duplicates and place.options.validation == "Strict":
        said = yaml_errors(duplicates)[0]
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {said}")
    if place.options.validation == "Warn":
        place.warnings.extend(duplicates)
    return value
