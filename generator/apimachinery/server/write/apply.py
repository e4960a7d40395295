"""Server-side apply (KEP-555): the applied configuration read, merged with the live object by who owns which field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apimachinery.http.messages import Request
from apimachinery.kinds.hooks import Json
from apimachinery.merge.errors import MergeError
from apimachinery.meta.errors import ApiError, bad_request, conflict
from apimachinery.meta.gvk import GroupVersion
from apimachinery.meta.times import SECONDS_LAYOUT, parse_fault
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import finish_form, unknown_faults
from apimachinery.server.request.decoded import Decoded
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    match_name,
    match_namespace,
    metadata_of,
    path_name_fault,
)
from apimachinery.server.write.effects import Steps
from apimachinery.server.write.identity import now
from apimachinery.server.write.patch_faults import copied, encoded, patch_fault, translated
from apimachinery.server.write.pipeline import Pipeline
from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault, type_name
from apimachinery.wire.strict import yaml_errors


def apply(request: Request, target: WriteTarget, pipeline: Pipeline, *, binary: bool) -> Steps[Written]:
    """Applies the configuration in the body (CBOR where ``binary``, else YAML); creates what is not there.

    Raises ApiError 400, 403, 404, 409, 422.
    """
    served = target.served
    if (fault := path_name_fault(target.name)) is not None:
        raise fault
    applied = read_configuration(request, target, binary=binary)
    if not target.subresource:
        check_configuration(applied, served.api_version, served.kind)
    metadata = applied.get("metadata")
    ownership = served.ownership(target.subresource)
    manager, force = target.options.manager, bool(target.options.force)
    warnings = list(target.warnings)

    def made(live: Json | None) -> Json:
        target.warnings[:] = warnings
        check_configuration(applied, served.api_version, served.kind)
        new = ownership.apply(live, applied, manager, force=force, now=now())
        new = copied(new, large=target.large)
        match_name(new, target.name)
        match_namespace(metadata_of(new), target.namespace)
        schema = served.compiled.schema
        if not served.builtin:
            _drop_bad_time(metadata_of(new))
            # kube-apiserver stores what was applied as it is, and drops what metadata has no need of when it reads
            # it or brings it to another version.
            as_stored = not target.subresource and served.api_version == served.storage_version
            target.has_empties = as_stored and _has_empties(metadata_of(new))
        if fault := schema.decode_fault(new):
            if not served.builtin:
                raise patch_fault(encoded(new), fault)
            schema.restore(new)
            if fault := schema.restore_fault(new):
                raise _unconverted(applied, served, fault)
        # The applied fields of a custom object that its type knows and its schema does not go without a word.
        validation = target.options.validation if served.builtin else "Ignore"
        if unknown := unknown_faults(new, served, validation, Decoded(), target.warnings):
            raise bad_request(f"error strict decoding: {', '.join(unknown)}")
        nulls = [] if served.builtin else list(_nulls(new))
        target.empties = finish_form(new, served)
        for place_of, key in nulls:
            # What is applied as null is refused as null, where a create would drop it.
            place_of.setdefault(key, None)
        if isinstance(metadata, dict) and metadata.get("resourceVersion"):
            metadata_of(new)["resourceVersion"] = metadata["resourceVersion"]
        return new

    def create() -> Json:
        new = made(None)
        if uid := metadata_of(new).get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(served.plural, served.group, target.name, why)
        return new

    creates: Callable[[], Json] | None = create
    if target.subresource and not (served.strategy.create_on_update and target.subresource == "status"):
        creates = None
    try:
        return (yield from pipeline.update(target, made, creates=creates, created_owned=True, owned=True))
    except MergeError as error:
        raise translated(error) from None


def _unconverted(applied: Json, served: Served, fault: str) -> ApiError:
    """500, without a reason: the merged object fits its schema, and yet is no object of the kind."""
    metadata = metadata_of(applied)
    place = f"{metadata.get('namespace') or ''}/{metadata.get('name') or ''}"
    gvk = f"{served.group}/{served.version}, Kind={served.kind}"
    said = f"failed to convert new object ({place}; {gvk}) to proper version: "
    return ApiError(
        500, "", f"{said}unable to convert unstructured object to {gvk}: {fault}", has_details=False
    )


def _drop_bad_time(metadata: Json) -> None:
    """Nobody sets an object's creationTimestamp, so one that is no time does not count."""
    if (created := metadata.get("creationTimestamp")) is not None and (
        not isinstance(created, str) or parse_fault(created, SECONDS_LAYOUT) is not None
    ):
        del metadata["creationTimestamp"]


_COLLECTIONS = ("labels", "annotations", "finalizers", "ownerReferences")


def _has_empties(metadata: Json) -> bool:
    """Whether a collection is there that holds nothing, or labels that are null."""
    for name in _COLLECTIONS:
        if name in metadata:
            held = metadata[name]
            if not held or (isinstance(held, dict) and None in held.values()):
                return True
    return False


def read_configuration(request: Request, target: WriteTarget, *, binary: bool) -> Json:
    """The configuration in a body. Raises ApiError 400."""
    return _cbor_configuration(request.body) if binary else _configuration(request.body, target)


def check_configuration(applied: Json, api_version: str, kind: str) -> None:
    """Raises ApiError 400 where a configuration is of another kind, or says who owns what."""
    given = (applied.get("apiVersion"), applied.get("kind"))
    gvk = tuple(each if isinstance(each, str) else "" for each in given)
    if gvk != (api_version, kind):
        group, version = GroupVersion.parse(gvk[0])
        raise bad_request(f"invalid object type: {group}/{version}, Kind={gvk[1]}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


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


def _configuration(body: bytes, target: WriteTarget) -> Json:
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
    if duplicates and target.options.validation == "Strict":
        said = yaml_errors(duplicates)[0]
        raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {said}")
    if target.options.validation == "Warn":
        target.warnings.extend(duplicates)
    return value
