"""The rules of the deprecation policy that a plan can be held against.

In our words, rule by rule:

- #1: what is in a version goes with the version, not before (P010); a version makes room for a later one (P005).
- #2: objects travel between the versions of a release without loss (P012, from the specs: ``differing.roundtrip``).
- #3: nobody is sent from a version to a less stable or an earlier one, or to one that is not there (P003).
- #4a: a stable version lives as long as its major release (P004). A beta is deprecated 9 months or 3 releases after
  it came at the latest (P008), whichever is longer, and goes when as much time has passed again: not before (P002),
  not long after (P009). An alpha may go at any time.
- #4b: the preferred and the storage version of a kind move on after a release that had the old and the new one (P006,
  P007), so that going back one release is possible. The policy's own example lets an alpha make way for its successor
  in one step: who goes with the release has nobody to go back to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Final

from kubewright.diagnostics import Diagnostic, Severity
from kubewright.ir.versions import version_priority
from kubewright.source.lifecycle import Key
from kubewright.tools.lifecycle.plan import PlanEntry, ReleasePlan

RULES: Final = {
    "P001": "the releases of an entry are out of order",
    "P002": "rule #4a: a beta is removed before its time after deprecation has passed",
    "P003": "rule #3: deprecated in favour of a version that is less stable, earlier, or not there",
    "P004": "rule #4a: a stable version is removed within its major release",
    "P005": "rule #1: removed, and no later version follows",
    "P006": "rule #4b: preferred before a release has had both versions",
    "P007": "rule #4b: stored before a release has had both versions",
    "P008": "rule #4a: a beta is not deprecated in time",
    "P009": "rule #4a: a beta is served long after its deprecation",
    "P010": "rule #1: a kind is taken out of a version that stays",
    "P011": "preferred or stored while it is not served",
    "P012": "rule #2: a field is lost between served versions",
    "P013": "an exception that nothing needs",
    "P014": "the plan and the specs disagree",
    "P100": "the plan cannot be understood",
}
"""Code → what it says."""

LEVELS: Final = {2: "stable", 1: "beta", 0: "alpha", -1: "unknown"}

Fault = tuple[PlanEntry, str, str]
"""The entry, the code, and why."""


def judge(plan: ReleasePlan) -> list[Diagnostic]:
    """All findings: errors, and as notes with their reasons those that the plan takes exception to."""
    used: set[int] = set()
    found: list[Diagnostic] = []
    for entry, code, said in check(plan):
        name = f"{entry.api_version}/{entry.kind}"
        allowed = [
            (index, allowance)
            for index, allowance in enumerate(plan.exceptions)
            if allowance.code == code and fnmatchcase(name, allowance.pattern)
        ]
        used.update(index for index, _ in allowed)
        severity = Severity.NOTE if allowed else Severity.ERROR
        reason = f"known exception: {allowed[0][1].reason}" if allowed else ""
        found.append(Diagnostic(code, severity, said, entry.location, reason))
    for index, allowance in enumerate(plan.exceptions):
        if index not in used:
            said = f"nothing needs the exception {allowance.code} of {allowance.pattern}"
            found.append(Diagnostic("P013", Severity.ERROR, said, allowance.location, "take it out"))
    return found


def check(plan: ReleasePlan) -> Iterator[Fault]:
    """What in a plan breaks the deprecation policy."""
    checker = _Checker(plan, {entry.key: entry for entry in plan.entries})
    sound: list[PlanEntry] = []
    for entry in plan.entries:
        steps = [r for r in (entry.introduced, entry.deprecated, entry.removed) if r is not None]
        if steps != sorted(steps) or entry.introduced == entry.removed:
            yield entry, "P001", f"{entry.name}: introduced, deprecated and removed must follow each other"
        else:
            sound.append(entry)
    for entry in sound:
        yield from checker.deprecation(entry)
        yield from checker.removal(entry)
    for line in lines_of(sound).values():
        yield from _moves(line, "preferred", "P006")
        yield from _moves(line, "storage", "P007")


def lines_of(entries: Iterable[PlanEntry]) -> dict[tuple[str, str], list[PlanEntry]]:
    """The entries of each kind of a group, in the order in which they came."""
    found: dict[tuple[str, str], list[PlanEntry]] = {}
    for entry in entries:
        found.setdefault((entry.group, entry.kind), []).append(entry)
    for line in found.values():
        line.sort(key=lambda e: (e.introduced, version_priority(e.version)))
    return found


def successor_of(entry: PlanEntry, entries: Iterable[PlanEntry]) -> Key | None:
    """What follows an entry: what it says, else the most preferred later version of its kind that was there when it
    was deprecated."""
    if entry.successor is not None:
        return entry.successor
    since = entry.deprecated or entry.removed
    later = [
        other
        for other in entries
        if (other.group, other.kind) == (entry.group, entry.kind)
        and is_later(other.version, entry.version)
        and other.introduced > entry.introduced
        and since is not None
        and other.is_served(since)
    ]
    return max(later, key=lambda e: version_priority(e.version)).key if later else None


def is_later(version: str, than: str) -> bool:
    """Whether ``version`` may take the place of ``than``: as stable, and after it."""
    one, other = version_priority(version), version_priority(than)
    return one[0] > other[0] if one[0] != other[0] else one[1:3] > other[1:3]


@dataclass(frozen=True, slots=True)
class _Checker:
    plan: ReleasePlan
    entries: Mapping[Key, PlanEntry]

    def deprecation(self, entry: PlanEntry) -> Iterator[Fault]:
        calendar, horizon = self.plan.calendar, self.plan.horizon
        if entry.level == 1 and horizon is not None:
            until = entry.deprecated or (horizon if entry.removed is None else None)
            if until is not None and calendar.is_late(entry.introduced, until):
                latest = calendar.earliest(entry.introduced)
                said = f"deprecated in {until}" if entry.deprecated else f"not deprecated yet in {until}"
                yield (
                    entry,
                    "P008",
                    f"{entry.name} is beta since {entry.introduced}, {said}; {latest} was the last chance",
                )
        if entry.deprecated is not None:
            yield from self._succession(entry)

    def _succession(self, entry: PlanEntry) -> Iterator[Fault]:
        key = entry.successor
        if key is None or entry.deprecated is None:
            return
        version = key[0].rpartition("/")[2]
        level = version_priority(version)[0]
        if level < entry.level:
            yield (
                entry,
                "P003",
                f"{entry.name} is {LEVELS[entry.level]}, its successor {key[0]} only {LEVELS[level]}",
            )
        elif (
            key[0].rpartition("/")[0] == entry.group
            and key[1] == entry.kind
            and not is_later(version, entry.version)
        ):
            yield (
                entry,
                "P003",
                f"{entry.name} is deprecated in favour of {key[0]}, which does not come after it",
            )
        other = self.entries.get(key)
        if other is None:
            return
        if other.introduced > entry.deprecated:
            said = f"{entry.name} is deprecated in {entry.deprecated}, before {key[0]} comes in {other.introduced}"
            yield entry, "P003", said
        elif other.removed is not None and (entry.removed is None or other.removed < entry.removed):
            said = (
                f"{entry.name} is deprecated in favour of {key[0]}, which goes before it, in {other.removed}"
            )
            yield entry, "P003", said

    def removal(self, entry: PlanEntry) -> Iterator[Fault]:
        gone = entry.removed
        if entry.level == 1 and entry.deprecated is not None:
            yield from self._beta_time(entry)
        if gone is None:
            return
        if entry.level == 2:
            if gone.major == entry.introduced.major:
                major = "X" if gone.is_relative else f"{gone.major}.x"
                yield entry, "P004", f"{entry.name} is stable: it stays for all of {major}"
        elif entry.level == 1 and entry.deprecated is None:
            yield entry, "P002", f"{entry.name} is removed without having been deprecated"
        if entry.level > 0 and successor_of(entry, self.plan.entries) is None and not self._followed(entry):
            yield entry, "P005", f"{entry.name} is removed without a successor"
        staying = [
            e
            for e in self.plan.entries
            if e.api_version == entry.api_version and e.kind != entry.kind and e.is_served(gone)
        ]
        if staying:
            kinds = ", ".join(sorted(e.kind for e in staying)[:3])
            said = f"{entry.name} is removed in {gone}, but the version stays, with {kinds}"
            yield entry, "P010", said

    def _beta_time(self, entry: PlanEntry) -> Iterator[Fault]:
        calendar, start, gone = self.plan.calendar, entry.deprecated, entry.removed
        assert start is not None
        earliest = calendar.earliest(start)
        if gone is not None and not calendar.is_over(start, gone):
            said = f"deprecated in {start}, may go with {earliest} at the earliest, not {gone}"
            yield entry, "P002", f"{entry.name} is beta: {said}"
        until = gone or self.plan.horizon
        if until is not None and calendar.is_late(start, until):
            said = f"removed in {until} only" if gone else f"still served in {until}"
            yield (
                entry,
                "P009",
                f"{entry.name} is beta: deprecated in {start}, {said}; it had to go with {earliest}",
            )

    def _followed(self, entry: PlanEntry) -> bool:
        """Whether the group has a later version of another kind: then this kind went by incrementing the version."""
        assert entry.removed is not None
        return any(
            e.group == entry.group and is_later(e.version, entry.version) and e.is_served(entry.removed)
            for e in self.plan.entries
        )


def _moves(line: list[PlanEntry], field: str, code: str) -> Iterator[Fault]:
    """What is wrong with the releases in which a kind's preferred or storage version moves."""
    said = "the preferred version" if field == "preferred" else "the storage version"
    held = sorted((e for e in line if getattr(e, field) is not None), key=lambda e: getattr(e, field))
    for entry in held:
        if not entry.is_served(getattr(entry, field)):
            yield (
                entry,
                "P011",
                f"{entry.name} is {said} from {getattr(entry, field)} on, which does not serve it",
            )
    for was, now in pairwise(held):
        moved = getattr(now, field)
        if was.removed is not None and was.removed < moved:
            yield was, "P011", f"{was.name} goes in {was.removed}, {said} moves on in {moved} only"
        elif was.level == 0 and was.removed == moved:
            continue
        else:
            both = max(was.introduced, now.introduced)
            never = was.removed is not None and was.removed <= both
            if never or both >= moved:
                why = "no release has both" if never else f"{both} is the first release that has both"
                yield (
                    now,
                    code,
                    f"{said} of {now.kind} moves from {was.version} to {now.version} in {moved}: {why}",
                )
    if held and held[-1].removed is not None and any(e.is_served(held[-1].removed) for e in line):
        yield held[-1], "P011", f"{held[-1].name} goes in {held[-1].removed} and is still {said}"
