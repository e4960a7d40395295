"""The plain part of YAML, read a line at a time: what most manifests are written in, three times faster than by events.

A document is taken only where every line is plain: a key, a key with a value, or an item, in blocks, in ASCII. A value
is one word or some on the same line, or a text in quotes without escapes. Anything else (flow collections other than
``[]`` and ``{}``, text over lines, anchors, tags, comments behind values, tabs, keys that occur twice, indentation that
fits nowhere) leaves the whole document to ``yaml``, which knows all of it and says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 100
_KEY = r"""[A-Za-z_][A-Za-z0-9_./-]{0,200}+|"[^"\\]{1,200}"|'[^']{1,200}'"""
_QUOTED = r""""[^"\\]*"|'[^']*\'"""
# A plain scalar holds neither ": " nor " #", and ends with neither a colon nor a space.
_PLAIN = r"(?:[A-Za-z0-9_./$]|-(?=[0-9]))(?:[!-9;-~]++|:(?=[!-~])| ++(?=[!-\"$-~]))*+"
_LINE = re.compile(
    rf"( *+)((?:- ++)*+)(?:({_KEY}):(?:$| ++))?+(?:({_PLAIN})|({_QUOTED})|(\[\]|\{{\}}))? *+$", re.ASCII
)
_PRINTABLE = re.compile(r"[\n -~]*+")
_COMMENT = re.compile(r" *+#")
_NUMERIC = frozenset("0123456789.-")


def read_block(data: bytes, resolve: Callable[[str], Any], words: dict[str, Any]) -> dict[str, Any] | None:
    """The mapping that a document is; None where it is not plain. ``resolve`` gives the value of a plain scalar, which
    is no text where it is in ``words`` or begins as numbers do."""
    if not data.isascii():
        return None
    text = data.decode("ascii")
    if _PRINTABLE.fullmatch(text) is None:
        return None
    reader, match = _Reader(words), _LINE.match
    # A comment behind a value, or text over lines, does not match: yaml reads such documents.
    for line in text.split("\n"):
        found = match(line)
        if found is None:
            if _COMMENT.match(line) is None:
                return None
            continue
        indent, dashes, key, plain, quoted, empty = found.groups()
        if plain is not None:
            # Most values are plain texts; only words such as true, and what begins like a number, need YAML's rules.
            value = resolve(plain) if plain in words or plain[0] in _NUMERIC else plain
        elif quoted is not None:
            value = quoted[1:-1]
        elif empty is not None:
            value = [] if empty == "[]" else {}
        elif key is not None:
            value = _DUE
        elif dashes:
            return None  # an item on the lines below
        else:
            continue  # an empty line
        if not (
            reader.item(len(indent), dashes, key, value) if dashes else reader.member(len(indent), key, value)
        ):
            return None
    return reader.root


_DUE: Any = object()
"""The value of a key that may follow; null where none does."""


class _Reader:
    """What is open: mappings and lists, with the column of their keys or dashes. Its methods answer False for what is
    not plain."""

    __slots__ = ("_above", "_at", "_due", "_top", "_words", "root")

    def __init__(self, words: dict[str, Any]) -> None:
        self._words = words
        self.root: dict[str, Any] | None = None
        self._above: list[tuple[Any, int]] = []
        self._top: Any = None
        self._at = -1
        self._due: str | None = None

    def member(self, column: int, key: str | None, value: Any) -> bool:
        """A line that begins with a key."""
        if key is None:
            return False  # text over lines
        # A list of items may lie at the column of its key, so a key there ends it.
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
            self._top[key], self._due = value, None
        return True

    def _enter(self, value: Any, column: int) -> None:
        self._above.append((self._top, self._at))
        self._top, self._at, self._due = value, column, None

    def _leave(self) -> None:
        self._top, self._at = self._above.pop()
        self._due = None
