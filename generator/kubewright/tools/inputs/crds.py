"""CustomResourceDefinitions as ``--crds`` names them: files, folders, standard input, and Lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.location import Location
from kubewright.source.text import paths_below, read_documents


@dataclass(frozen=True, slots=True)
class GivenCrd:
    """One definition, and the file that it was read from."""

    file: str
    value: dict[str, Any]


def read_crds(paths: Iterable[Path], diagnostics: Diagnostics) -> list[GivenCrd]:
    """All CustomResourceDefinitions of ``paths``, in their order; other kinds are passed over. A path without any is an
    error in ``diagnostics``, as is what cannot be read."""
    found: list[GivenCrd] = []
    for path in paths:
        before = len(found)
        had_errors = diagnostics.has_errors
        for file in paths_below(path, diagnostics):
            for document in read_documents(file, diagnostics):
                found += (GivenCrd(document.file, value) for value in _crds_in(document.value))
        if len(found) == before and diagnostics.has_errors == had_errors:
            diagnostics.error("K003", "holds no CustomResourceDefinition", Location(str(path)))
    return found


def _crds_in(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict):
        return
    items = value.get("items") if value.get("kind") == "List" else [value]
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("kind") == "CustomResourceDefinition":
            if isinstance(item.get("spec"), dict):
                yield item
