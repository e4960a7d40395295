"""A release plan, read: entries, the list of releases, and exceptions decided on purpose.

::

    releases: {"1.30": 2026-01-15, "1.31": 2026-05-20}    # or a list; optional
    resources:
      - api_version: example.com/v1beta1
        kind: Widget
        introduced: "1.30"
        deprecated: "1.31"
        removed: "1.34"
        replacement: example.com/v1/Widget                # optional
        preferred: "1.30"                                 # the release from which on it is preferred; optional
        storage: "1.30"                                   # and stored; optional
    exceptions:
      - {code: P009, of: ["example.com/v1beta1/*"], because: the migration tool was late}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final

import yaml

from kubewright.config import specs_folder
from kubewright.diagnostics import Diagnostics
from kubewright.ir.versions import version_priority
from kubewright.location import Document, Location
from kubewright.source.lifecycle import Key, LifeCycle, read_lifecycles
from kubewright.tools.lifecycle.releases import Calendar, Release, parse_release

RELEASES: Final = ("introduced", "deprecated", "removed", "preferred", "storage")
"""The fields of an entry that name a release."""

_FIELDS: Final = frozenset({"api_version", "kind", "replacement", *RELEASES})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanEntry:
    """One kind of one version. ``preferred`` and ``storage`` are the releases from which on it is."""

    api_version: str
    kind: str
    location: Location
    introduced: Release
    deprecated: Release | None = None
    removed: Release | None = None
    replacement: str = ""
    preferred: Release | None = None
    storage: Release | None = None

    @property
    def key(self) -> Key:
        """(apiVersion, kind)."""
        return self.api_version, self.kind

    @property
    def name(self) -> str:
        """``Widget of example.com/v1``."""
        return f"{self.kind} of {self.api_version}"

    @property
    def group(self) -> str:
        """The API group; empty for core."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """The version without its group."""
        return self.api_version.rpartition("/")[2]

    @property
    def level(self) -> int:
        """2 stable, 1 beta, 0 alpha, -1 unknown."""
        return version_priority(self.version)[0]

    @property
    def successor(self) -> Key | None:
        """What the plan says to use instead."""
        return LifeCycle(replacement=self.replacement).successor

    def is_served(self, release: Release) -> bool:
        """Whether ``release`` has it."""
        return self.introduced <= release and (self.removed is None or release < self.removed)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A finding somebody decided to live with: ``pattern`` is a shell pattern of ``group/version/Kind``."""

    code: str
    pattern: str
    reason: str
    location: Location


@dataclass(frozen=True, slots=True)
class ReleasePlan:
    """All of a plan; ``horizon`` is the last release it speaks of."""

    entries: tuple[PlanEntry, ...]
    calendar: Calendar = field(default_factory=Calendar)
    exceptions: tuple[Allowance, ...] = ()

    @property
    def horizon(self) -> Release | None:
        """The last release listed, or, without a list, named in an entry."""
        if self.calendar.listed:
            return self.calendar.listed[-1]
        named = [r for e in self.entries for f in RELEASES if (r := getattr(e, f)) is not None]
        return max(named, default=None)


def read_plan(document: Document, diagnostics: Diagnostics) -> ReleasePlan:
    """The plan in ``document``; what cannot be understood is a diagnostic with the code P100."""
    return _Reader(document, diagnostics).plan()


def builtin_plan(diagnostics: Diagnostics, folder: Path | None = None) -> ReleasePlan:
    """The life cycles of the built-in kinds, with the exceptions of lifecycle-exceptions.yaml.

    Raises ``OSError`` where the catalog cannot be read.
    """
    folder = folder or specs_folder() / "kubernetes"
    facts = yaml.load((folder / "releases.yaml").read_bytes(), Loader=yaml.CSafeLoader)
    place = Location(str(folder))
    entries = [
        PlanEntry(
            api_version=api_version,
            kind=kind,
            location=place,
            introduced=parse_release(life.introduced),
            deprecated=_maybe(life.deprecated),
            removed=_maybe(life.removed),
            replacement=life.replacement,
        )
        for (api_version, kind), life in sorted(read_lifecycles(folder).items())
    ]
    newest = parse_release(str(facts["newest"]))
    listed = tuple(Release(newest.major, minor) for minor in range(newest.minor + 1))
    path = folder / "lifecycle-exceptions.yaml"
    value = yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    exceptions = _Reader(Document(str(path), value), diagnostics).exceptions()
    # Removals planned for releases to come are no part of what has happened.
    known = [e for e in entries if e.introduced <= newest]
    return ReleasePlan(tuple(known), Calendar(listed), exceptions)


