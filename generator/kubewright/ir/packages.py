"""Which group-version a definition belongs to.

Kubernetes names a definition ``<package>.<Type>`` (``io.k8s.api.apps.v1.Deployment``). The GVKs of a package's
kinds say the group and version of all its parts; a package without kinds takes them from its own path. That can
only be known over all fragments: of the documents /openapi/v3 serves, only one knows which group PodSpec is of.
apimachinery's types without a group-version of their own (Quantity, IntOrString, RawExtension, version Info)
are emitted next to meta/v1, where users look for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubewright.ir.versions import is_version

APIMACHINERY = "io.k8s.apimachinery.pkg."
CORE = "io.k8s.api.core."
_KUBERNETES = (
    "io.k8s.api.",
    "io.k8s.apimachinery.",
    "io.k8s.apiextensions-apiserver.",
    "io.k8s.kube-aggregator.",
    "io.k8s.kubernetes.",  # of all built-in types, up to 1.8
)
META_GROUP_VERSION = ("meta.k8s.io", "v1")


def group_versions(
    named: Iterable[tuple[str, tuple[tuple[str, str, str], ...]]],
) -> dict[str, tuple[str, str]]:
    """Package → (group, version): the one most of its kinds are registered for, else read from its path."""
    votes: dict[str, Counter[tuple[str, str]]] = {}
    for name, kinds in named:
        counter = votes.setdefault(package_of(name), Counter())
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
    if not group or not is_version(version):
        return None
    return ("" if package.startswith(CORE) else group, version)


def is_built_in(name: str) -> bool:
    """Whether the definition ``name`` is of Kubernetes' own document. Those of others may begin like it: a group such
    as ``gateway.networking.k8s.io`` has ``io.k8s.networking.gateway.v1.Gateway``."""
    return name.startswith(_KUBERNETES)


def package_of(name: str) -> str:
    """``io.k8s.api.apps.v1`` of ``io.k8s.api.apps.v1.Deployment``."""
    return name.rpartition(".")[0]
