"""One finding for one idea: changes that say the same at many places, or set bounds of one kind, put together.

A field that forty kinds get, or limits that a release sets on every string, are one thing for the reader of a pull
request. Changes go together where they weigh the same and have one code and one message at fields of one name; where
bounds change, those of one keyword that go one way; where rules change, those of one text. The first place says what
happened, the others are named as far as a line goes, and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubewright.diagnostics import Severity
from kubewright.tools.diff.change import Change

SHOWN = 4
"""How many places a finding names besides the first."""
_BOUND = re.compile(r"(\w+) changed from (\S+) to (\S+)$")
_LAST = re.compile(r"([A-Za-z0-9_$-]+)?([\[\]{}]*)$")
_BOUND_CODES = frozenset({"D214", "D253"})
_ANYWHERE = frozenset({"D212", "D213", "D216", "D223", "D225", "D256", "D231", "D263", "D264"})
"""Codes whose message says enough: the field need not have the same name."""


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that are one idea, in the order in which they were found."""

    changes: tuple[Change, ...]
    severity: Severity

    @property
    def first(self) -> Change:
        """The change whose place the finding has."""
        return self.changes[0]

    @property
    def text(self) -> str:
        """What happened, and where."""
        if len(self.changes) == 1:
            return f"{self.first.path}: {self.first.message}"
        said = self.first.message
        details = [""] * len(self.changes)
        bounds = [_BOUND.match(change.message) for change in self.changes]
        if self.first.kind.code in _BOUND_CODES and all(bounds):
            said, details = _bounds([match.groups() for match in bounds if match])
        places = [f"{change.path}{detail}" for change, detail in zip(self.changes, details, strict=True)]
        shown = "; ".join(places[1 : SHOWN + 1])
        more = len(places) - 1 - SHOWN
        return f"{places[0]}: {said} (at {len(places)} places: also {shown}{f'; and {more} more' if more > 0 else ''})"


def grouped(changes: Iterable[tuple[Change, Severity]], *, each: bool = False) -> list[Group]:
    """The changes by idea; with ``each`` every one alone."""
    groups: dict[object, list[Change]] = {}
    severities: dict[object, Severity] = {}
    for number, (change, severity) in enumerate(changes):
        key: object = number if each else (change.kind.code, severity, _idea(change))
        groups.setdefault(key, []).append(change)
        severities[key] = severity
    return [Group(tuple(found), severities[key]) for key, found in groups.items()]


def _idea(change: Change) -> object:
    code = change.kind.code
    bound = _BOUND.match(change.message)
    if code in _BOUND_CODES and bound:
        return bound[1], bound[2] == "none", bound[3] == "none"
    if code in _ANYWHERE:
        return change.message
    if not code.startswith("D2"):
        return change.path, change.message
    match = _LAST.search(change.path)
    return (match.group() if match else change.path), change.message


def _bounds(bounds: list[tuple[str, ...]]) -> tuple[str, list[str]]:
    """What happened to bounds of one keyword, and the value at each place."""
    keyword, was, now = bounds[0]
    if len({(before, after) for _, before, after in bounds}) == 1:
        return f"{keyword} changed from {was} to {now}", [""] * len(bounds)
    if was == "none":
        return f"{keyword} is limited now", [f" ({after})" for _, _, after in bounds]
    if now == "none":
        return f"{keyword} is no longer limited", [f" ({before})" for _, before, _ in bounds]
    return f"{keyword} changed", [f" ({before} to {after})" for _, before, after in bounds]
