"""Server-side apply (KEP-555): the applied configuration read, merged with the live object by who owns which field."""

from __future__ import annotations

from collections.abc import Callable

from apimachinery.http.messages import Request
from apimachinery.kinds.hooks import Json
from apimachinery.merge.errors import MergeError
from apimachinery.meta.asked import path_name_fault
from apimachinery.meta.clock import now
from apimachinery.meta.errors import bad_request, conflict
from apimachinery.meta.gvk import GroupVersion
from apimachinery.server.request.bodies import unknown_faults
from apimachinery.server.request.decoded import Decoded
from apimachinery.server.request.target import (
    WriteTarget,
    Written,
    match_name,
    match_namespace,
    metadata_of,
)
from apimachinery.server.write.effects import Steps
from apimachinery.server.write.families import WRITES
from apimachinery.server.write.patch_faults import copied, translated
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
    family, ownership = WRITES[served.family], served.ownership(target.subresource)
    manager, force = target.options.manager, bool(target.options.force)
    warnings = list(target.warnings)
    target.applying = True

    def made(live: Json | None) -> Json:
        # Called again after a conflict: warnings of the attempt before must not pile up.
        target.warnings[:] = warnings
        check_configuration(applied, served.api_version, served.kind)
        new = ownership.apply(live, applied, manager, force=force, now=now())
        new = copied(new, large=target.large)
        dropped, aside = family.fit_applied(target, new, applied)
        match_name(new, target.name)
        match_namespace(metadata_of(new), target.namespace)
        validation = target.options.validation if family.reports_unknown else "Ignore"
        if unknown := unknown_faults(dropped, validation, Decoded(), target.warnings):
            raise bad_request(f"error strict decoding: {', '.join(unknown)}")
        family.finish_applied(target, new, aside)
        # The precondition of the applier, which the merge left out.
        if isinstance(metadata, dict) and metadata.get("resourceVersion"):
            metadata_of(new)["resourceVersion"] = metadata["resourceVersion"]
        return new

    def create() -> Json:
        new = made(None)
        # Whoever names a uid means an object that is there.
        if uid := metadata_of(new).get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(served.plural, served.group, target.name, why)
        return new

    creates: Callable[[], Json] | None = create
    # A subresource of nothing cannot be applied to, but for status where the kind creates on update.
    if target.subresource and not (served.strategy.create_on_update and target.subresource == "status"):
        creates = None
    try:
        return (
            yield from pipeline.update(
                target, made, creates=creates, created_owned=True, owned=True, pure=True
            )
        )
    except MergeError as error:
        raise translated(error) from None


def read_configuration(request: Request, target: WriteTarget, *, binary: bool) -> Json:
    """The configuration in a body. Raises ApiError 400."""
    return _cbor_configuration(request.body) if binary else _configuration(request.body, target)


def check_configuration(applied: Json, api_version: str, kind: str) -> None:
    """Raises ApiError 400 where a configuration is of another kind, or says who owns what."""
    given = (applied.get("apiVersion"), applied.get("kind"))
    gvk = tuple(each if isinstance(each, str) else "" for each in given)
    if gvk != (api_version, kind):
        if gvk[0].count("/") > 1:  # where Go reads no kind either
            gvk = ("", "")
        group, version = GroupVersion.parse(gvk[0])
        raise bad_request(f"invalid object type: {group}/{version}, Kind={gvk[1]}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")


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
