"""YAML bodies, read by the rules of YAML 1.1 as kube-apiserver does, into plain JSON values.

A document is built from parser events, with a stack and no recursion, so depth costs no call stack and an
alias is expanded under a budget: neither deep nesting nor a bomb of aliases takes memory. Scalars follow
go-yaml: ``y``, ``n``, ``on``, ``off`` are booleans, ``010`` is eight, a date stays text, ``1:30`` too. Keys that
are not strings become strings. Only the first document of a stream counts.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import yaml

from apimachinery.meta.printing import go_json, go_quote, shortest
from apimachinery.wire import json
from apimachinery.wire.block_yaml import read_block
from apimachinery.wire.json import DecodeFault
from apimachinery.wire.strict import has_duplicate_fields

MAX_DEPTH = 500
MAX_ALIASED_NODES = 100_000
_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _true, _false in (("y", "n"), ("yes", "no"), ("on", "off"), ("true", "false")):
    for _form in (str.lower, str.capitalize, str.upper):
        _WORDS[_form(_true)] = True
        _WORDS[_form(_false)] = False
_INTEGER = re.compile(r"[-+]?(0[bB][01_]+|0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")
_NUMERIC = frozenset("0123456789+-.")
"""What a number may begin with."""
_TAG = "tag:yaml.org,2002:"
_SCALAR, _MAPPING, _SEQUENCE = yaml.ScalarEvent, yaml.MappingStartEvent, yaml.SequenceStartEvent
_MAPPING_END, _SEQUENCE_END = yaml.MappingEndEvent, yaml.SequenceEndEvent


def decode(data: bytes, duplicates: list[str] | None = None) -> Any:
    """The first document as JSON values; ``None`` where there is none.

    ``duplicates`` takes a text for each key that occurs twice in a mapping (the later one counts). Raises
    DecodeFault.
    """
    if data.startswith(b"{"):
        if (value := _read_as_json(data)) is not None:
            return value
    elif (mapping := read_block(data, resolve, _WORDS)) is not None:
        return mapping
    return _documents(data, duplicates, 1)[0]


_LONG_KEY = re.compile(rb'"[^"]{1000,}+"[ \r\n]*:')
"""YAML has no key of more than 1,024 characters."""


def _read_as_json(data: bytes) -> Any:
    """The value of a document that is JSON and says the same in YAML; None where that is not sure.

    JSON is read many times faster, and clients send it as YAML. Left to YAML are escapes (it lacks one of JSON's),
    characters beyond ASCII (it folds some, and refuses others), tabs, and numbers that are no plain integers.
    """
    if not data.isascii() or b"\\" in data or b"\t" in data or b"\x7f" in data:
        return None
    if data.count(b"{") + data.count(b"[") >= MAX_DEPTH or _LONG_KEY.search(data):
        return None
    try:
        value = json.decode(data)
    except DecodeFault:
        return None
    return None if json.may_have_doubles(value) or has_duplicate_fields(data, value) else value


def decode_all(data: bytes, duplicates: list[str] | None = None) -> list[Any]:
    """All documents of a stream as JSON values, without those that say nothing. Otherwise as ``decode``."""
    return [value for value in _documents(data, duplicates, None) if value is not None]


def _documents(data: bytes, duplicates: list[str] | None, limit: int | None) -> list[Any]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DecodeFault("yaml: invalid leading UTF-8 octet") from None
    loader = _PARSER(text)
    found: list[Any] = []
    try:
        events = iter(loader.get_event, None)
        checked = _without_slashes(text, events) if "\\/" in text else events
        aliased = 0
        while limit is None or len(found) < limit:
            builder = _Builder(duplicates, aliased)
            found.append(builder.build(checked))
            if builder.fault:
                raise DecodeFault(builder.fault)
            aliased = builder.aliased
            if not builder.ended:
                break
        return found
    except yaml.MarkedYAMLError as fault:
        raise DecodeFault(_words(fault)) from None
    except yaml.reader.ReaderError:
        raise DecodeFault("yaml: control characters are not allowed") from None
    except yaml.YAMLError as fault:
        raise DecodeFault(f"yaml: {fault}") from None
    finally:
        loader.dispose()


_ESCAPED_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")


def slash_line(text: str, start: Any, end: Any) -> int | None:
    r"""The line, from one, of a ``\/`` in the double-quoted scalar between two marks: go-yaml does not know that escape
    of JSON."""
    match = _ESCAPED_SLASH.search(text, start.index, end.index)
    return start.line + 1 + text.count("\n", start.index, match.start()) if match else None


def _without_slashes(text: str, events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        if event.__class__ is _SCALAR and event.style == '"':
            line = slash_line(text, event.start_mark, event.end_mark)
            if line is not None:
                raise DecodeFault(f"yaml: line {line}: found unknown escape character")
        yield event


def _words(fault: yaml.MarkedYAMLError) -> str:
    mark = fault.problem_mark or fault.context_mark
    line = mark.line if mark else 0
    # go-yaml counts from one for faults of its scanner and from zero for those of its parser.
    if isinstance(fault, yaml.scanner.ScannerError):
        line += 1
    where = f"line {line}: " if line else ""
    return f"yaml: {where}{fault.problem or fault.context}"


_Lines = dict[str, int]


class _Frame:
    """A mapping or list that is being filled."""

    __slots__ = ("anchor", "is_list", "key", "line", "lines", "repeated", "size", "value")

    def __init__(self, value: Any, anchor: str | None, line: int, lines: _Lines | None) -> None:
        self.value = value
        self.is_list = isinstance(value, list)
        self.anchor = anchor
        self.key: Any = _NO_KEY
        self.repeated = False
        self.size = 1
        self.line = line
        self.lines = lines
        """Where the values of a mapping are that may be merged into another."""


_NO_KEY = object()
_MERGE = object()
_NULL = object()


def _unkeyed(value: Any) -> str:
    """Why a null is no key."""
    shown = "<nil>" if value is None else _go_syntax(value)
    return f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {shown}"


def _go_syntax(value: Any) -> str:
    """A value as Go's ``%#v`` prints what go-yaml read."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_go_syntax, value))}}}"
    if isinstance(value, dict):
        shown = (f"{go_quote(key)}:{_go_syntax(value[key])}" for key in sorted(value))
        return f"map[interface {{}}]interface {{}}{{{', '.join(shown)}}}"
    return go_json(value)


class _Builder:
    def __init__(self, duplicates: list[str] | None, aliased: int = 0) -> None:
        self._duplicates = duplicates
        self._anchors: dict[str, tuple[Any, int]] = {}
        self.aliased = aliased
        """Nodes that aliases stood for, in all documents of the stream so far."""
        self.ended = False
        """Whether a document ended: without one, the stream did."""
        self._stack: list[_Frame] = []
        self._root: Any = None
        self._lines: dict[int, tuple[Any, _Lines]] = {}  # with the value, so that its id stays its own
        self.fault = ""
        """What is wrong with a document that can be read and is no JSON."""

    def build(self, events: Iterator[Any]) -> Any:
        # Most of the time that reading takes is spent here: dispatch is by class, and the usual cases are in line.
        stack = self._stack
        for event in events:
            kind = event.__class__
            if kind is _SCALAR:
                text = event.value
                if event.tag is not None:
                    value = tagged(event.value, event.tag)
                elif event.style or (text not in _WORDS and text[0] not in _NUMERIC):
                    value = text
                else:
                    value = resolve(text)
                if event.anchor:
                    self._anchors[event.anchor] = (value, 1)
                self._place(value, 1, event.start_mark.line, event)
            elif kind is _MAPPING or kind is _SEQUENCE:
                if len(stack) >= MAX_DEPTH:
                    raise DecodeFault("yaml: exceeded max depth")
                merged = bool(stack) and (stack[-1].key is _MERGE or stack[-1].lines is not None)
                lines: _Lines | None = {} if merged or event.anchor else None
                made: Any = {} if kind is _MAPPING else []
                stack.append(_Frame(made, event.anchor, event.start_mark.line, lines))
            elif kind is _MAPPING_END or kind is _SEQUENCE_END:
                self._close(event)
            elif kind is yaml.AliasEvent:
                if event.anchor not in self._anchors:
                    raise DecodeFault(f"yaml: unknown anchor '{event.anchor}' referenced")
                value, size = self._anchors[event.anchor]
                self.aliased += size
                if self.aliased > MAX_ALIASED_NODES:
                    raise DecodeFault("yaml: document contains excessive aliasing")
                copied = _copied(value)
                if id(value) in self._lines:
                    self._lines[id(copied)] = (copied, self._lines[id(value)][1])
                self._place(copied, size, event.start_mark.line, event)
            elif kind is yaml.DocumentEndEvent:
                self.ended = True
                return self._root
        return self._root

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.value, frame.size)
        if frame.lines is not None:
            self._lines[id(frame.value)] = (frame.value, frame.lines)
        self._place(frame.value, frame.size, frame.line, event)

    def _place(self, value: Any, size: int, line: int, event: Any) -> None:
        if not self._stack:
            self._root = value
            return
        frame = self._stack[-1]
        frame.size += size
        if frame.is_list:
            frame.value.append(value)
        elif frame.key is _NO_KEY:
            if (
                value == "<<"
                and event.__class__ is yaml.ScalarEvent
                and (event.implicit[0] or event.tag == f"{_TAG}merge")
            ):
                frame.key = _MERGE
                return
            key = frame.key = value if value.__class__ is str else _NULL if value is None else key_text(value)
            if key in frame.value:
                frame.repeated = True
        elif frame.key is _MERGE:
            frame.key = _NO_KEY
            # The last first, since those before override it; what is merged overrides what is there already.
            for merged in reversed(value) if isinstance(value, list) else [value]:
                if not isinstance(merged, dict):
                    raise DecodeFault("yaml: map merge requires map or sequence of maps as the value")
                self._merge(frame, merged, line)
        else:
            if frame.key is _NULL:
                self.fault = self.fault or _unkeyed(value)
                frame.key = "null"
            if frame.repeated:
                # Noticed when the value is put there, so what is wrong inside it comes first.
                self._repeat(line, frame.key)
                frame.repeated = False
            if frame.lines is not None:
                frame.lines[frame.key] = line
            frame.value[frame.key] = value
            frame.key = _NO_KEY

    def _repeat(self, line: int, key: str) -> None:
        if self._duplicates is not None:
            self._duplicates.append(f'line {line + 1}: key "{key}" already set in map')

    def _merge(self, frame: _Frame, merged: dict[str, Any], line: int) -> None:
        lines = self._lines[id(merged)][1] if id(merged) in self._lines else {}
        for key, value in merged.items():
            if key in frame.value:
                self._repeat(lines.get(key, line), key)
            frame.value[key] = _copied(value)
            if frame.lines is not None:
                frame.lines[key] = lines.get(key, line)


