"""When a kind of an API version came, was deprecated, and went, and what to use instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kubewright.config import specs_folder
from kubewright.diagnostics import Diagnostics
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


def release_of(text: str) -> Release:
    """``1.36`` or ``v1.36`` as numbers that compare. Raises ``ValueError``."""
    return tuple(int(part) for part in text.removeprefix("v").split("."))


def read_lifecycles(folder: Path | None = None) -> Mapping[Key, LifeCycle]:
    """All life cycles that the catalog in ``folder`` (that of this installation) knows. Raises ``OSError``."""
    folder = folder or specs_folder() / "kubernetes"
    notes = _notes(folder)
    found: dict[Key, LifeCycle] = {}
    for path in sorted((folder / "resources").glob("*.yaml")):
        document = _load(path)
        group = document["group"]
        for entry in document["resources"]:
            for version, facts in entry["versions"].items():
                key = (f"{group}/{version}" if group else version, entry["kind"])
                found[key] = _life_cycle(facts, notes.get(key, ()))
    for entry in _load(folder / "removed.yaml")["resources"]:
        key = (entry["api_version"], entry["kind"])
        found[key] = _life_cycle(entry, notes.get(key, ()))
    return found


def _life_cycle(facts: Mapping[str, Any], notes: tuple[str, ...]) -> LifeCycle:
    texts = {
        name: str(facts.get(name) or "") for name in ("introduced", "deprecated", "removed", "replacement")
    }
    return LifeCycle(**texts, notes=notes)


def _load(path: Path) -> Any:
    return yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)


def _notes(folder: Path) -> dict[Key, tuple[str, ...]]:
    """What a person who migrates must know, from the conversion files."""
    found: dict[Key, tuple[str, ...]] = {}
    for path in sorted((folder / "conversions").glob("*.yaml")):
        for document in read_documents(path, Diagnostics()):
            for entry in document.value.get("kinds", [document.value]):
                for names, body in entry["spokes"].items():
                    if isinstance(body, dict):
                        for name in names.replace(" ", "").split(","):
                            found[name, str(body.get("kind", entry["kind"]))] = tuple(body.get("notes") or ())
    return found
