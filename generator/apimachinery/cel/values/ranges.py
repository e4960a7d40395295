"""Ranges of costs and sizes: unsigned 64-bit bounds whose arithmetic stops at the largest value."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

MAX = 2**64 - 1


def _add(a: int, b: int) -> int:
    return min(a + b, MAX)


def _multiply(a: int, b: int) -> int:
    return min(a * b, MAX)


def _scale(value: int, factor: float) -> int:
    number = float(value)
    if number > 0 and factor > 0 and number > MAX / factor:
        return MAX
    product = ceil(number * factor)
    return MAX if product >= 2**64 else product


class Range(NamedTuple):
    """From ``low`` to ``high``."""

    low: int
    high: int

    def __add__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(_add(self.low, other.low), _add(self.high, other.high))

    def __mul__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(_multiply(self.low, other.low), _multiply(self.high, other.high))

    def scaled(self, factor: float) -> Range:
        """Times a factor, rounded up."""
        return Range(_scale(self.low, factor), _scale(self.high, factor))

    def union(self, other: Range) -> Range:
        """The range that has both."""
        return Range(min(self.low, other.low), max(self.high, other.high))


def fixed(value: int) -> Range:
    """A range of one value."""
    return Range(value, value)


FREE = Range(0, 0)
ONE = Range(1, 1)
UNKNOWN = Range(0, MAX)
