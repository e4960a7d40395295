"""Patterns: RE2, the language of Go's regexp, matched in linear time whatever a schema says.

Differences between the C++ library and Go are bridged where a text is compared: the message of a pattern that
does not compile is worded as Go words it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

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
_QUIET = re2.Options()
_QUIET.log_errors = False


class PatternError(ValueError):
    """A pattern that RE2 does not take; its text is that of Go's regexp."""


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Any:
    """Compile a pattern; the result's ``search`` answers like Go's MatchString.

    Raises ``PatternError``.
    """
    try:
        compiled = re2.compile(pattern, _QUIET)
    except re2.error as error:
        raise PatternError(_go_words(pattern, error)) from None
    except UnicodeEncodeError:
        shown = pattern.encode("utf-8", "backslashreplace").decode()
        raise PatternError(f"error parsing regexp: invalid UTF-8: `{shown}`") from None
    fault = _only_go_refuses(pattern)
    if fault:
        raise PatternError(fault)
    return compiled


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
