"""The order in which the rules of a conversion are carried out, and the paths each is carried out at.

Rule files speak of both versions as they are: the paths of the spoke first, those of the hub after ``to``. An object
under conversion is neither: some of its values have moved already. So, one way at a time:

- defaults come first, while everything is where its version has it;
- a rule about something inside a value that another rule moves comes before that move, and stays inside the value:
  where ``spec.a`` moves to ``spec.b`` and ``spec.a[*].x`` to ``spec.b[*].y``, first ``spec.a[*].x`` becomes
  ``spec.a[*].y``, then the list moves;
- a value that goes into something that is moved comes after that move;
- what has no place in the other version is dropped before a move that would take it along, else at the end, when
  everything next to it has found its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.ir.rules import ConversionRule

_DROPS = ("keep", "lose")


@dataclass(frozen=True, slots=True)
class ConversionStep:
    """One rule read one way: ``here`` are the paths it takes from, ``there`` those it leads to."""

    rule: ConversionRule
    here: tuple[str, ...]
    there: tuple[str, ...]


def covers(path: str, inner: str) -> bool:
    """Whether ``inner`` is ``path`` or lies within it."""
    return path == inner or (inner.startswith(path) and inner[len(path)] in ".[{")


def steps_of(rules: Sequence[ConversionRule], forward: bool) -> list[ConversionStep]:
    """What is to be done one way, in order: ``forward`` from the spoke to the hub."""
    return _Order(rules if forward else tuple(reversed(rules)), forward).steps()


def lists_of(path: str) -> list[str]:
    """The paths of the lists that ``path`` leads through: ``a[*].b[*].c`` leads through ``a`` and ``a[*].b``."""
    parts = path.split("[*]")
    return ["[*]".join(parts[: count + 1]) for count in range(len(parts) - 1)]


class _Order:
    def __init__(self, rules: Sequence[ConversionRule], forward: bool) -> None:
        self.forward = forward
        self.rules = rules
        self.moves = [
            rule for rule in rules if rule.action == "move" and self._here(rule) != self._there(rule)
        ]
        self.done: set[int] = set()
        self.ordered: list[ConversionStep] = []

    def _here(self, rule: ConversionRule) -> tuple[str, ...]:
        return tuple(path.text for path in (rule.spoke if self.forward else rule.hub))

    def _there(self, rule: ConversionRule) -> tuple[str, ...]:
        return tuple(path.text for path in (rule.hub if self.forward else rule.spoke))

    def steps(self) -> list[ConversionStep]:
        said = [self._plain(rule) for rule in self.rules if rule.action == "default"]
        before: list[ConversionStep] = []
        after: list[ConversionStep] = []
        for rule in self.rules:
            for path in self._here(rule) if rule.action in _DROPS else ():
                taken_along = self._around(path, rule) is not None
                (before if taken_along else after).append(ConversionStep(rule, (path,), ()))
        for rule in self.rules:
            if rule.action not in ("default", *_DROPS):
                self._place(rule)
        return [*said, *before, *self.ordered, *after]

    def _plain(self, rule: ConversionRule) -> ConversionStep:
        return ConversionStep(rule, self._here(rule), self._there(rule))

    def _place(self, rule: ConversionRule) -> None:
        if id(rule) in self.done:
            return
        self.done.add(id(rule))
        here, there = self._here(rule), self._there(rule)
        around = self._around(here[0], rule) if here else None
        if rule in self.moves:
            for other in self.rules:  # what happens inside comes first
                inner = self._here(other)
                if (
                    other.action not in ("default", *_DROPS)
                    and inner
                    and self._around(inner[0], other) is rule
                ):
                    self._place(other)
        for other in self.moves:  # what this goes into is there by then
            if other is not rule and other is not around and there and self._enters(there[0], other):
                self._place(other)
        if around is not None:
            source, target = self._here(around)[0], self._there(around)[0]
            there = tuple(source + path[len(target) :] if covers(target, path) else path for path in there)
        self.ordered.append(ConversionStep(rule, here, there))

    def _around(self, path: str, rule: ConversionRule) -> ConversionRule | None:
        """The move that takes what is at ``path`` along: the closest around it."""
        found = [
            move
            for move in self.moves
            if move is not rule and self._here(move)[0] != path and covers(self._here(move)[0], path)
        ]
        return max(found, key=lambda move: len(self._here(move)[0]), default=None)

    def _enters(self, path: str, move: ConversionRule) -> bool:
        target = self._there(move)[0]
        return target != path and covers(target, path)
