"""The plain part of YAML, read a line at a time: what most manifests are written in, three times faster than by events.

A document is taken only where every line is plain: a key, a key with a value, or an item, in blocks. A value is one
word or some, a text in quotes, a list of such in brackets, or a text over lines (``block_scalars``). Anything else
(other flow collections, anchors, tags, tabs, keys that occur twice, indentation that fits nowhere) leaves the whole
document to ``yaml``, which knows all of it and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from apimachinery.wire.block_scalars import (
    block_over_lines,
    column_of,
    plain_over_lines,
    quoted_over_lines,
    unquoted,
)
from apimachinery.wire.json import DecodeFault

MAX_DEPTH = 100
_KEY = r"""[A-Za-z_][A-Za-z0-9_./-]{0,200}+|"[^"\\]{1,200}"|'[^']{1,200}'"""
_QUOTED = r""""(?:[^"\\]++|\\.)*+"|'(?:[^']++|'')*+'"""
# A plain scalar holds neither ": " nor " #", and ends with neither a colon nor a space.
_PLAIN = r"""(?:[^-?:,\[\]{}#&*!|>'"%@` ]|-(?=[!-~]))(?:[^ :]++|:(?=[^ ])| ++(?=[^ #]))*+"""
_WORD = r""""[^"\\]*+"|'[^']*+'|[A-Za-z0-9_./$](?:[A-Za-z0-9_./$@=+*-]++| ++(?=[A-Za-z0-9_./$]))*+"""
_FLOW = rf"\{{\}}|\[ *+(?:(?:{_WORD}) *+(?:, *+(?:{_WORD}) *+)*+)?+\]"
_START = rf"( *+)((?:- ++)*+)(?:({_KEY}):(?:$| ++))?+"
_LINE = re.compile(rf"{_START}(?:({_PLAIN})|({_QUOTED})|({_FLOW})|([|>][+-]?+))?+ *+((?<= )\#.*)?$", re.ASCII)
_OPEN = re.compile(rf"{_START}(['\"].*)$", re.ASCII)
"""A line whose value is in quotes that end in a line below."""
_WORDS = re.compile(_WORD)
_COMMENT = re.compile(r" *+#")
_NUMERIC = frozenset("0123456789+-.")