def _maybe(text: str) -> Release | None:
    return parse_release(text) if text else None


@dataclass(slots=True)
class _Reader:
    document: Document
    diagnostics: Diagnostics

    def error(self, said: str, pointer: str, hint: str = "") -> None:
        self.diagnostics.error("P100", said, self.document.at(pointer), hint)

    def plan(self) -> ReleasePlan:
        value = self.document.value
        listed = value.get("resources") if isinstance(value, dict) else None
        if not isinstance(listed, list):
            self.error("a plan has a list called resources", "")
            return ReleasePlan(())
        for name in sorted(set(map(str, value)) - {"releases", "resources", "exceptions"}):
            self.error(f"a plan has no {name!r}", f"/{name}", "known: releases, resources, exceptions")
        entries: dict[Key, PlanEntry] = {}
        for index, given in enumerate(listed):
            entry = self._entry(given, f"/resources/{index}")
            if entry is None:
                continue
            if entry.key in entries:
                self.error(
                    f"{entry.name} stands twice", f"/resources/{index}", "a version comes and goes once"
                )
            entries[entry.key] = entry
        plan = ReleasePlan(tuple(entries.values()), self._calendar(value.get("releases")), self.exceptions())
        kinds = {r.is_relative for e in plan.entries for f in RELEASES if (r := getattr(e, f)) is not None}
        if len(kinds | {r.is_relative for r in plan.calendar.listed}) > 1:
            self.error("releases counted from X and numbered ones do not go together", "/resources")
        return plan

    def _entry(self, given: Any, place: str) -> PlanEntry | None:
        api_version = given.get("api_version") if isinstance(given, dict) else None
        kind = given.get("kind") if isinstance(given, dict) else None
        if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
            self.error("an entry has api_version and kind", place)
            return None
        for name in sorted(set(map(str, given)) - _FIELDS):
            self.error(f"an entry has no {name!r}", f"{place}/{name}", f"known: {', '.join(sorted(_FIELDS))}")
        releases = {name: self._release(given.get(name), f"{place}/{name}", name) for name in RELEASES}
        introduced = releases.pop("introduced")
        replacement = given.get("replacement") or ""
        if not isinstance(replacement, str) or (replacement and "/" not in replacement):
            self.error("replacement is group/version/Kind", f"{place}/replacement")
            replacement = ""
        if introduced is None:
            if given.get("introduced") is None:
                self.error("an entry says in which release it was introduced", place, 'introduced: "1.30"')
            return None
        return PlanEntry(
            api_version=api_version,
            kind=kind,
            location=self.document.at(place),
            introduced=introduced,
            replacement=replacement,
            **releases,
        )

    def _release(self, given: Any, place: str, name: str) -> Release | None:
        if given is None or given == "":
            return None
        try:
            if isinstance(given, str):
                return parse_release(given)
        except ValueError:
            pass
        self.error(f"{name}: {given!r} is no release", place, 'quote it: "1.30", or count from "X": "X+1"')
        return None

    def _calendar(self, given: Any) -> Calendar:
        if given is None:
            return Calendar()
        if not isinstance(given, dict | list):
            self.error("releases is a list of releases, or says the date of each", "/releases")
            return Calendar()
        dates: dict[Release, date] = {}
        listed: list[Release] = []
        for index, item in enumerate(given):
            release = self._release(item, f"/releases/{index}", "releases")
            if release is None:
                continue
            listed.append(release)
            if isinstance(given, dict):
                try:
                    dates[release] = date.fromisoformat(str(given[item]))
                except ValueError:
                    said = f"{release}: {given[item]!r} is no date"
                    self.error(said, f"/releases/{item}", "write it as 2026-01-31")
        return Calendar(tuple(sorted(set(listed))), dates)

    def exceptions(self) -> tuple[Allowance, ...]:
        """The exceptions of a plan, or of a file that has nothing else."""
        value = self.document.value
        given = value.get("exceptions", []) if isinstance(value, dict) else []
        found: list[Allowance] = []
        for index, item in enumerate(given if isinstance(given, list) else [None]):
            place = f"/exceptions/{index}"
            texts: Mapping[str, Any] = item if isinstance(item, dict) else {}
            code, given_of, reason = (texts.get(name) for name in ("code", "of", "because"))
            patterns = given_of if isinstance(given_of, list) and given_of else [given_of]
            if not all(isinstance(text, str) and text for text in (code, *patterns, reason)):
                self.error("an exception has code, of (patterns of group/version/Kind) and because", place)
                continue
            found += [
                Allowance(str(code), p, str(reason), self.document.at(place)) for p in map(str, patterns)
            ]
        return tuple(found)
