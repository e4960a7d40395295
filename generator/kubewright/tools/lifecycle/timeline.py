"""The timeline of a plan: for each release, what is served, preferred and stored, and what happens.

It is the table by which the deprecation policy explains itself. Where a plan does not say which version is preferred
or stored, it is what rule #4b leaves: the most preferred of those that the release before had too, or, where
none of them is left, of those there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.ir.versions import version_priority
from kubewright.tools.lifecycle.plan import RELEASES, PlanEntry, ReleasePlan
from kubewright.tools.lifecycle.policy import lines_of, successor_of
from kubewright.tools.lifecycle.releases import Calendar, Release
from kubewright.tools.outputs import reporting


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One release. ``served`` are versions, the last to come first, each with whether it is deprecated."""

    release: Release
    served: tuple[tuple[str, bool], ...]
    preferred: str
    storage: str
    notes: tuple[str, ...]


def rows_of(line: list[PlanEntry], calendar: Calendar) -> list[TimelineRow]:
    """The timeline of one kind, from its first release to the last in which something happens."""
    events = [release for e in line for f in RELEASES if (release := getattr(e, f)) is not None]
    rows: list[TimelineRow] = []
    before: list[PlanEntry] = []
    held: dict[str, PlanEntry | None] = {"preferred": None, "storage": None}
    for release in calendar.between(min(events), max(events), events):
        served = [e for e in line if e.is_served(release)]
        now = {field: _held(field, release, line, served, before) for field in held}
        notes = [*_happens(line, release), *_moves(held, now)]
        served.sort(key=lambda e: (e.introduced, version_priority(e.version)), reverse=True)
        rows.append(
            TimelineRow(
                release,
                tuple((e.version, e.deprecated is not None and e.deprecated <= release) for e in served),
                _version(now["preferred"]),
                _version(now["storage"]),
                tuple(notes),
            )
        )
        before, held = served, now
    return rows


def stored_in(line: list[PlanEntry], release: Release) -> PlanEntry | None:
    """The version of a kind that is stored in a release, where the plan says it."""
    said = [e for e in line if e.storage is not None and e.storage <= release and e.is_served(release)]
    return max(said, key=lambda e: e.storage or e.introduced, default=None)


def _version(entry: PlanEntry | None) -> str:
    return entry.version if entry else ""


def _held(
    field: str, release: Release, line: list[PlanEntry], served: list[PlanEntry], before: list[PlanEntry]
) -> PlanEntry | None:
    """The version that is preferred or stored in a release."""
    said = [e for e in line if getattr(e, field) is not None and getattr(e, field) <= release and e in served]
    if said:
        return max(said, key=lambda e: getattr(e, field))
    chosen = [e for e in served if e in before] or served
    return max(chosen, key=lambda e: version_priority(e.version), default=None)


def _happens(line: list[PlanEntry], release: Release) -> Iterable[str]:
    for entry in line:
        if entry.introduced == release:
            yield f"{entry.version} added"
    for entry in line:
        if entry.deprecated == release:
            key = successor_of(entry, line)
            instead = "" if key is None else f", use {_spelled(key, entry)}"
            ends = "stays within the major release" if entry.level == 2 else "action required"
            yield f"{entry.version} deprecated{instead} ({ends})"
    for entry in line:
        if entry.removed == release:
            yield f"{entry.version} removed (action required)"


def _spelled(key: tuple[str, str], entry: PlanEntry) -> str:
    group, _, version = key[0].rpartition("/")
    return version if (group, key[1]) == (entry.group, entry.kind) else "/".join(key)


def _moves(before: dict[str, PlanEntry | None], now: dict[str, PlanEntry | None]) -> Iterable[str]:
    moved = {
        field: f"{was.version} → {new.version}"
        for field, new in now.items()
        if (was := before[field]) is not None and new is not None and was is not new
    }
    if len(moved) == 2 and moved["preferred"] == moved["storage"]:
        moved = {"preferred and storage": moved["storage"]}
    for field, said in moved.items():
        yield f"{field} version {said}"


def timeline(plan: ReleasePlan) -> str:
    """The timelines of a plan in Markdown, kinds of a group with the same one together."""
    together: dict[tuple[str, tuple[TimelineRow, ...], bool], list[str]] = {}
    for (group, kind), line in sorted(lines_of(plan.entries).items()):
        derived = all(e.preferred is None and e.storage is None for e in line)
        together.setdefault((group, tuple(rows_of(line, plan.calendar)), derived), []).append(kind)
    return "\n".join(
        _section(group, kinds, rows, derived) for (group, rows, derived), kinds in together.items()
    )


def _section(group: str, kinds: list[str], rows: Iterable[TimelineRow], derived: bool) -> str:
    head = f"{group or 'core'}: {', '.join(kinds)}"
    lines = [f"## {reporting.markdown(head)}", ""]
    if derived:
        lines += [
            "The plan does not say what is preferred and stored; shown is the soonest that rule 4b allows.",
            "",
        ]
    lines += ["| release | versions served | preferred | storage | what happens |", "|---|---|---|---|---|"]
    for row in rows:
        served = ", ".join(f"{version} (deprecated)" if old else version for version, old in row.served)
        cells = (str(row.release), served, row.preferred, row.storage, "; ".join(row.notes))
        lines.append(f"| {' | '.join(map(reporting.markdown, cells))} |")
    return "\n".join([*lines, ""])
