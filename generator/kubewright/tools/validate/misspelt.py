"""Unknown fields that are plainly a known one misspelt: what was meant, and the edit that says it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from apimachinery.schema.node import SchemaNode
from kubewright.location import unescape_pointer
from kubewright.tools.validate.places import pointer_of

_NEAR = 0.75


@dataclass(frozen=True, slots=True)
class Misspelling:
    """A key of a file that should be called otherwise. ``line`` and ``column`` count from 1."""

    file: str
    line: int
    column: int
    written: str
    meant: str


def meant_by(path: str, value: Any, node: SchemaNode) -> tuple[str, str] | None:
    """(written, meant) for the unknown field at ``path`` of ``value``, which ``node`` describes. ``None`` where no
    field is near, or the one that is near is there already."""
    *above, written = [unescape_pointer(step) for step in pointer_of(value, path).split("/")[1:]] or [""]
    inner: SchemaNode | bool | None = node
    for step in above:
        if not isinstance(inner, SchemaNode):
            return None
        value = value[int(step)] if isinstance(value, list) else value[step]
        inner = (
            inner.items if step.isdigit() and inner.items else inner.properties.get(step, inner.additional)
        )
    if not isinstance(inner, SchemaNode) or not isinstance(value, dict) or written not in value:
        return None
    free = [name for name in inner.properties if name not in value]
    same = [name for name in free if name.lower() == written.lower()]
    near = same or get_close_matches(written, free, 2, _NEAR)
    return (written, near[0]) if near and (len(near) == 1 or same) else None


def correct(misspellings: Iterable[Misspelling]) -> int:
    """Renames the keys in their files; how many were. A key that is not where it was found is left alone."""
    of_file: dict[str, list[Misspelling]] = {}
    for each in misspellings:
        of_file.setdefault(each.file, []).append(each)
    corrected = 0
    for file, found in of_file.items():
        path = Path(file)
        lines = path.read_bytes().decode("utf-8").split("\n")
        for each in sorted(found, key=lambda one: (one.line, one.column), reverse=True):
            line, at = lines[each.line - 1], each.column - 1
            at += line[at : at + 1] in ('"', "'")
            if line[at : at + len(each.written)] == each.written:
                lines[each.line - 1] = line[:at] + each.meant + line[at + len(each.written) :]
                corrected += 1
        path.write_bytes("\n".join(lines).encode())
    return corrected
