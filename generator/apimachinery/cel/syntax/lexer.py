"""Source text to tokens: one regular expression, first match wins.

Token kinds are the names that cel-go's grammar uses in its messages (``NUM_INT``, ``STRING``, ``IDENTIFIER``,
``'('`` …). A character that starts no token is a ``token recognition error``; the lexer drops it and goes on.
Offsets count code points. Source of the rules: the CEL specification's lexis and cel-go's grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Token(NamedTuple):
    """A token: ``kind`` as messages name it, its text and its offset."""

    kind: str
    text: str
    offset: int


EOF = "<EOF>"
KEYWORDS = {"true": "'true'", "false": "'false'", "null": "'null'", "in": "'in'"}

_DIGITS = r"[0-9]+"
_EXPONENT = r"(?:[eE][+-]?[0-9]+)"
_ESCAPE = r"\\(?:[bfnrtabv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"


def _string_forms() -> str:
    raw = r"""[rR](?:\"\"\"(?:[\s\S])*?\"\"\"|'''(?:[\s\S])*?'''|"[^"\n\r]*"|'[^'\n\r]*')"""
    cooked = (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""'
        rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
        rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
        rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    )
    return f"(?:{raw}|{cooked})"


_STRING = _string_forms()
_TOKEN = re.compile(
    rf"""
    (?P<SKIP>[\t\x20\r\n\x0c]+|//[^\n]*)
  | (?P<BYTES>[bB]{_STRING})
  | (?P<STRING>{_STRING})
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<NUM_FLOAT>{_DIGITS}\.{_DIGITS}{_EXPONENT}?|{_DIGITS}{_EXPONENT}|\.{_DIGITS}{_EXPONENT}?)
  | (?P<NUM_UINT>(?:0x[0-9a-fA-F]+|{_DIGITS})[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|{_DIGITS})
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_./\x20-]+`)
  | (?P<OP>==|!=|<=|>=|&&|\|\||[\]\[{{}}().,:?!<>+*/%-])
    """,
    re.VERBOSE,
)


class LexError(NamedTuple):
    """Characters that start no token."""

    offset: int
    text: str


def tokenize(source: str) -> tuple[list[Token], list[LexError]]:
    """Split ``source`` into tokens, with an ``<EOF>`` at the end, and what was dropped."""
    tokens: list[Token] = []
    errors: list[LexError] = []
    position, end = 0, len(source)
    match = _TOKEN.match
    append = tokens.append
    while position < end:
        found = match(source, position)
        if found is None:
            position = _skip_bad(source, position, errors)
            continue
        kind = found.lastgroup
        text = found.group()
        if kind == "OP":
            append(Token(f"'{text}'", text, position))
        elif kind == "IDENTIFIER":
            append(Token(KEYWORDS.get(text, "IDENTIFIER"), text, position))
        elif kind != "SKIP":
            append(Token(kind or "", text, position))
        position = found.end()
    append(Token(EOF, EOF, end))
    return tokens, errors


_BAD_STRING = re.compile(
    rf"""[bB]?(?:[rR](?:"[^"\n\r]*|'[^'\n\r]*)"""
    rf"""|"(?:{_ESCAPE}|[^\\"\n\r])*\\?|'(?:{_ESCAPE}|[^\\'\n\r])*\\?)|[&|=`]"""
)


def _skip_bad(source: str, position: int, errors: list[LexError]) -> int:
    """Drop what the lexer had begun to read when it found no token: an unfinished string, or one character."""
    found = _BAD_STRING.match(source, position)
    text = found.group() if found else source[position]
    stop = position + len(text)
    if found and stop < len(source):
        # The reader had also taken the character that it could not place.
        stop += 1
    errors.append(LexError(position, source[position:stop]))
    return stop
