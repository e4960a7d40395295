"""Room for recursion over deep trees.

The grammar allows trees some thousand nodes deep, more than Python's default of 1,000 nested calls. Calls between
Python functions take no C stack, so a higher limit is safe. It is raised once, when the package is imported, and
never lowered: threads share it, and a limit that changes in the middle of a run surprises those who guard it.
"""

from __future__ import annotations

import sys

FRAMES = 12_000
"""Nested calls: 250 open brackets at 22 calls each while a faulty source is explained, and twice that to spare."""


def allow_depth() -> None:
    """Make sure that ``FRAMES`` nested calls are possible."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)


class TooDeep(Exception):
    """An expression nested deeper than the grammar allows."""
