"""From bytes to documents: YAML and JSON, with the place of every value, safe against hostile input.

- Text is UTF-8; anything else is a diagnostic, as are broken YAML or JSON, a key twice in one mapping, more than
  ``MAX_BYTES`` of input and more than ``MAX_DEPTH`` levels of nesting.
- YAML aliases are expanded by copying and count towards ``MAX_NODES``, so that a small file cannot unfold into
  more than memory holds; an alias inside its own anchor is refused.
- YAML scalars are what kubectl takes them for, by the rules of ``apimachinery.wire.yaml``: ``on`` is true, ``010`` is
  eight, a date is text. OpenAPI documents are YAML 1.2: there ``y`` and ``on`` are text, keys too.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer

from apimachinery.wire.json import DecodeFault
from apimachinery.wire.yaml import key_text, resolve, slash_line, tagged
from kubewright.diagnostics import Diagnostics
from kubewright.location import Document, Location, Positions, escape_pointer

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 150
MAX_NODES = 2_000_000
MAX_COPIED_NODES = 200_000


STDIN = "-"
_URL = re.compile(r"(?:https?|git|ssh|oci|s3):/")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})


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
        if name.endswith(".json") or not _may_be_yaml(text):
            return []
    return _parse_yaml(text, name, diagnostics, modern or _OPENAPI.search(text) is not None)


def positions_of(content: bytes) -> Positions:
    """Pointer → line and column of the values of the one document in ``content``; what is broken ends the table.

    Of a key that occurs twice, the later place counts.
    """
    text = content.decode("utf-8-sig", "replace")
    if text.lstrip()[:1] in ("{", "[") and _is_json(text):
        return _json_positions(text)
    loader = _loader(text)
    try:
        if not loader.check_node():
            return {}
        builder = _Builder("", Diagnostics())
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
        if name.endswith(".json") or not _may_be_yaml(text):
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


def _may_be_yaml(text: str) -> bool:
    """Flow-style YAML begins like JSON: with unquoted or single-quoted keys it cannot be JSON."""
    return bool(re.match(r"\s*[\[{]\s*[A-Za-z'#&*!]", text))


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


def _parse_yaml(text: str, name: str, diagnostics: Diagnostics, is_modern: bool) -> list[Document]:
    documents: list[Document] = []
    if _may_be_deep(text) and _is_deep(text, name, diagnostics):
        return []
    escaped = text if "\\/" in text else ""  # not in the loop: a file may have 300,000 documents
    loader = _loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            builder = _Builder(name, diagnostics, text=escaped, is_modern=is_modern)
            value = builder.build(node, "", 1)
            if builder.failed:
                continue
            if value is not None:
                documents.append(Document(name, value, _ready(builder.positions)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Location(name, "", mark.line + 1, mark.column + 1) if mark else Location(name)
        diagnostics.error("K011", f"broken YAML: {error.problem or error.context}", place)
    except yaml.YAMLError as error:
        diagnostics.error("K011", f"broken YAML: {str(error).splitlines()[0]}", Location(name))
    except RecursionError:
        diagnostics.error("K008", f"nested deeper than {MAX_DEPTH} levels", Location(name))
    finally:
        loader.dispose()
    return documents


_ANCHOR = re.compile(r"(?:^|[\s\[{,:-])&([^\s,\[\]{}]+)")


class _ReusedAnchors(Composer, CParser, yaml.resolver.Resolver):
    """Takes an anchor that occurs again as a new one, as YAML has it (1.2.2, section 7.1); PyYAML refuses it."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()
        if not isinstance(event, yaml.AliasEvent):
            self.anchors.pop(event.anchor, None)
        return super().compose_node(parent, index)


def _loader(text: str) -> Any:
    """The fast one, unless an anchor may occur twice."""
    anchors = _ANCHOR.findall(text) if "&" in text else []
    return yaml.CSafeLoader(text) if len(anchors) == len({*anchors}) else _ReusedAnchors(text)


_OPENAPI = re.compile(r"""^["']?(swagger|openapi)["']?\s*:""", re.MULTILINE)
_LEADING = re.compile(r"^[ \-?:]*", re.MULTILINE)


def _may_be_deep(text: str) -> bool:
    """Whether ``text`` could nest deeper than allowed, judged from its characters: no block is deeper than the
    indentation (with dashes) of its line, no flow deeper than there are opening brackets."""
    if text.count("[") + text.count("{") > MAX_DEPTH:
        return True
    return max((match.end() - match.start() for match in _LEADING.finditer(text)), default=0) > MAX_DEPTH


