"""Findings passed over where they are, by a comment in YAML::

    phase: # kubewright: ignore[L308] clients of the first release read it
      type: string

The comment is at the end of the line that a finding names, or alone on the lines above it. A comment that
nothing stands for any more is itself a finding (L001), so that what is fixed stays fixed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kubewright.diagnostics import Diagnostic, Severity
from kubewright.location import Location
from kubewright.tools.lint.rule import UNUSED
from kubewright.tools.lint.run import Finding

COMMENT: Final = re.compile(r"(?:^|\s)#\s*kubewright:\s*ignore\[\s*(L\d{3}(?:\s*,\s*L\d{3})*)\s*\]")
_ALONE: Final = re.compile(r"\s*#")


@dataclass(slots=True)
class _Comments:
    """The comments of one file: line that they speak of → code → line and column of the comment."""

    of_line: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    used: set[tuple[str, tuple[int, int]]] = field(default_factory=set)

    def idle(self) -> set[tuple[str, tuple[int, int]]]:
        """The codes that passed over nothing so far, each with the place of its comment."""
        return {each for there in self.of_line.values() for each in there.items()} - self.used


def suppress(
    findings: Sequence[Finding],
    files: Sequence[str],
    codes: set[str],
    alike: Callable[[], Sequence[Finding]] = tuple,
) -> list[Finding]:
    """The findings that no comment passes over, and one for each comment of ``codes`` (what was asked for) that
    passes over nothing. ``alike`` gives all findings, those of other places with the same shape too, of which
    ``findings`` has one: a comment there is not idle. Files that cannot be read, and JSON, have no comments."""
    comments = {file: _read(Path(file)) for file in files}
    kept = []
    for finding in findings:
        place = finding.diagnostic.location
        there = comments[place.file].of_line.get(place.line, {}) if place.file in comments else {}
        if finding.rule.code in there:
            comments[place.file].used.add((finding.rule.code, there[finding.rule.code]))
        else:
            kept.append(finding)
    if any(found.idle() for found in comments.values()):
        for finding in alike():
            place = finding.diagnostic.location
            there = comments[place.file].of_line.get(place.line, {}) if place.file in comments else {}
            if finding.rule.code in there:
                comments[place.file].used.add((finding.rule.code, there[finding.rule.code]))
    for file, found in comments.items():
        for code, (line, column) in sorted(found.idle(), key=lambda each: each[1]):
            if code in codes:
                said = f"nothing here for {code} to be passed over"
                place = Location(file, "", line, column)
                hint = "take the comment out"
                shown = Diagnostic(UNUSED.code, Severity.WARNING, said, place, hint)
                kept.append(Finding(shown, UNUSED, f"{file}: {code}"))
    return sorted(kept, key=lambda f: (f.diagnostic.location, f.diagnostic.code, f.diagnostic.message))


def _read(path: Path) -> _Comments:
    found = _Comments()
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return found
    if "ignore[" not in text or path.suffix == ".json":
        return found
    waiting: dict[str, tuple[int, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        said = COMMENT.search(line)
        codes = re.findall(r"L\d{3}", said[1]) if said else []
        here = {code: (number, said.start() + 1) for code in codes} if said else {}
        if _ALONE.match(line):
            waiting |= here
        elif line.strip():
            if here or waiting:
                found.of_line[number] = waiting | here
            waiting = {}
    for code, mark in waiting.items():
        found.of_line.setdefault(mark[0], {})[code] = mark
    return found
