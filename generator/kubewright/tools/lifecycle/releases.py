"""Releases of a plan, and how long it is from one to another.

A release is absolute (``1.30``) or counted from a first one that has no number yet (``X``, ``X+1``, …), as the
deprecation policy's own example does. Relative releases lie within one major release. How many releases lie between
two follows from their minor numbers, or from the list of releases where a plan has one; a list may have dates, and
then months count too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from typing import Final, NamedTuple

WAIT_RELEASES: Final = 3
WAIT_MONTHS: Final = 9
"""Rule #4a: 9 months or 3 minor releases, whichever is longer."""

_RELATIVE: Final = -1
_FORM: Final = re.compile(r"X(?:\+(0|[1-9][0-9]{0,3}))?|v?(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})")


class Release(NamedTuple):
    """A release; ``major`` is -1 where it is counted from X."""

    major: int
    minor: int

    @property
    def is_relative(self) -> bool:
        """Whether it is counted from X."""
        return self.major == _RELATIVE

    def __str__(self) -> str:
        if self.is_relative:
            return f"X+{self.minor}" if self.minor else "X"
        return f"{self.major}.{self.minor}"


def parse_release(text: str) -> Release:
    """``1.30``, ``v1.30``, ``X`` or ``X+3``. Raises ``ValueError``."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no release")
    counted, major, minor = match.groups()
    return Release(_RELATIVE, int(counted or 0)) if major is None else Release(int(major), int(minor))


@dataclass(frozen=True, slots=True)
class Calendar:
    """The releases a plan lists, in order, with the dates it knows; both may be empty."""

    listed: tuple[Release, ...] = ()
    dates: Mapping[Release, date] = field(default_factory=dict)

    def distance(self, start: Release, end: Release) -> int | None:
        """How many releases later ``end`` is; ``None`` where another major release has come in between and no list
        says how many there were."""
        if start in self.listed and end in self.listed:
            return self.listed.index(end) - self.listed.index(start)
        return end.minor - start.minor if start.major == end.major else None

    def is_over(self, start: Release, end: Release) -> bool:
        """Whether 9 months and 3 releases have passed; months count where both dates are known, and what cannot be
        counted has passed."""
        steps = self.distance(start, end)
        if steps is not None and steps < WAIT_RELEASES:
            return False
        return not self._dated(start, end) or self.dates[end] >= _months_after(self.dates[start])

    def is_late(self, start: Release, end: Release) -> bool:
        """Whether ``end`` is later than the last release that 9 months or 3 releases, whichever is longer, reach."""
        steps = self.distance(start, end)
        if steps is None or steps <= WAIT_RELEASES:
            return False
        before = self._before(end)
        if before is not None and self._dated(start, before):
            return self.is_over(start, before)
        return True

    def earliest(self, start: Release) -> str:
        """The first release after the wait, in words."""
        if start in self.listed:
            for release in self.listed[self.listed.index(start) :]:
                if self.is_over(start, release):
                    return str(release)
        counted = str(Release(start.major, start.minor + WAIT_RELEASES))
        return (
            counted if start not in self.dates else f"{WAIT_MONTHS} months and {WAIT_RELEASES} releases later"
        )

    def between(
        self, first: Release, last: Release, mentioned: Iterable[Release] = ()
    ) -> tuple[Release, ...]:
        """All releases from ``first`` to ``last``; those of other major releases as far as known."""
        known = {*self.listed, *mentioned, first, last}
        for one, other in pairwise(sorted(known)):
            if one.major == other.major and not (one in self.listed and other in self.listed):
                known |= {Release(one.major, minor) for minor in range(one.minor, other.minor)}
        return tuple(sorted(r for r in known if first <= r <= last))

    def _before(self, release: Release) -> Release | None:
        position = self.listed.index(release) if release in self.listed else 0
        return self.listed[position - 1] if position else None

    def _dated(self, *releases: Release) -> bool:
        return all(release in self.dates for release in releases)


def _months_after(start: date) -> date:
    months = start.month - 1 + WAIT_MONTHS
    year, month = start.year + months // 12, months % 12 + 1
    for day in (start.day, 30, 29, 28):
        try:
            return date(year, month, day)
        except ValueError:
            continue
    raise AssertionError("every month has 28 days")