def read_block(data: bytes, resolve: Callable[[str], Any], words: dict[str, Any]) -> dict[str, Any] | None:
    """The mapping that a document is; None where it is not plain. ``resolve`` gives the value of a plain scalar, which
    is no text where it is in ``words`` or begins as numbers do."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    # Not printable are tabs, other breaks of lines, and some characters that YAML lets in.
    if not text.replace("\n", "").isprintable():
        return None
    try:
        return _Document(text.split("\n"), resolve, words).read()
    except DecodeFault:  # of a number that JSON lacks; what else is wrong may come first
        return None


class _Document:
    """The lines of a document, and the one that is read next."""

    __slots__ = ("_at", "_lines", "_reader", "_resolve", "_words")

    def __init__(self, lines: list[str], resolve: Callable[[str], Any], words: dict[str, Any]) -> None:
        self._lines = lines
        self._resolve = resolve
        self._words = words
        self._reader = _Reader(words)
        self._at = 0

    def read(self) -> dict[str, Any] | None:
        """The mapping; None where a line is not plain."""
        lines, reader, match, words, end = (
            self._lines,
            self._reader,
            _LINE.match,
            self._words,
            len(self._lines),
        )
        unended: str | None = None
        """The plain scalar that may go on in the next line."""
        while self._at < end:
            line = lines[self._at]
            self._at += 1
            found = match(line)
            if found is None:
                if _COMMENT.match(line) is None and not (self._goes_on(unended) or self._quoted(line)):
                    return None
                unended = None
                continue
            indent, dashes, key, plain, quoted, flow, header, comment = found.groups()
            if plain is not None:
                # Most are plain texts; only words such as true, and what begins like a number, need YAML's rules.
                value = self._resolve(plain) if plain in words or plain[0] in _NUMERIC else plain
            elif quoted is not None:
                value = unquoted(quoted)
                if value is None:
                    return None
            elif flow is not None:
                value = {} if flow == "{}" else [self._item(word) for word in _WORDS.findall(flow)]
            elif header is not None:
                column = reader.column(len(indent), dashes, key)
                value, self._at = block_over_lines(header, lines, self._at, column)
                if value is None:
                    return None
            elif key is not None:
                value = _DUE
            elif dashes:
                return None  # an item on the lines below
            else:
                unended = unended if comment is None else None
                continue  # an empty line
            if (
                reader.item(len(indent), dashes, key, value)
                if dashes
                else reader.member(len(indent), key, value)
            ):
                unended = plain if comment is None else None
            elif dashes or key is not None or header is not None or not self._goes_on(unended):
                return None
            else:
                unended = None
        return reader.root

    def _item(self, word: str) -> Any:
        if word[0] in "\"'":
            return word[1:-1]
        return self._resolve(word) if word in self._words or word[0] in _NUMERIC else word

    def _goes_on(self, plain: str | None) -> bool:
        """Puts the whole of a plain scalar where its first line was put; False where the last line is no part of it."""
        column = self._reader.open_column
        if plain is None or column_of(self._lines[self._at - 1]) <= column:
            return False
        text, after = plain_over_lines(plain, self._lines, self._first_empty(), column)
        if text is None:
            return False
        self._at = after
        self._reader.put_again(self._resolve(text) if text[0] in _NUMERIC else text)
        return True

    def _first_empty(self) -> int:
        at = self._at - 1
        while not self._lines[at - 1].strip(" "):
            at -= 1
        return at

    def _quoted(self, line: str) -> bool:
        found = _OPEN.match(line)
        if found is None:
            return False
        indent, dashes, key, rest = found.groups()
        column = self._reader.column(len(indent), dashes, key)
        text, self._at = quoted_over_lines(rest, self._lines, self._at, column)
        if text is None:
            return False
        reader = self._reader
        if dashes:
            return reader.item(len(indent), dashes, key, text)
        return reader.member(len(indent), key, text)


_DUE: Any = object()
"""The value of a key that may follow; null where none does."""


class _Reader:
    """What is open: mappings and lists, with the column of their keys or dashes. Its methods answer False for what is
    not plain."""

    __slots__ = ("_above", "_at", "_due", "_last", "_top", "_words", "root")

    def __init__(self, words: dict[str, Any]) -> None:
        self._words = words
        self.root: dict[str, Any] | None = None
        self._above: list[tuple[Any, int]] = []
        self._top: Any = None
        self._at = -1
        self._due: str | None = None
        self._last: str | int = 0

    @property
    def open_column(self) -> int:
        """The column of the keys or dashes of what is filled."""
        return self._at

    def column(self, indent: int, dashes: str, key: str | None) -> int:
        """The column of the key or dash that a value on a line belongs to."""
        if key is None and dashes:
            return indent + dashes.rindex("-")
        return indent + len(dashes) if key is not None else self._at

    def put_again(self, value: Any) -> None:
        """Replaces the value that was put last."""
        self._top[self._last] = value

    def member(self, column: int, key: str | None, value: Any) -> bool:
        """A line that begins with a key."""
        if key is None:
            if self._due is None or column <= self._at:
                return False
            self._top[self._due], self._last, self._due = value, self._due, None
            return True
        while column < self._at or (column == self._at and self._top.__class__ is list):
            self._leave()
        if column > self._at:
            if self._top is None:
                if self.root is not None:
                    return False
                made: dict[str, Any] = {}
                self.root = made
            elif self._due is None:
                return False
            else:
                made = self._top[self._due] = {}
            self._enter(made, column)
        return self._put(key, value)

    def item(self, column: int, dashes: str, key: str | None, value: Any) -> bool:
        """A line that begins with an item, which may begin with items itself."""
        while column < self._at:
            self._leave()
        # YAML allows the items of a key at the column of the key itself.
        if column != self._at or self._top.__class__ is not list:
            if self._due is None:
                return False
            made: list[Any] = []
            self._top[self._due] = made
            self._enter(made, column)
        first, *others = dashes.split("-")[1:]
        column += 1 + len(first)
        for space in others:
            inner: list[Any] = []
            self._top.append(inner)
            self._enter(inner, column)
            column += 1 + len(space)
        if key is None:
            self._top.append(value)
            self._last = -1
            return True
        holder: dict[str, Any] = {}
        self._top.append(holder)
        self._enter(holder, column)
        return self._put(key, value)

    def _put(self, key: str, value: Any) -> bool:
        if key[0] in "\"'":
            key = key[1:-1]
        # Keys such as "on" are booleans in YAML 1.1.
        elif key in self._words:
            return False
        # Repeated keys are reported by yaml, with their place.
        if key in self._top or len(self._above) > MAX_DEPTH:
            return False
        if value is _DUE:
            self._top[key], self._due = None, key
        else:
            self._top[key], self._last, self._due = value, key, None
        return True

    def _enter(self, value: Any, column: int) -> None:
        self._above.append((self._top, self._at))
        self._top, self._at, self._due = value, column, None

    def _leave(self) -> None:
        self._top, self._at = self._above.pop()
        self._due = None
