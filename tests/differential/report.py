"""What a run found: agreement by area at three levels, and classes of differences, as a table and as JSON."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.differential.answers import LEVELS, signature
from tests.differential.conversation import Conversation
from tests.differential.play import Verdict, dropped


@dataclass
class Class:
    """Differences that look alike; ``example`` is the shortest conversation up to the first."""

    signature: str
    example: Conversation
    at: int
    count: int = 0
    first: int = 0  # conversations in which it is the first difference: the others may follow from one before
    areas: Counter[str] = field(default_factory=Counter)
    wanted: dict[str, Any] = field(default_factory=dict)
    got: dict[str, Any] = field(default_factory=dict)


class Report:
    """Sums verdicts."""

    def __init__(self) -> None:
        self.sums: dict[str, Counter[str]] = defaultdict(Counter)
        self.classes: dict[str, Class] = {}
        self.errors: list[str] = []
        self.alike_when_repeated = 0
        self.dropped = 0
        self.conversations = 0
        self.failures = 0  # answers that are a 500 where the reference gives none: never right
        self.seconds = 0.0

    def add(self, verdict: Verdict) -> None:
        """Counts the answers of one conversation."""
        conversation = verdict.conversation
        if verdict.error:
            self.errors.append(f"{conversation.name}: {verdict.error}")
        sums = self.sums[conversation.area]
        first = next((row[0] for row in verdict.failing()), -1)
        for number, level, wanted, got in verdict.rows:
            if dropped(wanted, got):
                self.dropped += 1
                continue
            sums["requests"] += 1
            for each in LEVELS[: LEVELS.index(level) + 1] if level else ():
                sums[each] += 1
            self.failures += got.get("status") == 500 and wanted.get("status") != 500
            if level != "text":
                found = self._classify(conversation, number, level, wanted, got)
                found.first += number == first

    def _classify(
        self, conversation: Conversation, number: int, level: str | None, wanted: Any, got: Any
    ) -> Class:
        key = signature(level, wanted, got)
        found = self.classes.setdefault(key, Class(key, conversation, number, wanted=wanted, got=got))
        found.count += 1
        found.areas[conversation.area] += 1
        if number < found.at:
            found.example, found.at, found.wanted, found.got = conversation, number, wanted, got
        return found

    def ordered(self) -> list[Class]:
        """The classes, those that others do not explain first."""
        return sorted(self.classes.values(), key=lambda each: (-each.first, -each.count))

    def requests(self) -> int:
        """How many answers were compared."""
        return sum(sums["requests"] for sums in self.sums.values())

    def table(self) -> str:
        """Agreement by area, in per cent."""
        lines = [f"{'area':12s} {'requests':>8s} " + " ".join(f"{level:>8s}" for level in LEVELS)]
        total: Counter[str] = Counter()
        for area, sums in sorted(self.sums.items()):
            total += sums
            lines.append(_row(area, sums))
        return "\n".join([*lines, _row("all", total)])

    def text(self, seed: str, limit: int) -> str:
        """Everything for people: the table, and the largest classes."""
        rate = self.requests() / max(self.seconds, 0.001)
        lines = [
            f"seed {seed}: {self.requests()} answers of {self.conversations} conversations "
            f"in {self.seconds:.0f} s ({rate:.0f} a second)",
            f"{self.alike_when_repeated} conversations differed, and less when repeated",
            f"{self.dropped} requests the reference had no answer for, which are not compared",
            self.table(),
            f"{self.failures} answers are a 500 where the reference gives none",
            f"{len(self.classes)} classes of differences; first in a conversation / in all:",
        ]
        for each in self.ordered()[:limit]:
            where = f"{', '.join(each.areas)}; {each.example.name} step {each.at}"
            lines.append(f"{each.first:4d}/{each.count:<4d} {each.signature}   [{where}]")
        return "\n".join([*lines, *(f"! {error[:500]}" for error in self.errors[:5])])

    def as_json(self, limit: int = 2000) -> dict[str, Any]:
        """The same with the classes, for programs."""
        return {
            "areas": {area: dict(sums) for area, sums in self.sums.items()},
            "conversations": self.conversations,
            "seconds": round(self.seconds, 1),
            "alike_when_repeated": self.alike_when_repeated,
            "dropped": self.dropped,
            "errors": self.errors,
            "classes": [
                {
                    "class": each.signature,
                    "count": each.count,
                    "first": each.first,
                    "areas": dict(each.areas),
                    "example": each.example.name,
                    "step": each.example.steps[each.at],
                    "wanted": each.wanted,
                    "got": each.got,
                }
                for each in self.ordered()[:limit]
            ],
        }


def _row(area: str, sums: Counter[str]) -> str:
    count = max(1, sums["requests"])
    return f"{area:12s} {sums['requests']:8d} " + " ".join(
        f"{100 * sums[level] / count:8.2f}" for level in LEVELS
    )
