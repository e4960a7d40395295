"""A pattern as an automaton: what of RE2's syntax patterns of schemas are written in.

Word boundaries, Unicode classes, texts by lines, and letters without case beyond ASCII are ``Undecided``: automata of
this form do not tell them. So is a pattern of more than ``MAX_STATES`` states.

Syntax: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

MAX_STATES: Final = 4_000
"""How many states the automaton of one pattern may have."""
LAST: Final = 0x10FFFF
"""The greatest code point."""
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Characters as ranges of code points, both ends included."""


class Undecided(Exception):
    """It cannot be told; the text says why."""


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(slots=True)
class Automaton:
    """States are numbers; the first is 0. ``begin`` and ``end`` edges need the place they are named for."""

    plain: list[list[int]] = field(default_factory=list)
    begin: list[list[int]] = field(default_factory=list)
    end: list[list[int]] = field(default_factory=list)
    chars: list[list[tuple[Ranges, int]]] = field(default_factory=list)
    accept: int = 0

    def state(self) -> int:
        """A new state."""
        if len(self.plain) >= MAX_STATES:
            raise Undecided("the pattern is too large")
        for edges in (self.plain, self.begin, self.end):
            edges.append([])
        self.chars.append([])
        return len(self.plain) - 1

    def closed(self, mask: int, *, begin: bool = False, end: bool = False) -> int:
        """The states of a bit mask, and what is reached from them without a character."""
        pending = [*bits(mask)]
        while pending:
            state = pending.pop()
            following = [*self.plain[state]]
            following += self.begin[state] if begin else []
            following += self.end[state] if end else []
            for each in following:
                if not mask >> each & 1:
                    mask |= 1 << each
                    pending.append(each)
        return mask


@lru_cache(maxsize=512)
def automaton(pattern: str) -> Automaton:
    """The automaton of a pattern. Raises ``Undecided``."""
    reader = _Reader(pattern)
    try:
        node = reader.alternatives()
    except (IndexError, ValueError, RecursionError):
        raise Undecided(f'"{pattern}" is not read') from None
    if reader.at < len(pattern):
        raise Undecided(f'"{pattern}" is not read')
    made = Automaton()
    try:
        made.accept = _build(made, node, made.state())
    except RecursionError:
        raise Undecided("the pattern nests too deep") from None
    return made


# A node is ("chars", ranges), ("edge", "begin" or "end"), ("all", nodes), ("any", nodes) or
# ("times", node, least, most or None).
_Node: TypeAlias = tuple[object, ...]


def _build(automaton: Automaton, node: _Node, start: int) -> int:
    """Adds what ``node`` matches after ``start``; gives the state behind it."""
    match node:
        case ("chars", ranges):
            last = automaton.state()
            automaton.chars[start].append((ranges, last))  # type: ignore[arg-type]
            return last
        case ("edge", where):
            last = automaton.state()
            (automaton.begin if where == "begin" else automaton.end)[start].append(last)
            return last
        case ("all", parts):
            for part in parts:  # type: ignore[attr-defined]
                start = _build(automaton, part, start)
            return start
        case ("any", parts):
            last = automaton.state()
            for part in parts:  # type: ignore[attr-defined]
                first = automaton.state()
                automaton.plain[start].append(first)
                automaton.plain[_build(automaton, part, first)].append(last)
            return last
        case ("times", part, int(least), most):
            return _repeated(automaton, part, start, least, most)  # type: ignore[arg-type]
    raise AssertionError(node)


def _repeated(automaton: Automaton, part: _Node, start: int, least: int, most: int | None) -> int:
    for _ in range(least):
        start = _build(automaton, part, start)
    last = automaton.state()
    automaton.plain[start].append(last)
    if most is None:
        again = automaton.state()
        automaton.plain[start].append(again)
        automaton.plain[_build(automaton, part, again)].append(start)
        return last
    for _ in range(most - least):
        start = _build(automaton, part, start)
        automaton.plain[start].append(last)
    return last


