"""Definitions of a Kubernetes release from the ``kubernetes-validate`` package, joined with a resource catalog.

The package ships, for each release, the definitions of the upstream OpenAPI v2 document with every marker. It
differs from upstream in three ways, all undone here: optional fields are ``type: [T, null]``, references begin
with ``#/$defs/``, and ``apiVersion`` and ``kind`` of every kind carry an ``enum``. It has no paths, so
resources come from the catalog in ``specs/kubernetes`` (``catalog.py``).
"""

from __future__ import annotations

import importlib.util
import json
import re
from functools import cache
from pathlib import Path

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.ir.types import Json
from kubewright.location import Document, Location
from kubewright.source.definitions import read_definitions
from kubewright.source.markers import GROUP_VERSION_KIND
from kubewright.source.schema import KUBERNETES_VALIDATE

NEWEST = "1.37"
_FOLDER = re.compile(r"^v(\d+\.\d+)\.\d+-local$")


@cache
def _folders() -> dict[str, Path]:
    spec = importlib.util.find_spec("kubernetes_validate")
    if spec is None or spec.origin is None:
        return {}
    root = Path(spec.origin).parent / "kubernetes-json-schema"
    found = {}
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        match = _FOLDER.match(folder.name)
        if match and (folder / "_definitions.json").is_file():
            found[match.group(1)] = folder
    return found


def releases() -> tuple[str, ...]:
    """The releases the installed package ships, oldest first; empty where it is not installed."""
    return tuple(sorted(_folders(), key=lambda text: tuple(int(part) for part in text.split("."))))


def definitions_file(release: str) -> Path | None:
    """The file of ``release``'s definitions, or ``None`` where the package has no such release."""
    folder = _folders().get(release)
    return folder / "_definitions.json" if folder else None


def load(release: str, diagnostics: Diagnostics) -> Document | None:
    """The definitions of ``release``; ``None`` after a diagnostic where they cannot be had."""
    origin = f"kubernetes-validate:{release}"
    path = definitions_file(release)
    if path is None:
        known = ", ".join(releases())
        diagnostics.error(
            "K005",
            f"no definitions of Kubernetes {release}",
            Location(origin),
            f"the installed kubernetes-validate has: {known}"
            if known
            else "install it: pip install 'kubewright[generate]'",
        )
        return None
    return Document(origin, json.loads(path.read_bytes()))


class KubernetesValidate:
    """The source of that package's definitions."""

    def read(self, document: Document, diagnostics: Diagnostics) -> Fragment:
        """All definitions of the release; resources are the catalog's."""
        schemas = document.value.get("$defs", {})
        for schema in schemas.values():
            _drop_type_meta_enums(schema)
        definitions = read_definitions(schemas, "/$defs", document, KUBERNETES_VALIDATE, diagnostics)
        return Fragment(origin=document.file, definitions=definitions)


def _drop_type_meta_enums(schema: Json) -> None:
    """Takes the apiVersions and kinds out that the package wrote into registered definitions."""
    if GROUP_VERSION_KIND in schema:
        for name in ("apiVersion", "kind"):
            schema.get("properties", {}).get(name, {}).pop("enum", None)
