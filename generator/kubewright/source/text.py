"""From bytes to documents: YAML and JSON, with the place of every value, safe against hostile input.

- Text is UTF-8; anything else is a diagnostic, as are broken YAML or JSON, a key twice in one mapping, more than
  ``MAX_BYTES`` of input and more than ``MAX_DEPTH`` levels of nesting.
- What YAML may be, and how its scalars are read, is in ``yaml_text``.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from pathlib import Path
from typing import Any

import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.location import Document, Location, Positions, escape_pointer
from kubewright.source.yaml_text import (
    MAX_DEPTH,
    OPENAPI,
    DocumentBuilder,
    loader_of,
    may_be_yaml,
    parse_yaml,
)

MAX_BYTES = 64 * 1024 * 1024


STDIN = "-"
_URL = re.compile(r"(?:https?|git|ssh|oci|s3):/")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def files_in(folder: Path, diagnostics: Diagnostics) -> list[Path]:
    """All YAML and JSON files in and below ``folder``, sorted; hidden ones and installed dependencies are left out. A
    folder that cannot be listed is a diagnostic, for its files would be passed over in silence."""

    def failed(error: OSError) -> None:
        diagnostics.error("K001", f"cannot read: {error.strerror}", Location(str(error.filename)))

    found: list[Path] = []
    for root, folders, files in os.walk(folder, onerror=failed):
        folders[:] = [
            name for name in folders if not name.startswith(".") and not _is_installed(Path(root, name))
        ]
        paths = (Path(root, name) for name in files if not name.startswith("."))
        found += [path for path in paths if path.suffix in SUFFIXES and path.is_file()]
    return sorted(found)


def _is_installed(folder: Path) -> bool:
    """Whether npm or Go filled a folder with the files of others."""
    # Go writes modules.txt; a folder called vendor may as well be the user's own.
    return folder.name == "node_modules" or (folder.name == "vendor" and (folder / "modules.txt").is_file())


def paths_below(path: Path, diagnostics: Diagnostics) -> list[Path]:
    """The file at ``path``, ``-`` for standard input, or all files of a folder. A diagnostic where there is none."""
    if path.is_dir():
        return files_in(path, diagnostics)
    if str(path) == STDIN or path.exists():  # a pipe counts: `<(helm template …)`
        return [path]
    missing(path, diagnostics)
    return []


def missing(path: Path, diagnostics: Diagnostics) -> None:
    """Says of a path that no file or folder is there; addresses of the web are told by their name."""
    if _URL.match(str(path)):
        hint = "addresses are not fetched: download it first, or pipe it: curl -sSfL URL | kubewright … -"
        address = re.sub(":/+", "://", str(path), count=1)  # a Path has made one slash of two
        diagnostics.error("K001", "cannot read: this is a URL", Location(address), hint)
    else:
        diagnostics.error("K001", "cannot read: no such file or folder", Location(str(path)))


def read_documents(path: Path, diagnostics: Diagnostics, *, modern: bool = False) -> list[Document]:
    """All documents of a file, empty ones left out. Empty after a diagnostic where it cannot be read. ``modern`` files
    are YAML 1.2 whatever they hold: those of this project's own forms, where a field may be called ``y``."""
    name = "<stdin>" if str(path) == STDIN else str(path)
    content = _read_stdin(diagnostics) if str(path) == STDIN else _read(path, name, diagnostics)
    if content is None:
        return []
    return parse_documents(content, name, diagnostics, modern=modern)


def read_single(path: Path, diagnostics: Diagnostics, *, modern: bool = False) -> Document | None:
    """The one document of a file; ``None`` after a diagnostic."""
    documents = read_documents(path, diagnostics, modern=modern)
    if len(documents) > 1:
        diagnostics.error("K004", f"one document is wanted here, not {len(documents)}", documents[1].at(""))
    if not documents and not diagnostics.has_errors:
        diagnostics.error("K003", "the file is empty", Location(str(path)))
    return documents[0] if len(documents) == 1 else None


def parse_documents(
    content: bytes, name: str, diagnostics: Diagnostics, *, modern: bool = False
) -> list[Document]:
    """The documents in ``content``; JSON where it begins like JSON, YAML otherwise."""
    try:
        # A byte order mark, which Windows editors write, is not part of the text.
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        column = error.start - (content.rfind(b"\n", 0, error.start) + 1) + 1
        diagnostics.error(
            "K002",
            f"not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}",
            Location(name, "", line, column),
            "save the file as UTF-8",
        )
        return []
    if text.lstrip()[:1] in ("{", "["):
        found = _parse_json(text, name, diagnostics)
        if found is not None:
            return [found]
        if name.endswith(".json") or not may_be_yaml(text):
            return []
    return parse_yaml(text, name, diagnostics, modern or OPENAPI.search(text) is not None)


def positions_of(content: bytes) -> Positions:
    """Pointer → line and column of the values of the one document in ``content``; what is broken ends the table.

    Of a key that occurs twice, the later place counts.
    """
    text = content.decode("utf-8-sig", "replace")
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _json_positions(text)
    loader = loader_of(text)
    try:
        if not loader.check_node():
            return {}
        builder = DocumentBuilder("", Diagnostics())
        builder.build(loader.get_node(), "", 1)
        return builder.positions
    except (yaml.YAMLError, RecursionError):
        return {}
    finally:
        loader.dispose()


