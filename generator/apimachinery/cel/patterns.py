"""Patterns: RE2, the language of Go's regexp, matched in linear time whatever a schema says.

Differences between the C++ library and Go are bridged where a text is compared: the message of a pattern that
does not compile is worded as Go words it.

What compiles is decided here alone. A program of Go has an instruction for a character class, one of RE2 has one for
each range of bytes in it (some 600 for ``\\p{L}``), so a pattern that costs Go little may need a hundred times that
here. Read as Latin-1 a class is a few ranges again: a pattern whose program grows large is compiled so, for the texts
that can be written so; the program for all others is made when one of them comes.
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
_PIECES = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\[pP]\{[^}]*\}|\\[pP].|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]"
    r"|\(\?P?<(?P<name>\w+)>|\(\?[imsU-]*:|(?P<count>\{\d+(?:,\d*)?\}\??)|\[.*|[^\\\[]",
    re.DOTALL,
)
_CLASS_NAME = re.compile(r"\\[pP](?:\{(?P<class>\^?[\w -]+)\}|(?P<letter>[a-z]))", re.ASCII)
_LONG_NAMES = """
L Letter, Lu Uppercase_Letter, Ll Lowercase_Letter, Lt Titlecase_Letter, Lm Modifier_Letter, Lo Other_Letter, M Mark,
M Combining_Mark, Mn Nonspacing_Mark, Mc Spacing_Mark, Me Enclosing_Mark, N Number, Nd Decimal_Number, Nd digit,
Nl Letter_Number, No Other_Number, P Punctuation, P punct, Pc Connector_Punctuation, Pd Dash_Punctuation,
Ps Open_Punctuation, Pe Close_Punctuation, Pi Initial_Punctuation, Pf Final_Punctuation, Po Other_Punctuation,
S Symbol, Sm Math_Symbol, Sc Currency_Symbol, Sk Modifier_Symbol, So Other_Symbol, Z Separator, Zs Space_Separator,
Zl Line_Separator, Zp Paragraph_Separator, C Other, Cc Control, Cc cntrl, Cf Format, Cs Surrogate, Co Private_Use
"""
_CATEGORIES = {
    name.replace("_", "").lower(): short for short, name in (pair.split() for pair in _LONG_NAMES.split(","))
}
"""The long names of Unicode's categories."""
_ASSIGNED = r"\pL\pM\pN\pP\pS\pZ\p{Cc}\p{Cf}\p{Co}\p{Cs}"
_CASED = r"\p{Lu}\p{Ll}\p{Lt}"
_RANGES: dict[str, tuple[str, str]] = {
    "any": (r"\x00-\x{10FFFF}", ""),
    "ascii": (r"\x00-\x7F", r"\x{80}-\x{10FFFF}"),
    "assigned": (_ASSIGNED, ""),
    "cn": ("", _ASSIGNED),
    "unassigned": ("", _ASSIGNED),
    "lc": (_CASED, ""),
    "casedletter": (_CASED, ""),
}
"""What Go's further classes hold, and what they do not, as one writes it in brackets; empty where that is no list."""
MAX_HEIGHT = 1000
"""How deep an expression may be for Go."""
_WHOLE = ("missing closing ): ", "unexpected ): ")
SMALL_MEMORY, KEPT_PATTERNS, KEPT_LONG, LONG_PATTERN = 1 << 20, 1024, 16, 1_000
"""What a pattern's automaton may grow to, and how many patterns are kept: clients write them, and RE2 lets each grow to
8 MiB."""
LARGE_MEMORY, KEPT_LARGE = 64 << 20, 4
"""The same of those whose program alone needs more: some four million instructions, where Go's regexp takes three."""
SMALL_PROGRAM = 1000
"""Programs up to this size may be run as a set of one: its automaton surely has the memory it needs."""
_TOO_LARGE = "pattern too large"


def _options(memory: int, *, latin: bool = False) -> Any:
    made = re2.Options()
    made.log_errors, made.max_mem = False, memory
    if latin:
        made.encoding = re2.Options.Encoding.LATIN1
    return made


_SMALL, _LARGE = _options(SMALL_MEMORY), _options(LARGE_MEMORY)
_SMALL_LATIN, _LARGE_LATIN = _options(SMALL_MEMORY, latin=True), _options(LARGE_MEMORY, latin=True)
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


