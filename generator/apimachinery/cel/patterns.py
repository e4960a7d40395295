"""Patterns: RE2, the language of Go's regexp, matched in linear time whatever a schema says.

Differences between the C++ library and Go are bridged where a text is compared: the message of a pattern that
does not compile is worded as Go words it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import re2

_GO_WORDS = {
    "missing ): ": "missing closing ): ",
    "missing ]: ": "missing closing ]: ",
    "no argument for repetition operator: ": "missing argument to repetition operator: ",
    "bad repetition operator: ": "invalid nested repetition operator: ",
    "invalid repetition size: ": "invalid repeat count: ",
    "invalid perl operator: ": "invalid or unsupported Perl syntax: ",
    "invalid named capture group: ": "invalid named capture: ",
    "invalid escape sequence: ": "invalid escape sequence: ",
    "invalid character class range: ": "invalid character class range: ",
    "invalid character class: ": "invalid character class: ",
    "trailing \\: ": "trailing backslash at end of expression: ",
    "unexpected ): ": "unexpected ): ",
}
_PIECES = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?P?<(?P<name>[0-9A-Za-z_]+)>", re.DOTALL)
_WHOLE = ("missing closing ): ", "unexpected ): ")
SMALL_MEMORY, KEPT_PATTERNS, KEPT_LONG, LONG_PATTERN = 1 << 20, 1024, 16, 1_000
"""What a pattern's automaton may grow to, and how many patterns are kept: clients write them, and RE2 lets each grow to
8 MiB. One whose program alone needs more is given that."""
QUIET, LARGER = re2.Options(), re2.Options()
QUIET.log_errors = LARGER.log_errors = False
QUIET.max_mem = SMALL_MEMORY
_Made = TypeVar("_Made")


def kept(make: Callable[[str], _Made]) -> Callable[[str], _Made]:
    """Remembers what is made of patterns: many short ones, few long ones."""
    short, long = lru_cache(maxsize=KEPT_PATTERNS)(make), lru_cache(maxsize=KEPT_LONG)(make)

    @wraps(make)
    def known(pattern: str) -> _Made:
        return short(pattern) if len(pattern) < LONG_PATTERN else long(pattern)

    return known


class PatternError(ValueError):
    """A pattern that RE2 does not take; its text is that of Go's regexp."""


@kept
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the result's ``search`` answers like Go's MatchString.

    Raises ``PatternError``.
    """
    try:
        compiled = _compiled(pattern)
    except re2.error as error:
        raise PatternError(_go_words(pattern, error)) from None
    except UnicodeEncodeError:
        shown = pattern.encode("utf-8", "backslashreplace").decode()
        raise PatternError(f"error parsing regexp: invalid UTF-8: `{shown}`") from None
    fault = _only_go_refuses(pattern)
    if fault:
        raise PatternError(fault)
    return compiled


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, QUIET)
    except re2.error:
        return re2.compile(pattern, LARGER)


def _only_go_refuses(pattern: str) -> str | None:
    """What RE2 takes and Go does not: ``\\C``, and a group name given twice."""
    seen: set[str] = set()
    for found in _PIECES.finditer(pattern):
        piece = found.group()
        if piece == r"\C":
            return r"error parsing regexp: invalid escape sequence: `\C`"
        if name := found.group("name"):
            if name in seen:
                return f"error parsing regexp: duplicate capture group name: `{name}`"
            seen.add(name)
    return None


def _go_words(pattern: str, error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if text.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    for theirs, ours in _GO_WORDS.items():
        if text.startswith(theirs):
            rest = pattern if ours in _WHOLE else text[len(theirs) :]
            return f"error parsing regexp: {ours}`{rest}`"
    return f"error parsing regexp: {text}"
