"""From the path of a field, as faults name it, to its line and column."""

from __future__ import annotations

import re
from typing import Any

from kubewright.location import Location, Positions, escape_pointer
from kubewright.source.text import positions_of
from kubewright.tools.validate.inputs import Chunk

_STEP = re.compile(r"\.?(?:\[([^\]]*)\]|([^.\[]+))")


def pointer_of(value: Any, path: str) -> str:
    """The JSON pointer of the field that ``path`` names in ``value``, as far as it exists.

    Keys that hold dots are in brackets or bare; the longest key that is there wins.
    """
    pointer = ""
    rest = path
    while rest and isinstance(value, dict | list):
        step = _STEP.match(rest)
        if step is None:
            break
        key = step.group(1) if step.group(1) is not None else step.group(2)
        after = rest[step.end() :]
        if isinstance(value, list):
            if not key.isdigit() or int(key) >= len(value):
                break
            value = value[int(key)]
        else:
            bare = rest.removeprefix(".")
            longer = [
                k for k in value if bare == k or (bare.startswith(k) and bare[len(k) : len(k) + 1] in ".[")
            ]
            if longer:
                key = max(longer, key=len)
                after = bare[len(key) :]
            elif key not in value:
                break
            value = value[key]
        pointer += f"/{escape_pointer(key)}"
        rest = after
    return pointer


class Places:
    """Where the fields of one document stand; the document is read for it when the first is asked for."""

    def __init__(self, chunk: Chunk, value: Any) -> None:
        self._chunk = chunk
        self._value = value
        self._positions: Positions | None = None

    def at(self, path: str, below: str = "") -> Location:
        """The place of a field; ``below`` is the pointer of the object that ``path`` begins at."""
        value = self._value
        for token in below.split("/")[1:]:
            value = value[int(token)] if isinstance(value, list) else value.get(token)
        return self.at_pointer(below + pointer_of(value, path))

    def at_pointer(self, pointer: str) -> Location:
        """The place of a value, or of the nearest around it that has one."""
        if self._positions is None:
            self._positions = positions_of(self._chunk.content)
        nearest = pointer
        while nearest and nearest not in self._positions:
            nearest = nearest.rpartition("/")[0]
        line, column = self._positions.get(nearest, (1, 1))
        return Location(self._chunk.file, pointer, line + self._chunk.line, column)