def _read_stdin(diagnostics: Diagnostics) -> bytes | None:
    content = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(content) <= MAX_BYTES:
        return content
    diagnostics.error("K006", f"the input has more than {MAX_BYTES:,} bytes", Location("<stdin>"), "split it")
    return None


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """What is in a file, up to one byte more than ``limit``. Raises OSError where it cannot be read, which named pipes,
    devices and sockets never are: opening one may wait for ever, reading it may never end. Descriptors that the shell
    hands over (``<(helm template …)`` is ``/dev/fd/63``) are pipes with somebody at the other end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or str(path).startswith(_DESCRIPTORS) or str(path) == os.devnull):
        kind = next((word for test, word in _UNREADABLE if test(mode)), "no file")
        raise OSError(errno.EINVAL, f"{kind}; give it on standard input: - < {path}")
    with path.open("rb") as stream:
        return stream.read(limit + 1)


_DESCRIPTORS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")
_UNREADABLE = (
    (stat.S_ISFIFO, "this is a named pipe"),
    (stat.S_ISCHR, "this is a device"),
    (stat.S_ISBLK, "this is a device"),
    (stat.S_ISSOCK, "this is a socket"),
    (stat.S_ISDIR, "this is a folder"),
)


def _read(path: Path, name: str, diagnostics: Diagnostics) -> bytes | None:
    if _URL.match(name):
        missing(path, diagnostics)
        return None
    try:
        content = read_bytes(path)
        if len(content) > MAX_BYTES:
            said = f"the file has more than the {MAX_BYTES:,} bytes that are read"
            diagnostics.error("K006", said, Location(name), "split it")
            return None
        return content
    except OSError as error:
        diagnostics.error("K001", f"cannot read: {error.strerror}", Location(name))
        return None


class _ConstantError(ValueError):
    pass


class _TwiceError(ValueError):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _TwiceError(key)
            seen.add(key)
    return found


def _parse_json(text: str, name: str, diagnostics: Diagnostics) -> Document | None:
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except _TwiceError as twice:
        line, column = _second_key(text, twice.key)
        diagnostics.error(
            "K007", f"the key {twice.key!r} stands twice in one object", Location(name, "", line, column)
        )
        return None
    except json.JSONDecodeError as error:
        if name.endswith(".json") or not may_be_yaml(text):
            diagnostics.error(
                "K010", f"broken JSON: {error.msg}", Location(name, "", error.lineno, error.colno)
            )
        return None
    except RecursionError:
        value = None
    except _ConstantError as constant:
        start = next((m.start() for m in _JSON_TOKEN.finditer(text) if m.group() == str(constant)), 0)
        place = Location(name, "", *_line_column(text, start))
        diagnostics.error("K010", f"broken JSON: {constant} is no JSON value", place)
        return None
    except ValueError:  # Python reads no integer of more than some thousand digits
        longest = max(_DIGITS.finditer(text), key=lambda m: len(m.group()), default=None)
        place = Location(name, "", *_line_column(text, longest.start() if longest else 0))
        diagnostics.error("K010", "broken JSON: a number has too many digits", place, "write it as a string")
        return None
    if half := _half_pair(text):
        place = Location(name, "", *_line_column(text, half.start()))
        diagnostics.error(
            "K010", f"broken JSON: {half.group()} is half a character", place, "write both halves"
        )
        return None
    if value is None or _depth(value) > MAX_DEPTH:
        diagnostics.error("K008", f"nested deeper than {MAX_DEPTH} levels", Location(name))
        return Document(name, {})
    return Document(name, value, lambda: _json_positions(text))


_HIGH, _LOW = r"\\u[dD][89abAB][0-9a-fA-F]{2}", r"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_SURROGATES = re.compile(rf"\\\\|{_HIGH}{_LOW}|({_HIGH}|{_LOW})")


def _half_pair(text: str) -> re.Match[str] | None:
    r"""The escape ``\ud800`` to ``\udfff`` in JSON that is not one of a pair: no text holds it, no file can."""
    return next((match for match in _SURROGATES.finditer(text) if match.group(1)), None)


def _refuse_constant(word: str) -> Any:
    raise _ConstantError(word)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _depth(value: Any) -> int:
    """How deep ``value`` nests, counted no further than one beyond what is allowed."""
    deepest, level = 0, [value] if isinstance(value, dict | list) else []
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return deepest


_DIGITS = re.compile("[0-9]+")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


def _second_key(text: str, key: str) -> tuple[int, int]:
    quoted = json.dumps(key)
    where = -1
    for _ in range(2):
        where = text.find(quoted, where + 1)
    return _line_column(text, where) if where >= 0 else (0, 0)


def _line_column(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _json_positions(text: str) -> Positions:
    """Pointer → line and column of every value. Keys of an object point at the key."""
    positions: dict[str, tuple[int, int]] = {}
    lines = [0, *(match.end() for match in re.finditer("\n", text))]
    line = 0
    stack: list[tuple[str, int]] = []  # pointer of the container, next index (-1 for objects)
    pointer, expect_key = "", False
    for match in _JSON_TOKEN.finditer(text):
        token, start = match.group(), match.start()
        while line + 1 < len(lines) and lines[line + 1] <= start:
            line += 1
        here = (line + 1, start - lines[line] + 1)
        if token in "}]":
            if stack:
                stack.pop()
            expect_key = False
            continue
        if token == ",":
            if stack and stack[-1][1] >= 0:
                container, index = stack[-1]
                stack[-1] = (container, index + 1)
                pointer = f"{container}/{index + 1}"
            else:
                expect_key = True
            continue
        if token == ":":
            continue
        if expect_key:
            key = json.loads(token) if "\\" in token else token[1:-1]
            pointer = f"{stack[-1][0]}/{escape_pointer(key)}"
            positions.setdefault(pointer, here)
            expect_key = False
            continue
        positions.setdefault(pointer, here)
        if token == "{":
            stack.append((pointer, -1))
            expect_key = True
        elif token == "[":
            stack.append((pointer, 0))
            pointer = f"{pointer}/0"
    return positions
