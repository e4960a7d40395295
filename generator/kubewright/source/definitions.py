"""The named definitions of a document. Which group-version each belongs to, ``ir.packages`` finds at link time."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.diagnostics import Diagnostics
from kubewright.ir.packages import APIMACHINERY
from kubewright.ir.types import (
    Definition,
    Duration,
    IntOrString,
    Json,
    MicroTime,
    Quantity,
    Time,
    Type,
    Value,
)
from kubewright.location import Document, escape_pointer
from kubewright.source import markers
from kubewright.source.schema import Dialect, SchemaReader

META_V1 = APIMACHINERY + "apis.meta.v1"

WELL_KNOWN: Mapping[str, Type] = {
    APIMACHINERY + "api.resource.Quantity": Quantity(),
    APIMACHINERY + "util.intstr.IntOrString": IntOrString(),
    META_V1 + ".Time": Time(),
    META_V1 + ".MicroTime": MicroTime(),
    META_V1 + ".Duration": Duration(),
}
"""Types whose JSON form OpenAPI v2 cannot say; every Kubernetes document calls them so."""


def read_definitions(
    schemas: Json, pointer: str, document: Document, dialect: Dialect, diagnostics: Diagnostics
) -> tuple[Definition, ...]:
    """The definitions under ``pointer``, in document order. What is not a schema is a diagnostic."""
    if not isinstance(schemas, dict):
        diagnostics.error("K101", "definitions must be an object of named schemas", document.at(pointer))
        return ()
    reader = SchemaReader(document, dialect, diagnostics)
    found: list[tuple[str, Value, tuple[tuple[str, str, str], ...]]] = []
    for name, schema in schemas.items():
        place = f"{pointer}/{escape_pointer(name)}"
        value = reader.read(schema, place)
        if name in WELL_KNOWN:
            value = Value(type=WELL_KNOWN[name], location=value.location, doc=value.doc)
        kinds = markers.read_kinds(schema, place, document, diagnostics) if isinstance(schema, dict) else ()
        found.append((name, value, kinds))
    return tuple(
        Definition(name=name, group="", version="", value=value, kinds=tuple(sorted(kinds)))
        for name, value, kinds in found
    )
