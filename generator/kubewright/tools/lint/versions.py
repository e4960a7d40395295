"""L5: versions of a group, by the deprecation policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from kubewright.diagnostics import Severity
from kubewright.ir.api import Api, Resource
from kubewright.ir.versions import is_stable, version_priority
from kubewright.tools.lint.rule import CONVENTIONS, CRD, CRD_DOCS, DEPRECATION, api_rule


def _kinds(api: Api) -> Iterator[list[Resource]]:
    ordered = sorted(api.resources, key=lambda r: (r.group, r.plural, version_priority(r.version)))
    for _, versions in groupby(ordered, key=lambda r: (r.group, r.plural)):
        yield list(versions)


def _release(text: str) -> tuple[int, ...]:
    """A release such as 1.36 as numbers; ``(-1,)`` where none is reported, which is not a release."""
    return tuple(int(part) for part in text.split(".")) if text else (-1,)


def _is_told(versions: Sequence[Resource]) -> bool:
    """Whether the description says which version is stored. OpenAPI does not: all are taken to be then; a CRD with
    several is refused when it is read."""
    return len(versions) == 1 or not all(r.storage for r in versions)


@api_rule(
    "L501 storage-stability",
    why="The storage version may not move ahead of, nor stay behind, what released clients can read.",
    source=f"{DEPRECATION}: rule #4b",
    hint="store the most stable version that every supported release serves",
)
def storage_version_priority(api: Api) -> Iterator[tuple[Resource, str]]:
    """A less stable version is not stored where a more stable one is served, except for the release that brings it."""
    # A CRD does not tell releases: it is sure of a stored version only that is not even served any more.
    for stored, best in _stored_behind(api):
        if stored.introduced or best.introduced or not stored.served:
            yield stored, f"{stored.version} is stored, though {best.version} is more stable"


@api_rule(
    "L507 storage-behind",
    severity=Severity.NOTE,
    profiles=CRD,
    why="Storage moves to a new version one release after that version came: not earlier, and not never.",
    source=f"{DEPRECATION}: rule #4b",
    hint="store the more stable version once a release has served both",
)
def storage_behind(api: Api) -> Iterator[tuple[Resource, str]]:
    """A CRD stores its most stable version, or will in the next release: it does not say since when it is served."""
    for stored, best in _stored_behind(api):
        if not (stored.introduced or best.introduced) and stored.served:
            yield stored, f"{stored.version} is stored, {best.version} is more stable"


def _stored_behind(api: Api) -> Iterator[tuple[Resource, Resource]]:
    """The stored version and the most stable one served, where the former is of a lower level."""
    newest = max((_release(r.introduced) for r in api.resources if r.introduced), default=())
    for versions in _kinds(api):
        stored = [r for r in versions if r.storage] if _is_told(versions) else []
        best = max(
            (r for r in versions if r.served and not r.deprecated and _release(r.introduced) != newest),
            key=lambda r: version_priority(r.version),
            default=None,
        )
        if (
            stored
            and best is not None
            and version_priority(stored[0].version)[0] < version_priority(best.version)[0]
        ):
            yield stored[0], best


@api_rule(
    "L502 deprecation-order",
    why="A version may be deprecated only for one at least as stable.",
    source=f"{DEPRECATION}: rule #3",
    hint="deprecate it once a version of the same or a higher level is served",
)
def deprecation_order(api: Api) -> Iterator[tuple[Resource, str]]:
    """A deprecated version has a successor at least as stable."""
    for versions in _kinds(api):
        for old in versions:
            better = [
                r
                for r in versions
                if r.served
                and (
                    version_priority(r.version)[0] > version_priority(old.version)[0]
                    or (
                        not r.deprecated
                        and version_priority(r.version)[0] == version_priority(old.version)[0]
                    )
                )
            ]
            # What replaces it may be in another group: the catalog, or the author's own warning, says so.
            named = old.replacement or old.deprecation_warning not in ("", _default_warning(old))
            if old.deprecated and not better and not named:
                yield old, f"{old.version} is deprecated, but no version as stable is served"


def _default_warning(resource: Resource) -> str:
    """What a server says where the author says nothing."""
    return f"{resource.group}/{resource.version} {resource.kind} is deprecated"


@api_rule(
    "L503 deprecation-warning",
    severity=Severity.NOTE,
    profiles=CRD,
    why="The default warning does not say what to use instead.",
    source=f"{CRD_DOCS}: Version deprecation",
    hint="set deprecationWarning, and name the version to use",
)
def deprecation_warning(api: Api) -> Iterator[tuple[Resource, str]]:
    """A deprecated version says what to use instead."""
    for resource in api.resources:
        if resource.deprecated and resource.deprecation_warning in ("", _default_warning(resource)):
            yield resource, f"{resource.version} is deprecated without a warning of its own"


@api_rule(
    "L504 superseded-version",
    profiles=CRD,
    why="A version that a more stable one replaces is to be deprecated, so that its users hear of it in time.",
    source=f"{DEPRECATION}: rules #3 and #4a",
    hint="set deprecated: true on it",
)
def superseded_version(api: Api) -> Iterator[tuple[Resource, str]]:
    """An alpha or beta version is deprecated once a stable one is served."""
    for versions in _kinds(api):
        for old in versions:
            stable = [
                r
                for r in versions
                if r.served
                and is_stable(r.version)
                # v2alpha1 is what may follow v1, not what v1 replaced.
                and version_priority(r.version)[1] >= version_priority(old.version)[1]
            ]
            if stable and old.served and not old.deprecated and version_priority(old.version)[0] < 2:
                yield old, f"{old.version} is served next to {stable[-1].version} without being deprecated"


@api_rule(
    "L505 unstored",
    severity=Severity.ERROR,
    profiles=CRD,
    why="Exactly one version is written to storage.",
    source=f"{CRD_DOCS}: Versions",
    hint="set storage: true on one version",
)
def unstored(api: Api) -> Iterator[tuple[Resource, str]]:
    """One version is the storage version."""
    for versions in _kinds(api):
        stored = [r for r in versions if r.storage]
        if _is_told(versions) and len(stored) != 1:
            yield versions[0], f"{versions[0].plural}.{versions[0].group} has {len(stored)} storage versions"


@api_rule(
    "L506 scope-change",
    severity=Severity.ERROR,
    why="The scope belongs to the resource, not to a version of it.",
    source=f"{CONVENTIONS}: Resources",
    hint="give all versions the same scope",
)
def scope_change(api: Api) -> Iterator[tuple[Resource, str]]:
    """All versions of a resource have one scope and one kind."""
    for versions in _kinds(api):
        for other in versions[1:]:
            if other.namespaced != versions[0].namespaced or other.kind != versions[0].kind:
                yield other, f"{other.version} differs from {versions[0].version} in scope or kind"
