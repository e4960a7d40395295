"""Schedules of CronJobs: five fields, or ``@hourly`` and its like. No I/O."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_DAYS = "sun mon tue wed thu fri sat".split()
_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, _MONTHS), (0, 6, _DAYS))
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
MOST_YEARS = 5
"""How far ahead a time is sought: February 30 never comes."""


class ScheduleError(ValueError):
    """A schedule that cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes, hours, days, months and weekdays of a schedule; or ``every`` so many seconds."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    """Whether days of the month or of the week are left open: then both must fit, else one is enough."""
    every: float = 0.0

    def after(self, moment: float, zone: tzinfo = UTC) -> float | None:
        """The first time after a moment, in seconds since 1970; None where there is none in years."""
        if self.every:
            return float(int(moment)) + max(self.every, 1.0)
        local = datetime.fromtimestamp(moment, zone).replace(tzinfo=None, second=0, microsecond=0)
        day, start = local.date(), local + timedelta(minutes=1)
        for _ in range(MOST_YEARS * 366):
            if self._takes(day):
                for hour in sorted(self.hours):
                    for minute in sorted(self.minutes):
                        naive = datetime(day.year, day.month, day.day, hour, minute)
                        found = self._instant(naive, zone) if naive >= start or zone is not UTC else None
                        if found is not None and found > moment:
                            return found
            day = self._next_day(day)
        return None

    def _instant(self, naive: datetime, zone: tzinfo) -> float | None:
        """When a clock on the wall shows a time; None where it is skipped, as in spring."""
        found = naive.replace(tzinfo=zone).timestamp()
        shown = datetime.fromtimestamp(found, zone).replace(tzinfo=None)
        return found if shown == naive else None

    def _takes(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (in_month and in_week) if self.any_day else (in_month or in_week)

    def _next_day(self, day: date) -> date:
        if day.month in self.months:
            return day + timedelta(days=1)
        return day.replace(day=monthrange(day.year, day.month)[1]) + timedelta(days=1)

    def last(self, after: float, until: float, zone: tzinfo = UTC) -> float | None:
        """The last time after one moment, up to another."""
        if self.every:
            steps = int((until - int(after)) // max(self.every, 1.0))
            return int(after) + steps * max(self.every, 1.0) if steps > 0 else None
        for window in (3600.0, 86400.0, 32 * 86400.0, 366 * 86400.0, until - after + 1):
            found, moment = None, self.after(max(after, until - window), zone)
            while moment is not None and moment <= until:
                found, moment = moment, self.after(moment, zone)
            if found is not None:
                return found
            if until - window <= after:
                return None
        return None


def parse(text: str) -> Schedule:
    """Reads a schedule. Raises ScheduleError."""
    if text.startswith("@every "):
        none: frozenset[int] = frozenset()
        return Schedule(
            none, none, none, none, none, any_day=True, every=_duration(text.removeprefix("@every "))
        )
    parts = _NAMED.get(text, text).split()
    if len(parts) != 5:
        raise ScheduleError(f"expected exactly 5 fields, found {len(parts)}: {text!r}")
    minutes, hours, days, months, weekdays = (
        _field(part, *bounds) for part, bounds in zip(parts, _FIELDS, strict=True)
    )
    any_day = any(part[0] in "*?" for part in (parts[2], parts[4]))
    return Schedule(minutes, hours, days, months, weekdays, any_day=any_day)


def _duration(text: str) -> float:
    parts = _EVERY.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ScheduleError(f"not a duration: {text!r}")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _field(text: str, least: int, most: int, names: Sequence[str]) -> frozenset[int]:
    values: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        if first in ("*", "?"):
            low, high = least, most
        else:
            low = _value(first, names, least)
            high = _value(last, names, least) if dash else (most if slash else low)
        if (slash and not step.isdigit()) or not least <= low <= high <= most or step == "0":
            raise ScheduleError(f"{part!r} is none of {least} to {most}")
        values |= set(range(low, high + 1, int(step) if slash else 1))
    return frozenset(values)


def _value(text: str, names: Sequence[str], least: int) -> int:
    if text.lower() in names:
        return list(names).index(text.lower()) + least
    if not text.isdigit():
        raise ScheduleError(f"{text!r} is no number")
    return int(text)
