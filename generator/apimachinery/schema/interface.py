"""What an OpenAPI schema means for an object: its defaults, its unknown fields, its faults.

Theory. A schema (a plain dict, as a CRD or a definition states it) is compiled once into functions over
plain JSON values; requests then only call them. They make up the write path of an object, in this order:

1. ``decode_fault``: can the body be read as this kind at all (400);
2. ``prune`` drops what the schema does not know and says what it dropped (the text of Warn and Strict);
3. ``default`` fills in what is missing;
4. ``validate`` says what is wrong, after admission had its turn (422).

Each has a fast pass for the usual object (nothing unknown, nothing missing, nothing wrong) and a slow one
that explains. ``prune`` and ``default`` change the object in place; the others never do.

Built-in kinds are decoded into typed structs by kube-apiserver, so for them a value of a wrong type is no
fault of a field but a failed decode, worded as Go's JSON decoder does, and unknown fields come in the order
of the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Protocol

from apimachinery.meta.field_errors import FieldError
from apimachinery.schema.decoding import Decoder
from apimachinery.schema.defaulting import compile_defaulter
from apimachinery.schema.metadata import embedded_fault, metadata_fault, prune_embedded, prune_metadata
from apimachinery.schema.node import Node, Schema, SchemaReader
from apimachinery.schema.pruning import compile_known, prune_value
from apimachinery.schema.validation.check import Checker
from apimachinery.schema.validation.embedded import embedded_faults, has_embedded
from apimachinery.schema.validation.explain import explain
from apimachinery.schema.validation.faults import field_errors
from apimachinery.schema.validation.lists import list_faults
from apimachinery.schema.validation.ratcheting import Correlation


class CompiledSchema(Protocol):
    """The behaviour of one schema: immutable, safe to share between threads."""

    def default(self, value: Any) -> None:
        """Fill in the schema's defaults, in place. Doing it twice changes nothing more.

        As CRD defaulting: below an object that is missing nothing is defaulted, unless a default puts the
        object there; a null for a field that is not nullable and has a default is dropped before; items of
        lists and values of maps count.
        """
        ...

    def prune(self, value: Any) -> list[str]:
        """Drop the fields that the schema does not have, in place; the paths dropped, as warnings name them.

        A path reads ``spec.l[0].m.key.x``. For a resource, ``metadata`` is pruned to what object metadata
        has.
        """
        ...

    def unknown_fields(self, value: Any) -> list[str]:
        """The paths that ``prune`` would drop; the value stays as it is."""
        ...

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Every fault in kube-apiserver's order (by field where that is random); empty for a valid value.

        With ``old`` (the stored object) values that did not change keep their old faults unreported:
        ratcheting. Faults of ``apiVersion``, ``kind`` and ``metadata`` at the root are not among them
        (``validate_object_meta`` has those), those of embedded resources are. CEL rules are not run here:
        ``apimachinery.cel.schemas.crd`` does.
        """
        ...

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        """``decode_fault`` and, where there is none, ``prune``: one pass for the usual value."""
        ...

    def decode_fault(self, value: Any) -> str | None:
        """Why the value cannot be decoded, or None.

        What follows ``cannot be handled as a KIND: `` in the 400.

        For a built-in the first value of a wrong type (``json: cannot unmarshal string into Go struct field
        DeploymentSpec.spec.replicas of type int32``); for a custom resource malformed object metadata.
        """
        ...


def compile_custom(schema: Schema) -> CustomSchema:
    """Compile the ``openAPIV3Schema`` of a CRD's version (one that ``crd.check_crd`` accepts).

    Raises ``ValueError`` for a schema that nests too deep.
    """
    return CustomSchema(SchemaReader().read(schema))


def compile_builtin(name: str, definitions: Mapping[str, Schema]) -> BuiltinSchema:
    """Compile a definition of a built-in kind.

    ``$ref: '#/definitions/NAME'`` is looked up in ``definitions``.

    Raises ``KeyError`` for a name that is not defined.
    """
    reader = SchemaReader(definitions)
    package = name.rpartition(".")[0]
    inner = f"{package}.JSONSchemaProps"
    return BuiltinSchema(reader.definition(name), reader.definition(inner) if inner in definitions else None)


