"""Definitions of a Kubernetes release as the ``kubernetes-validate`` package has them, joined with a resource catalog.

They are, for each release, the definitions of the upstream OpenAPI v2 document with every marker. They differ from
upstream in three ways, all undone here: optional fields are ``type: [T, null]``, references begin with ``#/$defs/``,
and ``apiVersion`` and ``kind`` of every kind carry an ``enum``. There are no paths, so resources come from the catalog
in ``specs/kubernetes`` (``catalog.py``). The definitions are part of kubewright (``releases.py``), their descriptions
of its wheel (``prose.py``); a source checkout takes those from the package, where it is installed.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import msgspec

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.ir.types import Json
from kubewright.location import Document, Location
from kubewright.source import prose
from kubewright.source import releases as packed
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


def described_releases() -> tuple[str, ...]:
    """The releases of the installed kubernetes-validate; empty where it is not installed."""
    return tuple(_folders())


def has_prose(release: str) -> bool:
    """Whether ``release`` can be read with its descriptions."""
    return release in _folders() or release in prose.releases(_prose_file())


def _prose_file() -> Path:
    return packed.packed_file().with_name(prose.FILE)


def releases() -> tuple[str, ...]:
    """The releases that are known, oldest first."""
    return packed.releases()


def definitions_file(release: str, *, with_prose: bool = False) -> Path | None:
    """The file that ``release``'s definitions are read from, or ``None`` where there are none."""
    if with_prose and release in _folders():
        return _folders()[release] / "_definitions.json"
    return packed.packed_file() if release in packed.releases() else None


def described(release: str) -> Json:
    """The definitions of a release with their descriptions. Raises ``KeyError`` where there are none."""
    if release in _folders():
        found: Json = msgspec.json.decode((_folders()[release] / "_definitions.json").read_bytes())["$defs"]
        return found
    texts = prose.read(_prose_file(), release)
    definitions = packed.definitions(release) or {}
    prose.describe(definitions, texts)
    return definitions


def load(release: str, diagnostics: Diagnostics, *, with_prose: bool = False) -> Document | None:
    """The definitions of ``release``, with descriptions where ``with_prose`` asks for them and they are there; ``None``
    after a diagnostic for a release that is not known."""
    definitions = described(release) if with_prose and has_prose(release) else packed.definitions(release)
    origin = f"kubernetes-validate:{release}"
    if definitions is None:
        known = ", ".join(packed.releases())
        hint = f"there are: {known}"
        diagnostics.error("K005", f"no definitions of Kubernetes {release}", Location(origin), hint)
        return None
    return Document(origin, {"$defs": definitions})


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
