"""Weighing changes by the deprecation policy.

Stable and beta versions promise compatibility for as long as they live; removing an alpha version, or changing one,
is announced but allowed at any time. A version that was deprecated before may be removed once its level's promise
has run out, which two states alone cannot show: it is a warning then, and ``lifecycle`` checks the dates.

What breaks stored objects or writers is an error, what breaks readers a warning, the rest a note; for alpha versions
each weighs one step less. Nothing in a status is an error: its writers are released with the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from kubewright.diagnostics import Diagnostic, NamedObject, Severity
from kubewright.ir.versions import version_priority
from kubewright.tools.diff.change import ApiChange, Impact
from kubewright.tools.diff.grouping import grouped
from kubewright.tools.outputs import reporting

_WEIGHT: Final = {
    Impact.BREAKS_STORED: Severity.ERROR,
    Impact.BREAKS_WRITERS: Severity.ERROR,
    Impact.BREAKS_READERS: Severity.WARNING,
    Impact.SAFE: Severity.NOTE,
}
_LIGHTER: Final = {
    Severity.ERROR: Severity.WARNING,
    Severity.WARNING: Severity.NOTE,
    Severity.NOTE: Severity.NOTE,
}
_REMOVALS: Final = frozenset({"D101", "D102", "D103"})


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Changes a project has decided to make: code → shell patterns of paths. Unused ones are reported."""

    patterns: Mapping[str, tuple[str, ...]]

    def covers(self, change: ApiChange) -> str:
        """The pattern that covers a change, or nothing."""
        for pattern in self.patterns.get(change.kind.code, ()):
            if fnmatchcase(change.path, pattern):
                return pattern
        return ""


def weigh(change: ApiChange) -> Severity:
    """How much one change weighs."""
    severity = _WEIGHT[change.kind.impact]
    if change.kind.code == "D117":
        return severity  # a server refuses it, whatever the level
    alpha = version_priority(change.version)[0] == 0
    if change.kind.code in _REMOVALS:
        if alpha:
            return Severity.NOTE
        return Severity.WARNING if "(it was deprecated)" in change.message else Severity.ERROR
    if severity is Severity.ERROR and _is_of_status(change):
        return _LIGHTER[severity]
    return _LIGHTER[severity] if alpha else severity


def _is_of_status(change: ApiChange) -> bool:
    """Whether a change is to what controllers write, which come with the definition and write it again."""
    place = change.path.partition(": ")[2]
    return place == "status" or place.startswith(("status.", "status["))


def diagnose(
    changes: list[ApiChange],
    exceptions: Exceptions,
    *,
    each: bool = False,
    copies: Callable[[str], str] = lambda path: "",
    kinds: Mapping[str, str] | None = None,
) -> tuple[list[Diagnostic], list[str]]:
    """The changes as diagnostics, heaviest first, one for each idea or, with ``each``, for each change; and the
    exceptions that nothing needed. ``copies`` says which built-in type a path is inside a copy of; ``kinds`` has the
    kind of each resource and definition that paths begin with."""
    used: set[tuple[str, str]] = set()
    kept = []
    for change in changes:
        pattern = exceptions.covers(change)
        if pattern:
            used.add((change.kind.code, pattern))
            continue
        kept.append((change, weigh(change)))
    found = []
    for group in grouped(kept, each=each, copies=copies):
        kind = group.first.kind
        hint = f"{kind.impact.value}; {kind.rule}" if kind.impact is not Impact.SAFE else ""
        name = group.first.path.partition(": ")[0]
        subject = NamedObject(kinds[name], name=name) if kinds and name in kinds else None
        found.append(Diagnostic(kind.code, group.severity, group.text, group.first.location, hint, subject))
    order = [*Severity]
    found.sort(key=lambda d: order.index(d.severity))
    unused = [
        f"{code} {pattern}"
        for code, patterns in exceptions.patterns.items()
        for pattern in patterns
        if (code, pattern) not in used
    ]
    return found, unused


MARKDOWN_LIMIT: Final = 60_000
"""Characters: a comment of GitHub holds 65,536."""
_ROW_LIMIT: Final = 600


def markdown(found: list[Diagnostic]) -> str:
    """The comment for a pull request: what breaks in the open, the rest folded, no longer than one can be."""
    if not found:
        return "## API changes\n\nNone.\n"
    titles = {Severity.ERROR: "Breaking", Severity.WARNING: "Take care", Severity.NOTE: "Compatible"}
    groups = {severity: [d for d in found if d.severity is severity] for severity in Severity}
    counts = [f"{len(group)} {titles[severity].lower()}" for severity, group in groups.items() if group]
    lines = ["## API changes", "", f"{', '.join(counts)}.", ""]
    left = MARKDOWN_LIMIT
    for severity, group in groups.items():
        if not group:
            continue
        title, is_open = f"{titles[severity]} ({len(group)})", severity is Severity.ERROR
        lines += [f"### {title}", ""] if is_open else [f"<details><summary>{title}</summary>", ""]
        lines += ["| change | code | why it matters |", "|---|---|---|"]
        for number, each in enumerate(group):
            text = each.message if len(each.message) <= _ROW_LIMIT else f"{each.message[: _ROW_LIMIT - 3]}..."
            row = f"| {reporting.markdown(text)} | {each.code} | {reporting.markdown(each.hint)} |"
            left -= len(row)
            if left < 0:
                lines += ["", f"{len(group) - number} more: a comment is not long enough for them."]
                break
            lines.append(row)
        lines += [""] if is_open else ["", "</details>", ""]
    return "\n".join(lines)
