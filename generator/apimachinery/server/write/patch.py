"""PATCH: four kinds of patches, each from the present object to the new one.

A patch of a built-in kind works on its JSON and the result is read as the kind again, so what does not fit is a fault
of the patch (422 with cause ``patch``). Server-side apply creates what is not there; the others do not. A patch
is recomputed on the newest object when somebody was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from apimachinery.http.messages import Request
from apimachinery.kinds.hooks import Json
from apimachinery.merge import json_patch, merge_patch, strategic
from apimachinery.merge.errors import MergeError
from apimachinery.merge.value import go_text
from apimachinery.meta.errors import ApiError, bad_request, not_found
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.bodies import TYPE_META, finish_form, set_aside, unknown_faults
from apimachinery.server.request.codecs import JSON
from apimachinery.server.request.decoded import Decoded
from apimachinery.server.request.media_types import (
    APPLY_CBOR_PATCH,
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
)
from apimachinery.server.request.options import read_write_options
from apimachinery.server.request.routers import check_patch_type
from apimachinery.server.request.target import WriteTarget, Written, match_name, match_namespace, metadata_of
from apimachinery.server.write.apply import apply
from apimachinery.server.write.effects import Current, Steps
from apimachinery.server.write.families import WRITES
from apimachinery.server.write.patch_faults import (
    copied,
    encoded,
    patch_fault,
    translated,
)
from apimachinery.server.write.pipeline import Pipeline
from apimachinery.wire import json
from apimachinery.wire.json import DecodeFault, type_name
from apimachinery.wire.strict import duplicate_fields, field_texts, strict_error


def patch(
    request: Request, served: Served, namespace: str, name: str, subresource: str, pipeline: Pipeline
) -> Steps[Written]:
    """Patches an object. Raises ApiError 400, 404, 409, 413, 415, 422, 500."""
    media_type = check_patch_type(request, served)
    applies = media_type in (APPLY_PATCH, APPLY_CBOR_PATCH)
    options = read_write_options(request, "PatchOptions", apply=applies)
    target = WriteTarget.asked(request, served, namespace, name, options, subresource)
    try:
        if applies:
            return (yield from apply(request, target, pipeline, binary=media_type == APPLY_CBOR_PATCH))
        try:
            change = read_change(media_type, request.body, target)
        except ApiError:
            # First comes whether there is an object, and whether it can be converted.
            if (record := (yield Current(target))) is None:
                raise not_found(served.plural, served.group, target.name) from None
            served.read(record)
            raise
        return (
            yield from pipeline.update(
                target, lambda old: patched(target, old, change, served.warnings), pure=True
            )
        )
    except MergeError as error:
        raise translated(error) from None


Change = Callable[[Json], tuple[Any, Callable[[Any], str], Callable[[], Any] | None]]
"""From an object to the patched one, how a fault of that shows the patch, and what makes the patched one with its
fields in kube-apiserver's order; None for a strategic patch."""


def read_change(media_type: str, body: bytes, target: WriteTarget) -> Change:
    """What a patch that does not apply means. Raises ApiError 400, 422."""
    checked = target.options.validation != "Ignore"
    try:
        value = json.decode(body)
        repeated = duplicate_fields(body, value) if media_type != STRATEGIC_PATCH else []
        target.duplicates = field_texts(repeated, ())
    except DecodeFault as fault:
        raise bad_request(_undecoded(media_type, fault, checked)) from None
    if media_type == JSON_PATCH:
        target.duplicates += _unknown_members(value)
        return _changes(target, json_patch.apply, WRITES[target.served.family].after_json_patch, value)
    if media_type == MERGE_PATCH:
        return _changes(target, merge_patch.apply, WRITES[target.served.family].after_merge_patch, value)
    patch_type = target.served.compiled.patch_type
    assert patch_type is not None
    return lambda old: (
        strategic.apply(old, value, patch_type()),
        lambda _: go_text(json.decode(body)),
        None,
    )


def _changes(
    target: WriteTarget, apply: Callable[..., Any], ordered: Callable[[Any, Any], Any], value: Any
) -> Change:
    checked = target.options.validation != "Ignore"

    def change(old: Json) -> tuple[Any, Callable[[Any], str], Callable[[], Any]]:
        def laid_out() -> Any:
            return ordered(apply(_in_struct_order(old, target), value, checked=checked), value)

        return apply(old, value, checked=checked), lambda _: encoded(laid_out()), laid_out

    return change


def _in_struct_order(new: Any, target: WriteTarget) -> Any:
    order = target.served.compiled.in_struct_order
    return order(new) if order is not None and isinstance(new, dict) else new


def _undecoded(media_type: str, fault: DecodeFault, checked: bool) -> str:
    if media_type == STRATEGIC_PATCH or (media_type == JSON_PATCH and not checked):
        return str(fault)
    return f"error decoding patch: {fault}" if checked else "Invalid JSON Patch"


def patched(target: WriteTarget, old: Json, change: Change, warnings: Iterable[str]) -> Json:
    """The patched object, in form; the target's warnings become ``warnings`` and its own. Raises ApiError."""
    served = target.served
    found, show, laid_out = change(old)
    restores = laid_out is None
    # A strategic patch is read into the struct of the kind, which has its name without being told.
    if not isinstance(found, dict):
        misfit = f"json: cannot unmarshal {type_name(found)} into Go value of type {TYPE_META}"
        raise patch_fault(show(found), JSON.explain(misfit))
    # What a patch shares with the object it is applied to must not change with it. A strategic one was decoded in
    # between; the others keep their numbers as they were sent.
    new = copied(found, large=target.large, exact=not restores)
    target.warnings[:] = warnings
    if restores and all(isinstance(new.get(name, ""), str) for name in ("kind", "apiVersion")):
        new = {**new, "kind": served.kind, "apiVersion": served.api_version}
    served.family.check_patched_kind(served, new, target.name, lambda: show(new), patch_fault)
    schema = served.compiled.schema
    aside = set_aside(new, served)
    fault, dropped = schema.read(new)
    if fault and aside is not None:
        aside.put_back(new)
    if fault and restores:
        shown, new = new, copied(new)
        schema.restore(new)
        # It reads the fields in the order of the struct.
        if fault := schema.restore_fault(_in_struct_order(new, target)):
            raise patch_fault(show(shown), fault)
        dropped, aside = schema.prune(new), None
    if fault:
        raise patch_fault(show(new), fault)
    if laid_out is not None and len(dropped) > 1:
        _, dropped = schema.read(copied(laid_out()))
    decoded = Decoded(duplicates=target.duplicates)
    if unknown := unknown_faults(dropped, target.options.validation, decoded, target.warnings):
        # What is shown still has the fields that nobody knows.
        raise patch_fault(show(change(old)[0]), strict_error(unknown))
    target.empties = finish_form(new, served, aside)
    match_name(new, target.name)
    match_namespace(metadata_of(new), target.namespace)
    return new


_MEMBERS = frozenset({"op", "path", "from", "value"})


def _unknown_members(operations: Any) -> list[str]:
    if not isinstance(operations, list):
        return []
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(operations)
        if isinstance(operation, dict)
        for name in operation
        if name not in _MEMBERS
    ]