def _is_deep(text: str, name: str, diagnostics: Diagnostics) -> bool:
    """Whether ``text`` does nest deeper; composing it would then overflow the stack of the C parser."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    mark = event.start_mark
                    place = Location(name, "", mark.line + 1, mark.column + 1) if mark else Location(name)
                    diagnostics.error("K008", f"nested deeper than {MAX_DEPTH} levels", place)
                    return True
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return False
    return False


def _ready(positions: Positions) -> Callable[[], Positions]:
    return lambda: positions


_RESOLVER: Any = yaml.resolver.Resolver()
_WORDS_OF_1_1 = frozenset(
    form(word) for word in ("y", "n", "yes", "no", "on", "off") for form in (str, str.capitalize, str.upper)
)


@dataclass(slots=True)
class _Builder:
    """Builds plain values from YAML nodes, and notes where each stood. ``text`` is the document where it may hold an
    escaped slash."""

    name: str
    diagnostics: Diagnostics
    text: str = ""
    is_modern: bool = False
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)
    failed: bool = False
    nodes: int = 0
    copied: int = 0
    _open: list[int] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    def fault(self, code: str, message: str, node: Any, hint: str = "") -> None:
        self.failed = True
        place = Location(self.name, "", node.start_mark.line + 1, node.start_mark.column + 1)
        self.diagnostics.error(code, message, place, hint)

    def build(self, node: Any, pointer: str, depth: int) -> Any:
        if self.failed and self.nodes > MAX_NODES:
            return None
        self.nodes += 1
        identity = id(node)
        if identity in self._seen:
            self.copied += 1
        self._seen.add(identity)
        if self.copied > MAX_COPIED_NODES or self.nodes > MAX_NODES:
            self.nodes = MAX_NODES + 1
            if not self.failed:
                self.fault("K009", "the aliases of this document unfold into too much", node, "write it out")
            return None
        if depth > MAX_DEPTH:
            if not self.failed:
                self.fault("K008", f"nested deeper than {MAX_DEPTH} levels", node)
            return None
        mark = node.start_mark
        self.positions.setdefault(pointer, (mark.line + 1, mark.column + 1))
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if node.tag not in ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.fault("K012", f"the tag {node.tag} has no meaning here", node)
            return None
        if identity in self._open:
            self.fault("K009", "an alias stands inside its own anchor", node)
            return None
        self._open.append(identity)
        try:
            if isinstance(node, yaml.SequenceNode):
                return [
                    self.build(item, f"{pointer}/{index}", depth + 1) for index, item in enumerate(node.value)
                ]
            return self._mapping(node, pointer, depth)
        finally:
            self._open.pop()

    def _mapping(self, node: Any, pointer: str, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge" and not key_node.style:
                for source in self._merge_sources(value_node):
                    built = self.build(source, pointer, depth + 1)
                    if isinstance(built, dict):
                        merged = {**built, **merged}
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                self.fault("K012", "a key must be a string", key_node)
                continue
            key = self._key(key_node)
            place = f"{pointer}/{escape_pointer(key)}"
            if key in found:
                self.fault("K007", f"the key {key!r} stands twice in one mapping", key_node)
                continue
            mark = key_node.start_mark
            self.positions[place] = (mark.line + 1, mark.column + 1)
            found[key] = self.build(value_node, place, depth + 1)
        return (
            {**{key: item for key, item in merged.items() if key not in found}, **found} if merged else found
        )

    def _merge_sources(self, node: Any) -> Iterator[Any]:
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        else:
            yield node

    def _key(self, node: Any) -> str:
        value = self._scalar(node)
        return str(node.value) if isinstance(value, float) else key_text(value)

    def _scalar(self, node: Any) -> Any:
        if not node.style and node.tag == _RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False)):
            if self.is_modern and node.value in _WORDS_OF_1_1:
                return node.value
            return self._resolved(node, resolve)
        if node.style == '"' and self.text:
            if slash_line(self.text, node.start_mark, node.end_mark) is not None:
                self.fault("K011", "broken YAML: found unknown escape character", node, 'write "/" alone')
            return node.value
        if node.tag == "tag:yaml.org,2002:str":
            return node.value
        if node.tag.rpartition(":")[2] not in _TAGS:
            self.fault("K012", f"the tag {node.tag} has no meaning here", node)
            return None
        return self._resolved(node, lambda text: tagged(text, node.tag))

    def _resolved(self, node: Any, read: Callable[[str], Any]) -> Any:
        try:
            return read(node.value)
        except DecodeFault as fault:
            said = str(fault)
            what = (
                f"{node.value} is no JSON value"
                if "unsupported value" in said
                else said.removeprefix("yaml: ")
            )
            self.fault("K012", what, node)
            return None


_TAGS = frozenset({"null", "bool", "int", "float", "timestamp", "binary", "value", "merge"})
