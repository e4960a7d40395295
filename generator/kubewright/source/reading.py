"""Which source reads what: from the sources of a configuration to fragments.

A path is a file or a folder; what a document is, its own first keys say (``swagger``, ``openapi``,
``kind: CustomResourceDefinition``).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Fragment
from kubewright.ir.types import Json
from kubewright.source import kubernetes_validate
from kubewright.source.catalog import read_catalog
from kubewright.source.definitions import META_V1


def read_kubernetes(release: str, catalog: Path | None, diagnostics: Diagnostics) -> Fragment | None:
    """The definitions of a release with the resources of ``catalog``; ``None`` after a diagnostic."""
    document = kubernetes_validate.load(release, diagnostics)
    if document is None:
        return None
    fragment = kubernetes_validate.KubernetesValidate().read(document, diagnostics)
    if catalog is None:
        return fragment
    kinds = {kind: d.name for d in fragment.definitions if len(d.kinds) == 1 for kind in d.kinds}
    served = read_catalog(catalog, release, kinds, diagnostics)
    return replace(fragment, resources=served.resources, groups=served.groups)


def read_library(diagnostics: Diagnostics) -> Fragment | None:
    """What sources may refer to without bringing it: meta/v1 of the newest release."""
    fragment = read_kubernetes(kubernetes_validate.NEWEST, None, diagnostics)
    if fragment is None:
        return None
    members = tuple(
        d for d in fragment.definitions if d.name.startswith(META_V1.removesuffix("apis.meta.v1"))
    )
    return Fragment(origin=fragment.origin, definitions=members)


def read_facts(folder: Path | None, diagnostics: Diagnostics) -> tuple[tuple[str, Json], ...]:
    """The declared rules below ``folder``: (path without suffix, content), sorted by path."""
    del diagnostics
    if folder is None or not folder.is_dir():
        return ()
    import yaml

    return tuple(
        (path.relative_to(folder).with_suffix("").as_posix(), yaml.load(path.read_bytes(), yaml.CSafeLoader))
        for path in sorted(folder.rglob("*.yaml"))
    )
