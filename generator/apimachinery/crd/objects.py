"""Validation of a custom resource, whole: the order in which the API server asks its questions.

Type meta first, alone; then metadata, schema, the scale subresource's fields, embedded resources, sets and
keyed lists, and last the CEL rules, which are not asked where a fault might mislead them. Source:
apiextensions' custom resource strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from apimachinery.cel.schemas.crd import ABSENT, NOT_CHECKED, CompiledRules
from apimachinery.crd.rules import rule_error
from apimachinery.meta.accessors import accessor_error, nested
from apimachinery.meta.field_errors import ROOT, FieldError, Reason, invalid_value
from apimachinery.meta.object_meta import (
    finalizer_warnings,
    repeated_update_faults,
    validate_object_meta,
)
from apimachinery.schema.custom import CustomSchema

_BLOCKING = frozenset(
    {Reason.NOT_SUPPORTED, Reason.REQUIRED, Reason.TOO_LONG, Reason.TOO_MANY, Reason.TYPE_INVALID}
)
_INT32_MAX = 2**31 - 1


@dataclass(slots=True)
class ObjectValidation:
    """``faults`` refuse the object; ``warnings`` are texts of Warning headers."""

    faults: list[FieldError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def blocks_rules(self) -> bool:
        """Whether the shape of the object is so wrong that no rules can be asked about its values."""
        return any(fault.reason in _BLOCKING for fault in self.faults)


def validate_custom_resource(
    obj: dict[str, Any],
    old: dict[str, Any] | None,
    schema: CustomSchema,
    *,
    rules: CompiledRules | None,
    namespaced: bool,
    scale: dict[str, Any] | None = None,
    kind: str = "",
    api_version: str = "",
) -> ObjectValidation:
    """Validate a create, or with ``old`` an update, of a pruned and defaulted custom resource.

    ``kind`` and ``api_version`` are what the URL asks for, empty where the caller has compared them;
    ``scale`` is the version's ``subresources.scale``. With ``old`` unchanged values are not held against
    the object.
    """
    if said := list(_type_faults(obj, kind, api_version)):
        return ObjectValidation(said)
    meta = obj.get("metadata") or {}
    if old is None:
        faults = validate_object_meta(meta, namespaced=namespaced)
    else:
        old_meta = old.get("metadata") or {}
        faults = repeated_update_faults(meta, old_meta, 0, 1, False, namespaced=namespaced)
    found = ObjectValidation(faults)
    check_values(found, obj, old, schema, rules=rules, scale=scale)
    return found


def check_values(
    found: ObjectValidation,
    obj: dict[str, Any],
    old: dict[str, Any] | None,
    schema: CustomSchema,
    *,
    rules: CompiledRules | None,
    scale: dict[str, Any] | None,
    status_only: bool = False,
    own: Callable[[dict[str, Any], dict[str, Any] | None], list[FieldError]] | None = None,
    misfit: Callable[[], None] | None = None,
) -> None:
    """Add to ``found``, which has the faults of the metadata, everything that is asked after them.

    ``status_only`` for a write of the status; ``own`` is what the kind's author asks besides the schema; ``misfit`` is
    called where the object does not fit the schema, be it by what is unchanged.
    """
    valid = schema.is_valid(obj)
    if not valid:
        if misfit is not None:
            misfit()
        of_schema = schema.status_faults if status_only else schema.schema_faults
        found.faults += of_schema(obj, old)
    if scale is not None:
        found.faults += scale_faults(obj, scale, status_only=status_only)
    found.faults += schema.embedded_faults(obj)
    if not valid:
        found.faults += schema.list_faults(obj, old)
    if own is not None:
        found.faults += own(obj, old)
    if rules is not None and rules.has_rules:
        _run_rules(found, rules, obj, old)
    if not found.faults:
        old_meta = None if old is None else old.get("metadata") or {}
        found.warnings += finalizer_warnings(obj.get("metadata") or {}, old_meta)


def _type_faults(obj: dict[str, Any], kind: str, api_version: str) -> Iterator[FieldError]:
    if kind and obj.get("kind") != kind:
        yield invalid_value("kind", obj.get("kind") or "", f"must be {kind}")
    if api_version and obj.get("apiVersion") != api_version:
        yield invalid_value("apiVersion", obj.get("apiVersion") or "", f"must be {api_version}")


def _run_rules(
    found: ObjectValidation, rules: CompiledRules, obj: dict[str, Any], old: dict[str, Any] | None
) -> None:
    if found.blocks_rules:
        found.faults.append(invalid_value(ROOT, None, NOT_CHECKED))
        return
    outcome = rules.validate(obj, ABSENT if old is None else old)
    found.faults += [rule_error(each) for each in outcome.violations]
    found.warnings += [str(rule_error(each)) for each in outcome.warnings]


def scale_faults(
    obj: dict[str, Any], scale: dict[str, Any], *, status_only: bool = False
) -> list[FieldError]:
    """The faults of the fields that the scale subresource reads.

    ``status_only`` for a write of the status.
    """
    faults: list[FieldError] = []
    if not status_only:
        faults += _replicas_faults(obj, scale["specReplicasPath"])
    faults += _replicas_faults(obj, scale["statusReplicasPath"])
    if path := scale.get("labelSelectorPath"):
        faults += _nested_faults(obj, path, str)
    return faults


def _replicas_faults(obj: dict[str, Any], path: str) -> list[FieldError]:
    faults = _nested_faults(obj, path, int)
    if faults:
        return faults
    count = nested(obj, path)
    if count is None:
        return []
    if count < 0:
        return [invalid_value(path, count, "should be a non-negative integer")]
    if count > _INT32_MAX:
        return [invalid_value(path, count, f"should be less than or equal to {_INT32_MAX}")]
    return []


def _nested_faults(obj: Any, path: str, wanted: type) -> list[FieldError]:
    text = accessor_error(obj, path, wanted)
    return [invalid_value(path, 0 if wanted is int else "", text)] if text else []
