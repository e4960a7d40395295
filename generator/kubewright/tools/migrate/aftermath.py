"""What is known only of several documents, or of one after it was rewritten."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from apimachinery.wire import yaml as wire_yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.tools.migrate.references import is_kustomization, patch_files
from kubewright.tools.validate.inputs import Chunk

if TYPE_CHECKING:
    from kubewright.tools.validate.kinds import Kinds


@dataclass(frozen=True, slots=True)
class Refusals:
    """What a release has against converted documents. A release without schemas (before 1.25) has nothing."""

    release: str
    package: str
    crds: tuple[Path, ...] = ()

    def of(self, chunk: Chunk) -> Iterator[str]:
        """The faults of a document, as ``kubewright validate --strict`` tells them."""
        from kubewright.tools.validate.check import CheckOptions, judge

        kinds = _kinds(self.release.removeprefix("v"), self.package, self.crds)
        for finding in judge(chunk, kinds, CheckOptions(strict=True, ignore_missing_schemas=True)).findings:
            if finding.severity is Severity.ERROR:
                yield finding.message


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Whether what a conversion made is as valid as what it was made from, where both versions are known: those of
    ``crds`` and of the newest release."""

    kinds: Kinds

    @classmethod
    def at(cls, crds: Sequence[Path], package: str) -> Arrivals:
        """The kinds of the CRDs below some paths, and the built-in ones."""
        from kubewright.source.kubernetes_validate import NEWEST

        return cls(_kinds(NEWEST, package, tuple(crds)))

    def faults(self, before: Chunk, after: Chunk) -> list[str]:
        """What is wrong with ``after``; nothing where something was wrong with ``before``."""
        from kubewright.tools.validate.check import CheckOptions, judge

        for chunk in (before, after):
            judged = judge(chunk, self.kinds, CheckOptions(strict=True))
            errors = [each for each in judged.findings if each.severity is Severity.ERROR]
            if errors:
                is_new = chunk is after and not judged.missing
                return [each.message for each in errors] if is_new else []
        return []


@cache
def _read_kinds(release: str, package: str) -> Kinds:
    """The kinds of a release, read when the first conversion asks for them."""
    from kubewright.tools.validate.kinds import Kinds

    kinds = Kinds(release, package)
    with suppress(LookupError):
        kinds.load()
    return kinds


def _kinds(release: str, package: str, crds: Sequence[Path]) -> Kinds:
    """The kinds of a release, and those of the CRDs below some paths."""
    from kubewright.source.reading import read_input

    if not crds:
        return _read_kinds(release, package)
    kinds = _read_kinds.__wrapped__(release, package)
    for document in read_input(crds, Diagnostics()).crds:
        kinds.add_crd(document.value)
    return kinds


def patches_of(chunks: Sequence[Chunk]) -> frozenset[str]:
    """The files that kustomizations among the documents name as strategic merge patches."""
    found: set[str] = set()
    for chunk in chunks:
        path = Path(chunk.file)
        if path.stem != "kustomization" and b"kustomize.config.k8s.io" not in chunk.content:
            continue
        try:
            value = wire_yaml.decode(chunk.content)
        except (DecodeFault, RecursionError, ValueError):
            continue
        if isinstance(value, dict) and is_kustomization(value, chunk.file):
            found |= {os.path.normpath(path.parent / name) for name in patch_files(value)}
    return frozenset(found)
