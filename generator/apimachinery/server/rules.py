"""All that is wrong with an object: metadata, schema, the kind's own rules, CEL rules, in kube-apiserver's order."""

from __future__ import annotations

from apimachinery.cel.crd import ABSENT, NOT_CHECKED
from apimachinery.crd.rules import rule_error
from apimachinery.custom_resource import scale_faults
from apimachinery.meta.field_errors import ROOT, FieldError, Reason
from apimachinery.schema import CustomSchema
from apimachinery.server.hooks import Json
from apimachinery.server.served import Served

_BLOCKING = frozenset(
    (Reason.NOT_SUPPORTED, Reason.REQUIRED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.TYPE_INVALID)
)
"""Faults that leave an object in no state for its rules to be run."""


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
    valid = schema.is_valid(obj)
    schema_faults = [] if valid else schema.schema_faults(obj, old)
    if compiled.scale is not None:
        schema_faults += scale_faults(obj, compiled.scale, status_only=status)
    schema_faults += schema.embedded_faults(obj)
    if not valid:
        schema_faults += schema.list_faults(obj, old)
    faults = [*metadata_faults, *schema_faults, *(own(obj, old) if own is not None else [])]
    rules = compiled.rules
    if rules is None or not rules.has_rules:
        return faults
    if any(fault.reason in _BLOCKING for fault in schema_faults):
        return [*faults, FieldError(Reason.INVALID, ROOT, NOT_CHECKED, None)]
    outcome = rules.validate(obj, ABSENT if old is None else old)
    warnings.extend(str(rule_error(violation)) for violation in outcome.warnings)
    return faults + [rule_error(violation) for violation in outcome.violations]
