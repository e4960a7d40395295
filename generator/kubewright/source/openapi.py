"""What OpenAPI v2 and v3 documents have in common, those of a Kubernetes-style API and others."""

from __future__ import annotations

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.ir.types import Definition, Json
from kubewright.location import Document
from kubewright.source import paths
from kubewright.source.alternatives import name_alternatives
from kubewright.source.definitions import read_definitions
from kubewright.source.operations import read_interface
from kubewright.source.schema import Dialect


def read_openapi(
    document: Document,
    schemas: Json,
    pointer: str,
    dialect: Dialect,
    diagnostics: Diagnostics,
    *,
    operations: bool = False,
) -> Fragment:
    """The named ``schemas`` at ``pointer`` and the resources of the paths; with ``operations`` also those that are no
    requests for resources, and the definitions that are written out in them."""
    definitions = read_definitions(schemas, pointer, document, dialect, diagnostics)
    resources = paths.read_resources(
        document,
        {kind: d.name for d in definitions for kind in d.kinds},
        {d.name: _kind(d) for d in definitions},
        diagnostics,
    )
    if not definitions and not resources and not document.value.get("paths"):
        diagnostics.error(
            "K003", "the document has neither definitions nor paths", document.at(""), "is it the right file?"
        )
    interface = None
    if operations:
        interface, inline = read_interface(document, dialect, {d.name for d in definitions}, diagnostics)
        definitions += inline
    definitions = name_alternatives(definitions)
    return Fragment(origin=document.file, definitions=definitions, resources=resources, interface=interface)


def _kind(definition: Definition) -> str:
    return definition.kinds[0][2] if len(definition.kinds) == 1 else ""