class CustomSchema:
    """The behaviour of a custom resource: structural schema at the root, object metadata beside it."""

    def __init__(self, node: Node):
        self.node = node
        self._fill = compile_defaulter(node)
        self._known = compile_known(node, is_resource=True)
        self._valid = Checker().check(node)
        self._settled = Checker(settle=True).check(node, is_resource=True)
        self._embeds = has_embedded(node)

    def default(self, value: Any) -> None:
        """As the contract says."""
        if self._fill is not None:
            self._fill(value)

    def prune(self, value: Any) -> list[str]:
        """As the contract says; unknown fields of the metadata first, those of embedded metadata last."""
        dropped = prune_metadata(value)
        if not self._known(value):
            dropped += prune_value(self.node, value, is_resource=True)
        if self._embeds:
            dropped += prune_embedded(self.node, value)
        return dropped

    def unknown_fields(self, value: Any) -> list[str]:
        """As the contract says."""
        return self.prune(deepcopy(value))

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        """As the contract says."""
        fault = self.decode_fault(value)
        return (fault, []) if fault is not None else (None, self.prune(value))

    def decode_fault(self, value: Any) -> str | None:
        """As the contract says."""
        return metadata_fault(value) or (embedded_fault(self.node, value) if self._embeds else None)

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """As the contract says."""
        embedded = self.embedded_faults(value)
        if self.is_valid(value):
            return embedded
        return [*self.schema_faults(value, old), *embedded, *self.list_faults(value, old)]

    def settle(self, value: Any, old: Any = None) -> tuple[list[str], list[FieldError]]:
        """``prune``, ``default`` and ``validate`` in one pass, for callers that do nothing in between.

        The value is changed in place; the paths dropped, and the faults.
        """
        dropped = prune_metadata(value)
        if self._settled(value):
            if not self._embeds:
                return dropped, []
            return [*dropped, *prune_embedded(self.node, value)], self.embedded_faults(value)
        dropped += self.prune(value)
        self.default(value)
        return dropped, self.validate(value, old)

    def is_valid(self, value: Any) -> bool:
        """The fast pass of the schema and its lists: no fault in either. May err on the side of no."""
        return self._valid(value)

    def schema_faults(self, value: Any, old: Any = None) -> list[FieldError]:
        """The faults against the schema alone."""
        correlation = Correlation(self.node, value, old) if old is not None else None
        return field_errors(explain(self.node, value, "", correlation).faults)

    def status_faults(self, value: dict[str, Any], old: Any = None) -> list[FieldError]:
        """The faults of an object's status alone, which is what a write of the status is held against."""
        node = self.node.properties.get("status")
        if node is None or "status" not in value:
            return []
        status = value["status"]
        of_status = old.get("status") if old is not None else None
        correlation = Correlation(node, status, of_status) if of_status is not None else None
        return field_errors(explain(node, status, "", correlation).faults, "status")

    def embedded_faults(self, value: Any) -> list[FieldError]:
        """The faults of embedded resources."""
        return list(embedded_faults(self.node, value)) if self._embeds else []

    def list_faults(self, value: Any, old: Any = None) -> list[FieldError]:
        """The duplicates in sets and keyed lists; none where the stored object has any too."""
        found = list(list_faults(self.node, value))
        return [] if found and old is not None and any(list_faults(self.node, old)) else found


class BuiltinSchema:
    """The behaviour of a built-in kind. Its values' own rules are no schema's: they are generated code."""

    def __init__(self, node: Node, schema_node: Node | None):
        self.node = node
        self._decoder = Decoder(node, schema_node)

    def default(self, value: Any) -> None:
        """Nothing: the defaults of built-in kinds are generated code."""

    def prune(self, value: Any) -> list[str]:
        """As the contract says, in the order of the document."""
        return self._decoder.unknown(value, drop=True)

    def unknown_fields(self, value: Any) -> list[str]:
        """As the contract says, in the order of the document."""
        return self._decoder.unknown(value, drop=False)

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        """As the contract says."""
        return self._decoder.read(value)

    def decode_fault(self, value: Any) -> str | None:
        """As the contract says."""
        return self._decoder.fault(value)

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Nothing: a value of a wrong type is a decode fault, other rules are generated code."""
        return []
