"""Where something is in an input: the place every IR node and every diagnostic carries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A place in one input file.

    ``file`` is the path as the user named it (or ``<stdin>``, or ``kubernetes-validate:1.37``);
    ``pointer`` is the JSON pointer (RFC 6901) below that document; ``line`` and ``column`` count
    from 1, and are 0 where the input has no lines (a package, a live cluster).
    """

    file: str
    pointer: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        if self.line:
            return f"{self.file}:{self.line}:{self.column}"
        return f"{self.file}#{self.pointer}" if self.pointer else self.file


NOWHERE = Location("<none>")


def escape_pointer(token: str) -> str:
    """One reference token of a JSON pointer (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape_pointer(token: str) -> str:
    """What ``escape_pointer`` wrote, as it was."""
    return token.replace("~1", "/").replace("~0", "~")


Positions = Mapping[str, tuple[int, int]]


@dataclass(slots=True)
class Document:
    """One parsed document: plain JSON, and where each of its values stands.

    ``find_positions`` gives line and column by JSON pointer; it is called when the first position is asked
    for, so that an input without faults pays for no table.
    """

    file: str
    value: Any
    find_positions: Callable[[], Positions] | None = None
    _positions: Positions | None = field(default=None, repr=False)

    def at(self, pointer: str) -> Location:
        """The place of ``pointer``; the nearest enclosing place with a known line where it has none."""
        if self._positions is None:
            if self.find_positions is None:
                return Location(self.file, pointer)
            self._positions = self.find_positions()
        nearest = pointer
        while nearest and nearest not in self._positions:
            nearest = nearest.rpartition("/")[0]
        line, column = self._positions.get(nearest, (0, 0))
        return Location(self.file, pointer, line, column)
