"""Where something stands in an input: the place every IR node and every diagnostic carries."""

from __future__ import annotations

from dataclasses import dataclass


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
