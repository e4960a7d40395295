"""Named definitions of a document that names them as Kubernetes does, and which group-version each belongs to.

Kubernetes names a definition ``<package>.<Type>`` (``io.k8s.api.apps.v1.Deployment``). The GVKs of a package's
kinds say the group and version of all its parts; a package without kinds takes them from its own path.
apimachinery's types without a group-version of their own (Quantity, IntOrString, RawExtension, version Info)
are emitted beside meta/v1, where users look for them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from kubewright.diagnostics import Diagnostics
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

APIMACHINERY = "io.k8s.apimachinery.pkg."
META_V1 = APIMACHINERY + "apis.meta.v1"
META_GROUP_VERSION = ("meta.k8s.io", "v1")

WELL_KNOWN: Mapping[str, Type] = {
    APIMACHINERY + "api.resource.Quantity": Quantity(),
    APIMACHINERY + "util.intstr.IntOrString": IntOrString(),
    META_V1 + ".Time": Time(),
    META_V1 + ".MicroTime": MicroTime(),
    META_V1 + ".Duration": Duration(),
}
"""Types whose JSON form OpenAPI v2 cannot say; every Kubernetes document calls them so."""

_VERSION = re.compile(r"^v\d+((alpha|beta)\d+)?$")


def read_definitions(
    schemas: Json, pointer: str, document: Document, dialect: Dialect, diagnostics: Diagnostics
) -> tuple[Definition, ...]:
    """The definitions under ``pointer``, in document order. What is no schema is a diagnostic."""
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
    owners = group_versions((name, kinds) for name, _, kinds in found)
    return tuple(
        Definition(
            name=name,
            group=owners[_package(name)][0],
            version=owners[_package(name)][1],
            value=value,
            kinds=kinds,
        )
        for name, value, kinds in found
    )


def group_versions(
    named: Iterable[tuple[str, tuple[tuple[str, str, str], ...]]],
) -> dict[str, tuple[str, str]]:
    """Package → (group, version): the one most of its kinds are registered for, else read from its path."""
    votes: dict[str, Counter[tuple[str, str]]] = {}
    for name, kinds in named:
        counter = votes.setdefault(_package(name), Counter())
        if len(kinds) == 1:
            counter[kinds[0][:2]] += 1
    sole = {pair for counter in votes.values() for pair in counter}
    owners = {}
    for package, counter in votes.items():
        if package.startswith(APIMACHINERY):
            owners[package] = META_GROUP_VERSION
        elif counter:
            owners[package] = min(counter, key=lambda pair: (-counter[pair], pair))
        else:
            owners[package] = _from_path(package) or (next(iter(sole)) if len(sole) == 1 else ("", ""))
    return owners


def _from_path(package: str) -> tuple[str, str] | None:
    *_, group, version = ["", "", *package.split(".")]
    return (group, version) if group and _VERSION.match(version) else None


def _package(name: str) -> str:
    return name.rpartition(".")[0]
