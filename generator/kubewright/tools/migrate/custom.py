"""The life cycles of custom kinds: from their CRDs, the conversions in ``--rules``, and the release plan next to these.

A version is gone if the CRDs of its kind do not have or serve it, or if the rules say that it was removed; what a plan
says adds releases and replacements. These releases are the project's, so the release of Kubernetes plays no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kubewright.diagnostics import Diagnostics
from kubewright.ir.rules import Conversion
from kubewright.ir.versions import join_api_version, version_priority
from kubewright.source.conversions import read_conversions
from kubewright.source.lifecycle import Key, LifeCycle, Release
from kubewright.source.text import read_documents, read_single
from kubewright.tools.lifecycle.plan import PlanEntry, read_plan

PLAN = "lifecycle.yaml"


@dataclass(frozen=True, slots=True)
class CustomLifeCycle(LifeCycle):
    """The life cycle of a version of a custom kind: what it is now, whatever the release of Kubernetes."""

    gone: bool = False
    old: bool = False

    def is_to_come(self, release: Release) -> bool:
        """A CRD tells of nothing that is to come."""
        return False

    def is_gone(self, release: Release) -> bool:
        """Whether no server with these CRDs has it."""
        return self.gone

    def is_deprecated(self, release: Release) -> bool:
        """Whether its CRD or the plan says so."""
        return self.old


@dataclass(slots=True)
class CustomKinds:
    """What is known of custom kinds."""

    lives: dict[Key, LifeCycle] = field(default_factory=dict)
    plurals: dict[tuple[str, str], str] = field(default_factory=dict)
    newest: dict[tuple[str, str], str] = field(default_factory=dict)
    """Group and kind → the apiVersion to use."""

    def unknown(self, key: Key) -> LifeCycle | None:
        """The life cycle of a version that nobody speaks of: gone, if the CRDs have the kind."""
        api_version = self.newest.get((key[0].rpartition("/")[0], key[1]))
        return (
            None if api_version is None else CustomLifeCycle(replacement=f"{api_version}/{key[1]}", gone=True)
        )


def read_custom(crds: Sequence[Path], rules: Path | None, diagnostics: Diagnostics) -> CustomKinds:
    """The life cycles of the CRDs' kinds. What is wrong is a diagnostic."""
    from kubewright.source.reading import read_input

    kinds = CustomKinds()
    for document in read_input(crds, diagnostics).crds:
        _add_crd(kinds, document.value)
    conversions: list[Conversion] = []
    plan: dict[Key, PlanEntry] = {}
    if rules is not None:
        for path in sorted((rules / "conversions").glob("*.y*ml")):
            for document in read_documents(path, diagnostics, modern=True):
                conversions += read_conversions(document, diagnostics)
        if (rules / PLAN).is_file():
            whole = read_single(rules / PLAN, diagnostics)
            entries = read_plan(whole, diagnostics).entries if whole is not None else ()
            plan = {entry.key: entry for entry in entries}
    _add_removed(kinds, conversions, plan)
    for key, entry in plan.items():
        _add_plan(kinds, key, entry)
    return kinds


def _add_crd(kinds: CustomKinds, crd: object) -> None:
    spec = crd.get("spec") if isinstance(crd, dict) else None
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return
    group, kind = str(spec.get("group")), str(spec["names"].get("kind"))
    kinds.plurals[group, str(spec["names"].get("plural"))] = kind
    versions = [each for each in spec.get("versions") or () if isinstance(each, dict) and each.get("name")]
    versions.sort(key=lambda each: version_priority(str(each["name"])))
    served = [each for each in versions if each.get("served") is not False]
    if not served:
        return
    best = [each for each in served if each.get("deprecated") is not True] or served
    newest = kinds.newest[group, kind] = join_api_version(group, str(best[-1]["name"]))
    for version in versions:
        api_version = join_api_version(group, str(version["name"]))
        kinds.lives[api_version, kind] = CustomLifeCycle(
            replacement="" if api_version == newest else f"{newest}/{kind}",
            gone=version not in served,
            old=version.get("deprecated") is True,
        )


def _add_removed(
    kinds: CustomKinds, conversions: Iterable[Conversion], plan: Mapping[Key, PlanEntry]
) -> None:
    """Adds the versions that conversions lead from and no CRD has."""
    for conversion in conversions:
        key = conversion.spoke, conversion.spoke_kind
        if key not in kinds.lives and (conversion.removed_in or key in plan):
            hub = f"{conversion.hub}/{conversion.hub_kind}"
            kinds.lives[key] = CustomLifeCycle(removed=conversion.removed_in, replacement=hub, gone=True)


def _add_plan(kinds: CustomKinds, key: Key, entry: PlanEntry) -> None:
    """Adds what a plan says of a version: releases, and what to use instead."""
    life = kinds.lives.get(key)
    is_known = (entry.group, entry.kind) in kinds.newest
    if life is None and (entry.removed is None or not is_known):
        return
    known = life or CustomLifeCycle(
        gone=True, replacement=f"{kinds.newest[entry.group, entry.kind]}/{entry.kind}"
    )
    kinds.lives[key] = replace(
        known,
        deprecated=str(entry.deprecated or "") if known.is_deprecated(()) or known.is_gone(()) else "",
        removed=str(entry.removed or known.removed or ""),
        replacement=entry.replacement or known.replacement,
    )
