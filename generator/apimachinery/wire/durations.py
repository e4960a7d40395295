"""Durations as Go writes them (``1h2m3.5s``), and in nanoseconds, as protobuf has them."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_UNITS: Final = {
    "h": 3600 * 10**9,
    "m": 60 * 10**9,
    "s": 10**9,
    "ms": 10**6,
    "us": 10**3,
    "µs": 10**3,
    "ns": 1,
}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(h|ms|m|s|us|µs|ns)")


def nanoseconds(text: str) -> int:
    """The nanoseconds of a duration. Raises ValueError for a text that is none."""
    digits = text.removeprefix("-")
    parts = _PART.findall(digits)
    # The parts must make up the whole text, or something between them was no part.
    if digits != "0" and (not parts or "".join(number + unit for number, unit in parts) != digits):
        raise ValueError(f"time: invalid duration {text!r}")
    # Fractions are exact: a float would lose nanoseconds of long durations.
    total = sum(int(Fraction(number) * _UNITS[unit]) for number, unit in parts)
    return -total if text.startswith("-") else total


def duration_text(nanoseconds: int) -> str:
    """A duration as Go prints it."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if not rest:
        return "0s"
    if rest < _UNITS["s"]:
        # Below a second Go chooses the largest unit that is not below one.
        unit = next(each for each in ("ms", "µs", "ns") if rest >= _UNITS[each])
        return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
    hours, rest = divmod(rest, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    shown = f"{hours}h" if hours else ""
    if hours or minutes:
        shown += f"{minutes}m"
    return f"{sign}{shown}{_decimal(rest, _UNITS['s'])}s"


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    fraction = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{fraction}" if fraction else str(whole)
