"""How far a suite of recorded outcomes agrees with ours, by level.

A line of a table is an input and an outcome. A *runner* computes our outcome and answers, for each *level* it is
compared at (verdict, fields, text, value, cost), what was wanted and what came out. ``exceptions.yaml`` names lines
that differ with the reason why; one that no longer differs, or is no longer there, is a fault of that file.
``floors.yaml`` holds, by suite and level, the lines that must agree: it only goes up.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
RECORDED = HERE.parents[1] / "../shared/data/tables"
VERDICT, FIELDS, TEXT, VALUE, COST = "verdict", "fields", "text", "value", "cost"

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """Both outcomes of one line at one level: JSON values; equal ones agree."""

    level: str
    wanted: Any
    ours: Any


Runner = Callable[[Line], Iterator[Answer]]


@dataclass(frozen=True, slots=True)
class Suite:
    """``files``: the tables, by glob; ``runners``: by the lines' ``op``."""

    name: str
    files: tuple[str, ...]
    runners: dict[str, Runner]
    prepare: Callable[[list[Line]], None] | None = None


@dataclass(slots=True)
class Agreement:
    """``lines`` by level: how many were compared, how many agree; ``differing``: by line, where they do not."""

    suite: str
    compared: Counter[str] = field(default_factory=Counter)
    agreed: Counter[str] = field(default_factory=Counter)
    differing: dict[str, list[Answer]] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """By level: lines compared, lines that agree, percent."""
        return {
            level: {
                "lines": count,
                "agree": self.agreed[level],
                "percent": round(100 * self.agreed[level] / count, 2),
            }
            for level, count in sorted(self.compared.items())
        }


def folder() -> Path:
    """Where the tables are: ``KUBEWRIGHT_TABLES``, or the shared folder."""
    return Path(os.environ.get("KUBEWRIGHT_TABLES") or RECORDED)


def is_recorded() -> bool:
    """Whether the tables are those that exceptions and floors were written for."""
    return "KUBEWRIGHT_TABLES" not in os.environ


def identity(text: str) -> str:
    """A line's short name, from its content."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:12]


def lines_of(suite: Suite) -> dict[str, Line]:
    """The lines of a suite by identity; equal lines count once."""
    found: dict[str, Line] = {}
    for pattern in suite.files:
        for file in sorted(folder().glob(pattern)):
            with file.open(encoding="utf-8") as stream:
                for text in stream:
                    if text.strip():
                        line = json.loads(text)
                        line["file"] = file.stem
                        found[identity(text)] = line
    return found


def measure(suite: Suite) -> Agreement:
    """Runs all lines of a suite. What a runner raises is a difference of the verdict."""
    agreement = Agreement(suite.name, lines=lines_of(suite))
    if suite.prepare is not None:
        suite.prepare(list(agreement.lines.values()))
    for name, line in agreement.lines.items():
        runner = suite.runners.get(line["op"])
        if runner is None:
            continue
        try:
            answers = list(runner(line))
        except Exception as error:
            answers = [Answer(VERDICT, "an answer", f"{type(error).__name__}: {error}")]
        for answer in answers:
            agreement.compared[answer.level] += 1
            if answer.wanted == answer.ours:
                agreement.agreed[answer.level] += 1
            else:
                agreement.differing.setdefault(name, []).append(answer)
    return agreement


def exceptions(suite: str) -> dict[str, str]:
    """The lines of a suite that may differ, each with its reason."""
    read = yaml.load((HERE / "exceptions.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
    return {name: entry["reason"] for entry in read.get(suite) or () for name in entry["lines"]}


def floors(suite: str) -> dict[str, int]:
    """By level, how many lines agree at least, exceptions counted as agreeing."""
    read: dict[str, dict[str, int]] = (
        yaml.load((HERE / "floors.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
    )
    return read.get(suite) or {}


def raise_floors(agreement: Agreement) -> None:
    """Writes what agrees now as the least that must; nothing is lowered."""
    file = HERE / "floors.yaml"
    read: dict[str, dict[str, int]] = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader) or {}
    agreed, known = excused(agreement), read.get(agreement.suite) or {}
    read[agreement.suite] = {
        level: max(agreed[level], known.get(level, 0)) for level in sorted(agreement.compared)
    }
    file.write_text(yaml.safe_dump(read, sort_keys=True), encoding="utf-8")


def excused(agreement: Agreement) -> Counter[str]:
    """By level, the lines that agree or are exceptions."""
    names = exceptions(agreement.suite) if is_recorded() else {}
    agreed = Counter(agreement.agreed)
    for name in names:
        agreed.update(answer.level for answer in agreement.differing.get(name, ()))
    return agreed


def faults_of(agreement: Agreement) -> list[str]:
    """What is wrong with a suite: fewer lines agree than the floor, or an exception that does not apply."""
    found = []
    if not is_recorded():
        return found
    agreed = excused(agreement)
    for level, least in floors(agreement.suite).items():
        if agreed[level] < least:
            shown = "\n".join(_shown(agreement, level)[:5])
            found.append(f"{level}: {agreed[level]} lines agree, {least} did\n{shown}")
    for name, reason in exceptions(agreement.suite).items():
        if name not in agreement.lines:
            found.append(f"exception {name} ({reason}) is no line of the suite")
        elif name not in agreement.differing:
            found.append(f"exception {name} ({reason}) no longer applies: the line agrees")
    return found


def _shown(agreement: Agreement, level: str) -> list[str]:
    excepted = exceptions(agreement.suite)
    return [
        f"{name}: wanted {answer.wanted!r:.300}, ours {answer.ours!r:.300}"
        for name, answers in agreement.differing.items()
        if name not in excepted
        for answer in answers
        if answer.level == level
    ]
