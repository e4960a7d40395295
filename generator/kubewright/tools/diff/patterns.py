"""Whether every text that some patterns allow is allowed by another pattern: inclusion of regular languages.

The patterns of a schema are RE2 expressions that are searched for. Each becomes a nondeterministic automaton, and the
product of their subset automata is walked until it meets a text that all on the left allow and the right does not: that
text, the shortest there is, is the answer. What automata of this form do not tell (word boundaries, Unicode classes,
texts by lines) and what grows beyond ``MAX_STATES`` or ``MAX_WORK`` is ``Undecided``, never guessed.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import Final

from kubewright.tools.diff.automata import LAST, MAX_STATES, Automaton, Undecided, automaton, bits

MAX_WORK: Final = 500_000
"""How many states may be stepped from, of all automata together: less than a second."""
_TOO_LARGE: Final = "the patterns are too large to be held against each other"

_READABLE: Final = "aA0-._/: _~x1"


def counterexample(old: tuple[str, ...], new: str) -> str | None:
    """A text that all patterns of ``old`` match and ``new`` does not; ``None`` where there is none.

    Raises ``Undecided``.
    """
    return _Product([automaton(pattern) for pattern in (*old, new)]).search()


def sized(least: int | None, most: int | None) -> str:
    """The pattern of all texts of so many characters."""
    if max(least or 0, most or 0) >= MAX_STATES:
        raise Undecided("the lengths are too large to be held against a pattern")
    return rf"\A(?s:.){{{least or 0},{'' if most is None else most}}}\z"


class _Searched:
    """The subset automaton of one pattern that is searched for, over the letters of the product."""

    ALL: Final = -1
    """The state in which the pattern was found already, whatever comes."""

    def __init__(self, made: Automaton, letters: list[int]):
        self.automaton = made
        self.moves = [
            [
                made.closed(
                    sum({1 << end for ranges, end in edges if any(a <= letter <= b for a, b in ranges)})
                )
                for edges in made.chars
            ]
            for letter in letters
        ]
        self.again = made.closed(1)
        self.work = 0
        self._next: dict[tuple[int, int], int] = {}

    def first(self) -> int:
        return self._found(self.automaton.closed(1, begin=True))

    def step(self, mask: int, letter: int) -> int:
        self._count(1)
        if mask == self.ALL:
            return mask
        known = self._next.get((mask, letter))
        if known is None:
            self._count(mask.bit_count())
            moves, known = self.moves[letter], self.again
            for state in bits(mask):
                known |= moves[state]
            known = self._next[mask, letter] = self._found(known)
        return known

    def accepts(self, mask: int, *, empty: bool) -> bool:
        if mask == self.ALL:
            return True
        self._count(mask.bit_count())
        return bool(self.automaton.closed(mask, begin=empty, end=True) >> self.automaton.accept & 1)

    def _count(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise Undecided(_TOO_LARGE)

    def _found(self, mask: int) -> int:
        return self.ALL if mask >> self.automaton.accept & 1 else mask


class _Product:
    def __init__(self, automata: list[Automaton]):
        self.letters = _letters(automata)
        self.parts = [_Searched(each, self.letters) for each in automata]

    def search(self) -> str | None:
        """The shortest text that all but the last match and the last does not."""
        start = tuple(part.first() for part in self.parts)
        if self._differs(start, empty=True):
            return ""
        # The start is no state like others: only there may ^ be passed.
        came: dict[tuple[int, ...], tuple[tuple[int, ...] | None, int]] = {}
        pending: deque[tuple[int, ...] | None] = deque([None])
        while pending:
            state = pending.popleft()
            for letter in range(len(self.letters)):
                masks = start if state is None else state
                following = tuple(
                    part.step(mask, letter) for part, mask in zip(self.parts, masks, strict=True)
                )
                if following in came or following[-1] == _Searched.ALL:
                    continue
                came[following] = state, letter
                if self._differs(following, empty=False):
                    return self._text(following, came)
                pending.append(following)
        return None

    def _differs(self, state: tuple[int, ...], *, empty: bool) -> bool:
        *old, new = [part.accepts(mask, empty=empty) for part, mask in zip(self.parts, state, strict=True)]
        return all(old) and not new

    def _text(
        self,
        state: tuple[int, ...] | None,
        came: dict[tuple[int, ...], tuple[tuple[int, ...] | None, int]],
    ) -> str:
        found: list[str] = []
        while state is not None:
            state, letter = came[state]
            found.append(chr(self.letters[letter]))
        return "".join(reversed(found))


def _letters(automata: list[Automaton]) -> list[int]:
    """One character for each set of characters that no edge tells apart, a readable one where there is one."""
    edges = [ranges for each in automata for out in each.chars for ranges, _ in out]
    distinct = [*dict.fromkeys(edges)]
    cuts = sorted({0, LAST + 1, *(cut for ranges in distinct for a, b in ranges for cut in (a, b + 1))})
    chosen: dict[tuple[bool, ...], int] = {}
    for low, after in pairwise(cuts):
        told = tuple(any(a <= low <= b for a, b in ranges) for ranges in distinct)
        letter = next((ord(c) for c in _READABLE if low <= ord(c) < after), None)
        if letter is None:
            letter = low if low >= 33 or after <= 34 else 33
        if told not in chosen or _rank(letter) < _rank(chosen[told]):
            chosen[told] = letter
    return [*chosen.values()]


def _rank(letter: int) -> int:
    position = _READABLE.find(chr(letter))
    return position if position >= 0 else 100 if 33 <= letter < 127 else 1000
