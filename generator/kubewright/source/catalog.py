"""The resource catalog: what a Kubernetes release serves, as facts that no definition carries.

``specs/kubernetes`` holds them (its README tells the format): ``releases.yaml``, ``groups.yaml`` (the
order of groups in discovery) and one file a group under ``resources/``. A definition says what an object
looks like; the catalog says under which plural, scope, verbs and subresources it is served, from which
release to which, and in which version it is stored. ``read_catalog`` picks the entries of one release.

Rules that keep the files short (each is the convention of kube-apiserver):
- verbs not given are the eight of a stored resource; a subresource's are get, patch, update;
- a subresource takes its resource's own kind unless it names another;
- stable versions are served unless told otherwise, alpha and beta ones are not (KEP-3136);
- columns not given are those of a kind without a printer: Name and Created At.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Group, PrinterColumn, Resource, Subresource
from kubewright.ir.types import Json
from kubewright.ir.versions import is_stable, join_api_version, version_priority
from kubewright.location import Location

Gvk = tuple[str, str, str]

STORED_VERBS: Final = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
SUBRESOURCE_VERBS: Final = ("get", "patch", "update")
COLUMNS_WITHOUT_PRINTER: Final = (
    PrinterColumn(name="Name", type="string", format="name"),
    PrinterColumn(name="Created At", type="date"),
)

_NEEDED_KEYS = frozenset(["kind", "plural", "singular", "scope", "versions"])
_RESOURCE_KEYS = _NEEDED_KEYS | frozenset(
    ["verbs", "short_names", "categories", "storage", "list_kind", "subresources", "columns"]
)
_VERSION_KEYS = frozenset(["introduced", "deprecated", "removed", "replacement", "served"])
_SUBRESOURCE_KEYS = frozenset(["kind", "verbs", "introduced", "versions"])
_COLUMN_KEYS = frozenset(["name", "type", "format", "description", "priority"])


@dataclass(frozen=True, slots=True)
class SpecCatalog:
    """What one release serves: ``groups`` by falling priority, ``resources`` by group, version, plural."""

    release: str
    groups: tuple[Group, ...]
    resources: tuple[Resource, ...]


@dataclass(frozen=True, slots=True)
class _Span:
    """The versions that are wanted: those of a release, and those served by default in one ``since`` before it."""

    release: tuple[int, ...]
    since: tuple[int, ...]

    @classmethod
    def of(cls, release: str, served_since: str) -> _Span:
        return cls(release_number(release), release_number(served_since or release))

    def has(self, facts: Json) -> bool:
        """Whether a version is one of them."""
        removed = facts.get("removed")
        there = removed is None or self.release < release_number(removed)
        return release_number(facts["introduced"]) <= self.release and (there or self.has_gone(facts))

    def has_gone(self, facts: Json) -> bool:
        """Whether a version is one of them that the release no longer has."""
        removed = facts.get("removed")
        if removed is None or not facts.get("served"):
            return False
        return self.since < release_number(removed) <= self.release

    def __str__(self) -> str:
        return ".".join(map(str, self.release))


def read_catalog(
    folder: Path,
    release: str,
    definitions: Mapping[Gvk, str],
    diagnostics: Diagnostics,
    served_since: str = "",
) -> SpecCatalog:
    """The catalog in ``folder`` as ``release`` (such as ``1.37``) serves it, with the versions gone by then that a
    release from ``served_since`` on served by default.

    ``definitions`` maps each GVK to the name of its definition; a kind without one is an error, as is
    anything in the files that this format does not know. Raises ``OSError`` where a file is unreadable.
    """
    order = list(_load(folder / "groups.yaml")["order"])
    span = _Span.of(release, served_since)
    resources: list[Resource] = []
    for path in sorted((folder / "resources").glob("*.yaml")):
        document = _load(path)
        group = str(document["group"])
        if group not in order:
            diagnostics.error(
                "K501", f'group "{group}" has no place in groups.yaml', Location(str(path)), "add it to order"
            )
        for index, entry in enumerate(document["resources"]):
            place = Location(str(path), f"/resources/{index}")
            if _well_formed(entry, place, diagnostics):
                resources.extend(_of_release(entry, group, span, definitions, place, diagnostics))
    resources.sort(key=lambda r: (r.group, r.version, r.plural))
    return SpecCatalog(release, tuple(_groups(order, resources)), tuple(resources))


def past_kinds(folder: Path, release: str, served_since: str) -> dict[str, list[Gvk]]:
    """The kinds of versions that are gone by ``release`` and were served by default in one from ``served_since`` on, by
    the last release that has them."""
    span = _Span.of(release, served_since)
    found: dict[str, list[Gvk]] = {}
    for path in sorted((folder / "resources").glob("*.yaml")):
        document = _load(path)
        for entry in document["resources"]:
            for version, facts in entry["versions"].items():
                if span.has_gone(facts):
                    major, minor = release_number(facts["removed"])
                    kinds = found.setdefault(f"{major}.{minor - 1}", [])
                    kinds += [
                        (str(document["group"]), version, kind) for kind in (entry["kind"], _list_kind(entry))
                    ]
    return found


def release_number(release: str) -> tuple[int, ...]:
    """``1.36`` as numbers that compare."""
    return tuple(int(part) for part in release.split("."))


def _load(path: Path) -> Json:
    with path.open("rb") as stream:
        return yaml.load(stream, Loader=yaml.CSafeLoader)


def _groups(order: list[str], resources: list[Resource]) -> Iterator[Group]:
    for index, name in enumerate(order):
        versions = {r.version for r in resources if r.group == name}
        if versions:
            ranked = tuple(sorted(versions, key=version_priority, reverse=True))
            yield Group(name=name, versions=ranked, priority=20_000 - 100 * index)


def _well_formed(entry: Json, place: Location, diagnostics: Diagnostics) -> bool:
    """Whether ``entry`` has everything that is needed and nothing unknown; reports what is wrong."""
    before = len(diagnostics)
    missing = _NEEDED_KEYS - entry.keys()
    parts = [(entry, _RESOURCE_KEYS, "")]
    parts += [(v, _VERSION_KEYS, f"/versions/{k}") for k, v in entry.get("versions", {}).items()]
    parts += [(v, _SUBRESOURCE_KEYS, f"/subresources/{k}") for k, v in entry.get("subresources", {}).items()]
    parts += [(v, _COLUMN_KEYS, f"/columns/{i}") for i, v in enumerate(entry.get("columns", ()))]
    for key in sorted(missing):
        diagnostics.error("K502", f'resource lacks "{key}"', place)
    for mapping, known, below in parts:
        for key in sorted(mapping.keys() - known):
            where = Location(place.file, place.pointer + below)
            diagnostics.error("K503", f'unknown key "{key}"', where, f"known: {', '.join(sorted(known))}")
    if entry.get("scope") not in ("Namespaced", "Cluster", None):
        diagnostics.error("K504", f'scope "{entry["scope"]}" is neither Namespaced nor Cluster', place)
    return len(diagnostics) == before


def _of_release(
    entry: Json,
    group: str,
    span: _Span,
    definitions: Mapping[Gvk, str],
    place: Location,
    diagnostics: Diagnostics,
) -> Iterator[Resource]:
    now = span.release
    alive = {v: facts for v, facts in entry["versions"].items() if span.has(facts)}
    if not alive:
        return
    names = {f"{group}/{v}" if group else v: v for v in alive}
    # What a release that lacks the recorded storage version stores is its most stable one.
    stored = names.get(entry.get("storage", ""))
    foreign = stored is None and "storage" in entry and not _own(entry["storage"], group)
    stored = stored or max(alive, key=version_priority)
    for version, facts in alive.items():
        definition = definitions.get((group, version, entry["kind"]))
        if definition is None:
            name = join_api_version(group, version)
            diagnostics.error(
                "K505",
                f"{name} {entry['kind']} is in the catalog of {span}, but nothing defines it",
                place,
                "give the definitions of that release, or correct introduced and removed",
            )
            continue
        deprecated_in = facts.get("deprecated", "")
        yield Resource(
            group=group,
            version=version,
            kind=entry["kind"],
            plural=entry["plural"],
            singular=entry["singular"],
            namespaced=entry["scope"] == "Namespaced",
            verbs=tuple(entry.get("verbs", STORED_VERBS)),
            definition=definition,
            location=place,
            list_kind=_list_kind(entry),
            short_names=tuple(entry.get("short_names", ())),
            categories=tuple(entry.get("categories", ())),
            subresources=tuple(_subresources(entry, group, version, now)),
            printer_columns=_columns(entry),
            served=bool(facts.get("served", is_stable(version))),
            storage=version == stored and not foreign,
            deprecated=bool(deprecated_in) and release_number(deprecated_in) <= now,
            introduced=facts["introduced"],
            deprecated_in=deprecated_in,
            removed_in=facts.get("removed", ""),
            replacement=facts.get("replacement", ""),
        )


def _own(api_version: str, group: str) -> bool:
    return (api_version.rpartition("/")[0]) == group


def _list_kind(entry: Json) -> str:
    if "list_kind" in entry:
        return str(entry["list_kind"])
    return f"{entry['kind']}List" if "list" in entry.get("verbs", STORED_VERBS) else ""


def _subresources(entry: Json, group: str, version: str, now: tuple[int, ...]) -> Iterator[Subresource]:
    for name, facts in entry.get("subresources", {}).items():
        if now < release_number(facts.get("introduced", "0.0")) or version not in facts.get(
            "versions", (version,)
        ):
            continue
        api_version, _, kind = facts.get("kind", "").rpartition("/")
        of_group, _, of_version = api_version.rpartition("/")
        yield Subresource(
            name=name,
            verbs=tuple(facts.get("verbs", SUBRESOURCE_VERBS)),
            group=of_group if kind else group,
            version=of_version or version,
            kind=kind or entry["kind"],
            introduced=facts.get("introduced", ""),
        )


def _columns(entry: Json) -> tuple[PrinterColumn, ...]:
    if "list" not in entry.get("verbs", STORED_VERBS):
        return ()
    if "columns" not in entry:
        return COLUMNS_WITHOUT_PRINTER
    return tuple(PrinterColumn(**column) for column in entry["columns"])
