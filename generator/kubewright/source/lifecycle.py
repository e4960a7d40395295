"""When a kind of an API version came, was deprecated, and went, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubewright.config import specs_folder
from kubewright.diagnostics import Diagnostics
from kubewright.ir.versions import join_api_version, version_priority
from kubewright.source.conversions import read_conversions
from kubewright.source.text import read_documents

Release = tuple[int, ...]
Key = tuple[str, str]
"""(apiVersion, kind)."""


@dataclass(frozen=True, slots=True)
class LifeCycle:
    """The releases of one kind at one version; empty where there is none yet. ``replacement`` is
    ``group/version/Kind``."""

    introduced: str = ""
    deprecated: str = ""
    removed: str = ""
    replacement: str = ""
    notes: tuple[str, ...] = ()

    @property
    def successor(self) -> Key | None:
        """The (apiVersion, kind) to use instead."""
        api_version, _, kind = self.replacement.rpartition("/")
        return (api_version, kind) if api_version else None

    def is_to_come(self, release: Release) -> bool:
        """Whether ``release`` does not have it yet."""
        return bool(self.introduced) and release_of(self.introduced) > release

    def is_deprecated(self, release: Release) -> bool:
        """Whether it is deprecated in ``release``."""
        return bool(self.deprecated) and release_of(self.deprecated) <= release

    def is_gone(self, release: Release) -> bool:
        """Whether ``release`` does not have it any more."""
        return bool(self.removed) and release_of(self.removed) <= release


def release_of(text: str) -> Release:
    """``1.36`` or ``v1.36`` as numbers that compare. Raises ``ValueError``."""
    return tuple(int(part) for part in text.removeprefix("v").split("."))


@cache
def read_lifecycles(folder: Path | None = None) -> Mapping[Key, LifeCycle]:
    """All life cycles that the catalog in ``folder`` (that of this installation) knows. Raises ``OSError``."""
    folder = folder or specs_folder() / "kubernetes"
    notes = _notes(folder)
    found: dict[Key, LifeCycle] = {}
    for path in sorted((folder / "resources").glob("*.yaml")):
        document = _load(path)
        group = document["group"]
        for entry in document["resources"]:
            ordered = sorted(entry["versions"], key=version_priority)
            for version, later in zip(ordered, [*ordered[1:], ""], strict=True):
                facts = entry["versions"][version]
                key = (_join(group, version), entry["kind"])
                life = _life_cycle(facts, notes.get(key, ()))
                if later and not life.replacement and (life.deprecated or life.removed):
                    # The next version of the kind follows where nothing else is said.
                    life = replace(life, replacement=f"{_join(group, later)}/{entry['kind']}")
                found[key] = life
    for entry in _load(folder / "removed.yaml")["resources"]:
        key = (entry["api_version"], entry["kind"])
        found[key] = _life_cycle(entry, notes.get(key) or tuple(entry.get("notes", ())))
    return found


@cache
def read_plurals(folder: Path | None = None) -> Mapping[tuple[str, str], str]:
    """(group, name of a resource in paths and rules) → kind, of all kinds that are or were built in."""
    folder = folder or specs_folder() / "kubernetes"
    found: dict[tuple[str, str], str] = {}
    of_kind: dict[str, str] = {}
    for path in sorted((folder / "resources").glob("*.yaml")):
        document = _load(path)
        for entry in document["resources"]:
            found[document["group"], entry["plural"]] = entry["kind"]
            of_kind[entry["kind"]] = entry["plural"]
    for entry in _load(folder / "removed.yaml")["resources"]:
        plural = entry.get("plural") or of_kind.get(entry["kind"])
        if plural:
            found.setdefault((entry["api_version"].rpartition("/")[0], plural), entry["kind"])
    return found


def _join(group: str, version: str) -> str:
    return join_api_version(group, version)


def _life_cycle(facts: Mapping[str, Any], notes: tuple[str, ...]) -> LifeCycle:
    texts = {
        name: str(facts.get(name) or "") for name in ("introduced", "deprecated", "removed", "replacement")
    }
    return LifeCycle(**texts, notes=notes)


def _load(path: Path) -> Any:
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def _notes(folder: Path) -> dict[Key, tuple[str, ...]]:
    """What a person who migrates must know, from the conversion files."""
    diagnostics = Diagnostics()
    return {
        (conversion.spoke, conversion.spoke_kind): conversion.notes
        for path in sorted((folder / "conversions").glob("*.yaml"))
        for document in read_documents(path, diagnostics, modern=True)
        for conversion in read_conversions(document, diagnostics)
    }
