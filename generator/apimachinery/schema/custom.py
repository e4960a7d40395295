"""The schema of a custom resource, compiled: what an ``openAPIV3Schema`` makes of an object.

The root has object metadata next to its own properties; metadata is pruned and read by rules of its own, and so is
that of embedded resources.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from apimachinery.meta.field_errors import FieldError
from apimachinery.schema.defaulting import begin_defaults, compile_defaulter
from apimachinery.schema.metadata import (
    embedded_fault,
    metadata_fault,
    prune_embedded,
    prune_metadata,
    repair_embedded,
)
from apimachinery.schema.node import Schema, SchemaNode, SchemaNodeReader
from apimachinery.schema.pruning import compile_known, prune_value
from apimachinery.schema.validation.check import SchemaChecker
from apimachinery.schema.validation.embedded import embedded_faults, has_embedded
from apimachinery.schema.validation.explain import explain
from apimachinery.schema.validation.faults import field_errors
from apimachinery.schema.validation.lists import list_faults
from apimachinery.schema.validation.ratcheting import OldAndNew


def compile_custom(schema: Schema) -> CustomSchema:
    """Compile the ``openAPIV3Schema`` of a CRD's version (one that ``crd.check_crd`` accepts).

    Raises ``ValueError`` for a schema that nests too deep.
    """
    return CustomSchema(SchemaNodeReader().read(schema))


class CustomSchema:
    """The behaviour of a custom resource: structural schema at the root, object metadata next to it."""

    def __init__(self, node: SchemaNode):
        self.node = node
        self._fill = compile_defaulter(node)
        self._known = compile_known(node, is_resource=True)
        self._valid = SchemaChecker().check(node)
        self._embeds = has_embedded(node)

    def default(self, value: Any) -> None:
        if self._fill is not None:
            begin_defaults()
            self._fill(value)

    def prune(self, value: Any) -> list[str]:
        """See ``CompiledSchema``; unknown fields of the metadata first, those of embedded metadata last."""
        dropped = prune_metadata(value)
        if not self._known(value):
            dropped += prune_value(self.node, value, is_resource=True)
        if self._embeds:
            dropped += prune_embedded(self.node, value)
        return dropped

    def repair(self, value: Any) -> None:
        if self._embeds:
            repair_embedded(self.node, value)

    def binary_fields(self) -> tuple[tuple[str, ...], ...]:
        """See ``CompiledSchema``: a custom resource has none, whatever a format says."""
        return ()

    def unknown_fields(self, value: Any) -> list[str]:
        return self.prune(deepcopy(value))

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        fault = self.decode_fault(value)
        return (fault, []) if fault is not None else (None, self.prune(value))

    def decode_fault(self, value: Any) -> str | None:
        return metadata_fault(value) or (embedded_fault(self.node, value) if self._embeds else None)

    def restore(self, value: Any) -> None:
        """Does nothing: custom resources are not converted."""

    def restore_fault(self, value: Any) -> str | None:
        """See ``CompiledSchema``; custom resources take no strategic patches."""
        return self.decode_fault(value)

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        embedded = self.embedded_faults(value)
        if self.is_valid(value):
            return embedded
        return [*self.schema_faults(value, old), *embedded, *self.list_faults(value, old)]

    def is_valid(self, value: Any) -> bool:
        """The fast pass of the schema and its lists: no fault in either. May err on the side of no."""
        return self._valid(value)

    def schema_faults(self, value: Any, old: Any = None) -> list[FieldError]:
        """The faults against the schema alone."""
        correlation = OldAndNew(self.node, value, old) if old is not None else None
        return field_errors(explain(self.node, value, "", correlation).faults)

    def status_faults(self, value: dict[str, Any], old: Any = None) -> list[FieldError]:
        """The faults of an object's status alone, which is what a write of the status is held against."""
        node = self.node.properties.get("status")
        if node is None or "status" not in value:
            return []
        status = value["status"]
        of_status = old.get("status") if old is not None else None
        correlation = OldAndNew(node, status, of_status) if of_status is not None else None
        return field_errors(explain(node, status, "", correlation).faults, "status")

    def embedded_faults(self, value: Any) -> list[FieldError]:
        """The faults of embedded resources."""
        return list(embedded_faults(self.node, value)) if self._embeds else []

    def list_faults(self, value: Any, old: Any = None) -> list[FieldError]:
        """The duplicates in sets and keyed lists; none where the stored object has any too."""
        found = list(list_faults(self.node, value))
        return [] if found and old is not None and any(list_faults(self.node, old)) else found
