"""CustomResourceDefinitions as ``--crds`` names them: files, folders, standard input, and Lists of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubewright.diagnostics import Diagnostics
from kubewright.source import reading


@dataclass(frozen=True, slots=True)
class GivenCrd:
    """One definition, and the file that it was read from."""

    file: str
    value: dict[str, Any]


def read_crds(paths: Iterable[Path], diagnostics: Diagnostics) -> list[GivenCrd]:
    """All CustomResourceDefinitions of ``paths``, in their order; other kinds are passed over. A path without any is an
    error in ``diagnostics``, as is what cannot be read."""
    documents = reading.read_crds(paths, diagnostics)
    return [GivenCrd(each.file, each.value) for each in documents if isinstance(each.value.get("spec"), dict)]
