"""All that is wrong with an object: metadata, schema, the kind's own rules, CEL rules, in kube-apiserver's order."""

from __future__ import annotations

from apimachinery.custom_resource import Validation, check_values
from apimachinery.meta.field_errors import FieldError
from apimachinery.schema import CustomSchema
from apimachinery.server.hooks import Json
from apimachinery.server.served import Served


def check_object(
    served: Served,
    obj: Json,
    old: Json | None,
    metadata_faults: list[FieldError],
    warnings: list[str],
    *,
    status: bool = False,
) -> list[FieldError]:
    """Every fault of an object; ``metadata_faults`` are those of its metadata. Adds to ``warnings``."""
    compiled, hooks = served.compiled, served.hooks
    own = hooks.validate
    if status and old is not None and served.typed:
        of_status = hooks.validate_status
        return [*metadata_faults, *(of_status(obj, old) if of_status is not None else [])]
    if served.typed:
        faults = [*metadata_faults]
        if compiled.validator is not None:
            faults += compiled.validator(obj, old)
        return faults + (own(obj, old) if own is not None else [])
    schema = compiled.schema
    assert isinstance(schema, CustomSchema)  # what is not typed is compiled from a CRD's schema
    found = Validation(metadata_faults, warnings)
    check_values(
        found, obj, old, schema, rules=compiled.rules, scale=compiled.scale, status_only=status, own=own
    )
    return found.faults