_DIGIT: Final[Ranges] = ((48, 57),)
_WORD: Final[Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[Ranges] = ((9, 10), (12, 13), (32, 32))
_CLASSES: Final[dict[str, Ranges]] = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: Final[dict[str, Ranges]] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": _WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_FOLDED: Final = {ord("k"): 0x212A, ord("K"): 0x212A, ord("s"): 0x17F, ord("S"): 0x17F}
"""The two characters beyond ASCII that Unicode folds to ASCII letters: the Kelvin sign and the long s."""
_CONTROL: Final = {"n": 10, "t": 9, "r": 13, "f": 12, "v": 11, "a": 7}


class _Reader:
    """Recursive descent over one pattern."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0
        self.dot_all = self.any_case = False

    def alternatives(self) -> _Node:
        found = [self.sequence()]
        while self._eat("|"):
            found.append(self.sequence())
        return found[0] if len(found) == 1 else ("any", tuple(found))

    def sequence(self) -> _Node:
        found: list[_Node] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            found.append(self.repeated(self.atom()))
        return ("all", tuple(found))

    def repeated(self, node: _Node) -> _Node:
        while self.at < len(self.text):
            bounds = self._bounds()
            if bounds is None:
                break
            self._eat("?")  # as few as possible: the same texts
            node = ("times", node, *bounds)
        return node

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, simple in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._eat(sign):
                return simple
        closing = self.text.find("}", self.at)
        if self.text[self.at] != "{" or closing < 0:
            return None
        low, comma, high = self.text[self.at + 1 : closing].partition(",")
        if not low.isdigit() or (high and not high.isdigit()):
            return None  # RE2 takes such a bracket for itself
        self.at = closing + 1
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > MAX_STATES:
            raise Undecided("the pattern is too large")
        return least, most

    def atom(self) -> _Node:
        sign = self.text[self.at]
        self.at += 1
        if sign == "(":
            return self.group()
        if sign == "[":
            return ("chars", self.bracket())
        if sign == ".":
            return ("chars", ((0, LAST),) if self.dot_all else ((0, 9), (11, LAST)))
        if sign == "^":
            return ("edge", "begin")
        if sign == "$":
            return ("edge", "end")
        if sign == "\\":
            return self.escaped()
        return ("chars", self._cased(((ord(sign), ord(sign)),)))

    def _cased(self, ranges: Ranges) -> Ranges:
        """With the letters of the other case, where the pattern says (?i)."""
        if not self.any_case:
            return ranges
        if any(high > 127 for _, high in ranges):
            raise Undecided("letters of other alphabets without case are not decided")
        letters = {
            c for c in range(128) if chr(c).isalpha() and any(low <= c <= high for low, high in ranges)
        }
        both = {other for c in letters for other in (c, c ^ 32)} | {
            folded for c, folded in _FOLDED.items() if c in letters
        }
        return (*ranges, *((c, c) for c in sorted(both)))

    def group(self) -> _Node:
        before = self.dot_all, self.any_case
        if self._eat("?"):
            if self._eat("P<") or self._eat("<"):
                self.at = self.text.index(">", self.at) + 1
            else:
                flags = self.text[self.at :].partition(":")[0].partition(")")[0]
                if flags.strip("si"):
                    raise Undecided(f"(?{flags}) is not decided")
                self.any_case = self.any_case or "i" in flags
                self.at += len(flags)
                self.dot_all = self.dot_all or "s" in flags
                if self._eat(")"):
                    return ("all", ())  # from here to the end of the group around it
                self.at += 1
        node = self.alternatives()
        if not self._eat(")"):
            raise ValueError
        self.dot_all, self.any_case = before
        return node

    def escaped(self) -> _Node:
        sign = self.text[self.at]
        if sign in "Az":
            self.at += 1
            return ("edge", "begin" if sign == "A" else "end")
        return ("chars", self._cased(self.escape()))

    def escape(self) -> Ranges:
        sign = self.text[self.at]
        self.at += 1
        if sign.lower() in _CLASSES:
            ranges = _CLASSES[sign.lower()]
            return ranges if sign.islower() else _others(ranges)
        if sign in _CONTROL:
            code = _CONTROL[sign]
        elif sign == "x":
            digits = self.text[self.at : self.at + 2]
            if self._eat("{"):
                digits = self.text[self.at : self.text.index("}", self.at)]
                self.at += 1
            code = int(digits, 16)
            self.at += len(digits)
        elif sign.isascii() and not sign.isalnum():
            code = ord(sign)
        else:
            raise Undecided(rf"\{sign} is not decided")
        return ((code, code),)

    def bracket(self) -> Ranges:
        is_other = self._eat("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self._eat("]"):
            first = False
            low = self._member()
            is_single = len(low) == 1 and low[0][0] == low[0][1]
            if is_single and self.text[self.at] == "-" and self.text[self.at + 1] != "]":
                self.at += 1
                high = self._member()
                if len(high) != 1 or high[0][0] < low[0][0]:
                    raise ValueError
                low = ((low[0][0], high[0][1]),)
            found += low
        ranges = self._cased(tuple(found))
        return _others(ranges) if is_other else ranges

    def _member(self) -> Ranges:
        if self.text.startswith("[:", self.at) and ":]" in self.text[self.at :]:
            closing = self.text.index(":]", self.at)
            name = self.text[self.at + 2 : closing]
            if name.removeprefix("^") in _POSIX:
                self.at = closing + 2
                ranges = _POSIX[name.removeprefix("^")]
                return _others(ranges) if name.startswith("^") else ranges
        sign = self.text[self.at]
        self.at += 1
        return self.escape() if sign == "\\" else ((ord(sign), ord(sign)),)

    def _eat(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False


def _others(ranges: Ranges) -> Ranges:
    found, at = [], 0
    for low, high in sorted(ranges):
        if low > at:
            found.append((at, low - 1))
        at = max(at, high + 1)
    if at <= LAST:
        found.append((at, LAST))
    return tuple(found)
