"""From files, folders and standard input to documents, each with the line it begins at."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault
from kubewright.diagnostics import Diagnostics
from kubewright.location import Location
from kubewright.source.text import MAX_BYTES, paths_below, read_bytes

STDIN = "<stdin>"

_MARKER = re.compile(rb"---(?=[ \t\r\n]|\Z)[^\n]*(?:\n|\Z)")
"""A marker where it is at the beginning of a line; a pattern that says so takes ten times as long."""
_BLANK = re.compile(rb"(?:\s|#[^\n]*(?:\n|\Z)|^\.\.\.(?=\s|\Z))*\Z", re.MULTILINE)
"""Nothing but space, comments and the sign that ends a document."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One document as it is. ``line`` is the number of lines of the file before it."""

    file: str
    line: int
    content: bytes


class ReadDocuments:
    """The values of documents by their text, as far as they are kept: those of a folder are read to tell what they are
    for, and read again to be judged, by forked processes too."""

    MAX_BYTES = 8 * 1024 * 1024
    """Of so many bytes of documents, values are kept."""

    def __init__(self) -> None:
        self._values: dict[bytes, tuple[Any, list[str]]] = {}
        self._bytes = 0

    def read(self, content: bytes, *, again: bool) -> tuple[Any, list[str]]:
        """The value of a document, which nobody changes, and what is said of its duplicate keys; kept where it is
        read ``again``. Raises what ``yaml.decode`` raises."""
        found = self._values.get(content)
        if found is None:
            texts: list[str] = []
            found = yaml.decode(content, texts), texts
            if again and self._bytes + len(content) <= self.MAX_BYTES:
                self._bytes += len(content)
                self._values[content] = found
        return found

    def forget(self) -> None:
        """Keeps nothing of what was read."""
        self._values.clear()
        self._bytes = 0


DOCUMENTS = ReadDocuments()


def decoded(chunk: Chunk) -> Any:
    """The value of a document, which nobody changes; None where it cannot be read."""
    try:
        return DOCUMENTS.read(chunk.content, again=True)[0]
    except (DecodeFault, RecursionError, ValueError):
        return None


def excluded(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a pattern is of this path, of a folder above it, or of the name of one of them."""
    ways = [path, *path.parents]
    return any(fnmatchcase(text, p) for p in patterns for way in ways for text in (way.as_posix(), way.name))


def read_chunks(paths: Sequence[str], diagnostics: Diagnostics, exclude: Sequence[str] = ()) -> list[Chunk]:
    """The documents of all files named, of all manifests in folders named, and of ``-``, in that order.

    Empty documents are none. Files in ``exclude`` (shell patterns) are left out, even those named one by one. What
    cannot be read is a diagnostic.
    """
    found: list[Chunk] = []
    for name in paths:
        if name == "-":
            found += split(sys.stdin.buffer.read(MAX_BYTES + 1), STDIN, diagnostics)
            continue
        for path in paths_below(Path(name), diagnostics):
            if exclude and excluded(path, exclude):
                continue
            try:
                content = read_bytes(path)
            except OSError as error:
                diagnostics.error("K001", f"cannot read: {error.strerror}", Location(str(path)))
                continue
            found += split(content, str(path), diagnostics)
    return found


def split(content: bytes, file: str, diagnostics: Diagnostics) -> list[Chunk]:
    """The documents of one file. ``---`` at the beginning of a line parts documents wherever it stands (YAML 1.2,
    9.1.2); in JSON it cannot be there."""
    if len(content) > MAX_BYTES:
        said = f"the input has more than {MAX_BYTES:,} bytes"
        diagnostics.error("K006", said, Location(file), "split it")
        return []
    if content.lstrip()[:1] == b"{" and b"\n---" not in content:
        return [Chunk(file, 0, content)]
    found: list[Chunk] = []
    start, line = 0, 0
    for marker in _MARKER.finditer(content):
        if marker.start() and content[marker.start() - 1] != 0x0A:
            continue
        _take(found, file, line, content[start : marker.start()])
        line += content.count(b"\n", start, marker.end())
        start = marker.end()
        rest = marker.group()[3:].strip()
        if rest and not rest.startswith(b"#"):
            # A document may begin next to its marker: `--- {a: 1}`. The marker becomes blanks, columns stay.
            start, line = marker.start() + 3, line - marker.group().count(b"\n")
    _take(found, file, line, content[start:])
    return found


def _take(found: list[Chunk], file: str, line: int, content: bytes) -> None:
    if not _BLANK.match(content) and not _only_directives(content):
        found.append(Chunk(file, line, content))


def _only_directives(content: bytes) -> bool:
    return content.startswith(b"%") and all(
        line.startswith((b"%", b"#")) or not line.strip() for line in content.splitlines()
    )