def key_text(value: Any) -> str:
    """The key that a scalar is in a mapping. Raises DecodeFault for what is none."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(int(value)) if value == int(value) else repr(value)
    if isinstance(value, str):
        return value
    raise DecodeFault("yaml: invalid map key")


def tagged(text: str, tag: str) -> Any:
    """The value of a scalar with an explicit tag. Raises DecodeFault."""
    if tag == "!":
        return text
    name = tag.removeprefix(_TAG)
    if name == "binary":
        try:
            return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
        except binascii.Error:
            raise DecodeFault("yaml: !!binary value contains invalid base64 data") from None
    if name in ("null", "bool", "int", "float"):
        value = resolve(text)
        return float(value) if name == "float" and isinstance(value, int) else value
    return text


def resolve(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _INTEGER.match(text):
        return _integer(text)
    if _FLOAT.match(text):
        number = float(text)
        if math.isinf(number):  # Go reads a number beyond the range as text
            return text
        return int(number) if number.is_integer() and abs(number) < 1 << 53 else number
    if _INFINITE.match(text):
        raise DecodeFault(f"json: unsupported value: {_infinite(text)}")
    return text


def _integer(text: str) -> Any:
    digits = text.replace("_", "")
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    if len(digits) > 80:
        return float(digits) if digits.isdigit() and len(digits) < 300 else text
    lower = digits.lower()
    if lower.startswith(("0x", "0b", "0o")):
        number = int(lower, 0) if len(lower) > 2 else None
    elif lower.startswith("0") and len(lower) > 1:
        number = int(lower, 8)
    else:
        number = int(lower)
    if number is None:
        return text
    number *= sign
    return number if -(1 << 63) <= number < 1 << 64 else float(number)


def _infinite(text: str) -> str:
    value = math.nan if "n" in text.lower() and "inf" not in text.lower() else math.inf
    return "NaN" if math.isnan(value) else "-Inf" if text.startswith("-") else "+Inf"


def _copied(value: Any) -> Any:
    """A copy of its own for each alias: values are changed in place later. Its size was budgeted."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


