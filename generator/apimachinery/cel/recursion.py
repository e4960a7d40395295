"""Room for recursion over deep trees.

The grammar allows trees some thousand nodes deep, more than Python's default of 1,000 nested calls. Calls between
Python functions take no C stack, so a higher limit is safe; it is raised only when a deep expression comes, and
never lowered, because threads share it.
"""

from __future__ import annotations

import sys


def allow_depth(frames: int) -> None:
    """Make sure that ``frames`` nested calls more than usual are possible."""
    if sys.getrecursionlimit() < frames:
        sys.setrecursionlimit(frames)


class TooDeep(Exception):
    """An expression nested deeper than the grammar allows."""