@kept
def match_test(pattern: str) -> Callable[[str], bool]:
    """A test whether a text holds a match, several times faster than a search, which makes a match object.

    Raises ``PatternError``, and so does the test where the text needs a larger program than there may be.
    """
    program = compile_pattern(pattern)
    if isinstance(program, LargePattern):
        return program.matches
    if program.programsize > SMALL_PROGRAM:

        def search(text: str) -> bool:
            return program.search(_encoded(text)) is not None

        return search
    alone = re2.Set.SearchSet(_SMALL)
    alone.Add(program.pattern)
    try:
        alone.Compile()
    except re2.error:  # Its automaton has less room than that of the pattern by itself.
        return lambda text: program.search(_encoded(text)) is not None
    match = alone.Match

    def test(text: str) -> bool:
        try:
            return match(text) is not None
        except UnicodeEncodeError:
            return match(_encoded(text)) is not None

    return test


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class LargePattern:
    """A pattern whose program is too large to be kept like others; see the header."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._latin: Any = None
        try:
            self._latin = re2.compile(pattern.encode("latin-1"), _SMALL_LATIN)
        except (re2.error, UnicodeEncodeError):
            # Compiled to see that it can be; the few that are made so are not held here.
            if _large_latin(pattern) is None:
                _large(pattern)

    @property
    def programsize(self) -> int:
        """The size of the program that most texts need."""
        size: int = (self._latin or _large_latin(self._pattern) or _large(self._pattern)).programsize
        return size

    def matches(self, text: str) -> bool:
        """Whether a text holds a match. Raises ``PatternError`` as ``search`` does."""
        latin = self._latin or _large_latin(self._pattern)
        if latin is not None:
            try:
                return latin.search(text.encode("latin-1")) is not None
            except UnicodeEncodeError:
                pass
        return self.search(text) is not None

    def search(self, text: str) -> Any:
        """The first match. Raises ``PatternError`` where the program for every text is too large."""
        return self._whole().search(text)

    def finditer(self, text: str) -> Any:
        """All matches; see ``search``."""
        return self._whole().finditer(text)

    def _whole(self) -> Any:
        try:
            return _large(self._pattern)
        except re2.error as error:
            raise PatternError(_go_words(self._pattern, error)) from None


@lru_cache(maxsize=KEPT_LARGE)
def _large(pattern: str) -> Any:
    program = re2.compile(pattern, _LARGE)
    re2.purge()  # It keeps the last 128 by itself, whatever their size.
    return program


@lru_cache(maxsize=KEPT_LARGE)
def _large_latin(pattern: str) -> Any:
    """None for a pattern that names characters beyond Latin-1, or is too large even so."""
    try:
        return re2.compile(pattern.encode("latin-1"), _LARGE_LATIN)
    except (re2.error, UnicodeEncodeError):
        return None
    finally:
        re2.purge()


def _compiled(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _SMALL)
    except re2.error as error:
        if _TOO_LARGE in _text_of(error):
            return LargePattern(pattern)
        if (other := _in_old_words(pattern)) == pattern:
            raise
    return _compiled(other)


def _only_go_refuses(pattern: str) -> str | None:
    """What RE2 takes and Go does not: ``\\C``, a count that RE2 takes for text, names in other letters, depth."""
    for found in _PIECES.finditer(pattern):
        piece = found.group()
        if piece == r"\C":
            return r"error parsing regexp: invalid escape sequence: `\C`"
        if (name := found.group("name")) and not name.isascii():
            return f"error parsing regexp: invalid named capture: `{piece}`"
        if found.group("count") and any(len(count) > 8 for count in piece[1:-1].replace(" ", "").split(",")):
            return f"error parsing regexp: invalid repeat count: `{piece}`"
    if pattern.count("(") > MAX_HEIGHT // 4 and _height(pattern) > MAX_HEIGHT:
        return f"error parsing regexp: expression nests too deeply: `{pattern}`"
    return None


def _height(pattern: str) -> int:
    """How deep Go's tree is: groups that capture, sequences, alternatives and repetitions are levels."""
    # Of each open group: its level, the highest branch, the branches; of the last branch the items and their height.
    open_: list[list[int]] = [[0, 0, 1, 0, 0]]
    last = 0
    for found in _PIECES.finditer(pattern):
        piece, group = found.group(), open_[-1]
        if piece == "|" or (piece == ")" and len(open_) > 1):
            group[1] = max(group[1], group[4] + (group[3] > 1))
            group[2] += piece == "|"
            group[3] = group[4] = 0
            if piece == "|":
                continue
            open_.pop()
            last, group = group[1] + (group[2] > 1) + group[0], open_[-1]
        elif piece.startswith("("):
            open_.append([int(piece == "(" or "<" in piece), 0, 1, 0, 0])
            continue
        elif piece in ("*", "+", "?") or found.group("count"):
            last += 1
            group[4] = max(group[4], last)
            continue
        else:
            last = 1
        group[3] += 1
        group[4] = max(group[4], last)
    top = open_[0]
    return max(top[1], top[4] + (top[3] > 1)) + (top[2] > 1)


def _in_old_words(pattern: str) -> str:
    """A pattern without what RE2 does not know: names of groups, which Go lets two groups have, and the names of
    classes that Go takes since 1.25."""

    def reworded(found: re.Match[str]) -> str:
        piece = found.group()
        if (name := found.group("name")) and name.isascii():
            return "("
        if piece.startswith("[") and not piece.endswith("]"):  # never closed
            return piece
        if piece.startswith("["):
            return _CLASS_NAME.sub(lambda name: _class(name, inside=True), piece)
        return _CLASS_NAME.sub(lambda name: _class(name, inside=False), piece)

    return _PIECES.sub(reworded, pattern)


def _class(found: re.Match[str], *, inside: bool) -> str:
    """A named class as RE2 spells it; what it has no words for stays as it is."""
    given = found.group("class") or found.group("letter")
    name = re.sub(r"[ _-]", "", given.removeprefix("^")).lower()
    negated = found.group().startswith(r"\P") != given.startswith("^")
    ranges = _RANGES.get(name)
    if ranges is not None:
        wanted = ranges[negated]
        if inside:
            return wanted or found.group()
        return f"[{wanted}]" if wanted else f"[^{ranges[not negated]}]"
    known = _CATEGORIES.get(name) or (name.capitalize() if len(name) <= 2 else "")
    known = known or "_".join(word.capitalize() for word in re.split(r"[ _-]", given.removeprefix("^")))
    return f"\\{'P' if negated else 'p'}{{{known}}}"


def _text_of(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _go_words(pattern: str, error: Exception) -> str:
    text = _text_of(error)
    if _TOO_LARGE in text:
        return f"error parsing regexp: expression too large: `{pattern}`"
    if text.startswith("trailing \\"):
        return "error parsing regexp: trailing backslash at end of expression: ``"
    for theirs, ours in _GO_WORDS.items():
        if text.startswith(theirs):
            rest = pattern if ours in _WHOLE else text[len(theirs) :]
            return f"error parsing regexp: {ours}`{rest}`"
    return f"error parsing regexp: {text}"