class _Dumper(_DUMPER):  # type: ignore[misc]
    """Block style, no aliases, and quotes for what YAML 1.1 would read as something else than text."""

    def ignore_aliases(self, data: Any) -> bool:
        """Never an alias: equal values are written out."""
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text and not text.startswith((" ", "\n")) else None
    try:
        if style is None and not isinstance(resolve(text), str):
            style = '"'
    except DecodeFault:
        style = '"'
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


def _represent_float(dumper: Any, number: float) -> Any:
    """As a float is read again that JSON wrote: one without a fraction is an integer there."""
    if number.is_integer() and abs(number) < 1 << 63:
        return dumper.represent_int(int(number))
    # As text, so that it needs no point before a power of ten: quotes are for what readers take for something else.
    text = shortest(number, -4, 6)
    return dumper.represent_scalar(f"{_TAG}{'str' if 'e' in text and '.' not in text else 'float'}", text)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(float, _represent_float)


class _Parts(list[bytes]):
    """What is written, in parts. A method of Python: others have their turn each time it is called, and not while the
    library writes a text of megabytes."""

    def write(self, data: bytes) -> None:
        """Takes a part."""
        self.append(data)


def _parts(value: Any) -> _Parts:
    parts = _Parts()
    yaml.dump(
        value,
        parts,
        Dumper=_Dumper,
        default_flow_style=False,
        allow_unicode=True,
        width=1 << 20,
        encoding="utf-8",
    )
    return parts


def encode(value: Any) -> bytes:
    """A value as a YAML document, keys sorted."""
    return b"".join(_parts(value))


AT_ONCE = 20
"""Items of a list that are encoded together, where they are small."""
PART_BYTES = 1 << 16


def encode_list(
    value: Mapping[str, Any], items: Iterable[Any], count: int, member: str = "items"
) -> Iterator[bytes]:
    """The same of a list with ``count`` items, which are its ``member``, some of them at a time: the nodes of a long
    document are millions of objects."""
    for key in sorted(value):
        if key != member or not count:
            yield encode({key: value[key]})
            continue
        yield f"{member}:\n".encode()
        left, together = iter(items), 1
        while some := list(islice(left, together)):
            parts = _parts(some)
            small = sum(map(len, parts)) < PART_BYTES
            together = min(AT_ONCE, 2 * together) if small else max(1, together // 2)
            yield from parts
