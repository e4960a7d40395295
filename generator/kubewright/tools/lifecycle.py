"""``kubewright lifecycle``: a release plan checked against the deprecation policy, and the policy as a table.

A plan is a YAML file: ``resources:``, a list of entries with ``api_version``, ``kind``, ``introduced``, and where they
are known ``deprecated``, ``removed`` (releases such as ``1.30``) and ``replacement`` (``group/version/Kind``).
Without a file the built-in kinds' own life cycles are shown.

Exit codes: 0 the plan keeps the policy, 1 it does not, 2 the plan cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from kubewright.diagnostics import Diagnostic, Diagnostics, Severity
from kubewright.ir.versions import version_priority
from kubewright.location import Document
from kubewright.source.text import read_single
from kubewright.tools import reporting
from kubewright.tools.migrating.lifecycle import Key, LifeCycle, read_lifecycles, release_of

KEPT, BROKEN, MISUSED = 0, 1, 2
RULES = {
    "P001": "the releases of an entry are out of order",
    "P002": "rule #4a: removed before its minimum lifetime after deprecation",
    "P003": "rule #3: deprecated in favour of a less stable version, or of none as stable",
    "P004": "rule #4a: a stable version is removed within its major release",
    "P005": "rule #1: removed without a successor",
    "P100": "the plan cannot be understood",
}
"""Code → what it says."""

_WAIT = {2: None, 1: 3, 0: 0}
"""Level (2 stable, 1 beta, 0 alpha) → releases between deprecation and removal; None is never."""
_LEVELS = {2: "stable", 1: "beta", 0: "alpha", -1: "unknown"}
_FIELDS = ("introduced", "deprecated", "removed", "replacement")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the sub-command."""
    parser.add_argument(
        "plan", nargs="?", type=Path, help="the plan; without it the built-in kinds are listed"
    )
    parser.add_argument(
        "--format", choices=[*reporting.FORMATS], default="text", help="how to print findings"
    )
    parser.add_argument("--table", action="store_true", help="print the life cycles as a Markdown table")


def run(options: argparse.Namespace) -> int:
    """Checks the plan; prints findings, or the table."""
    if options.plan is None:
        sys.stdout.write(table(read_lifecycles()))
        return KEPT
    diagnostics = Diagnostics()
    document = read_single(options.plan, diagnostics)
    plan = read_plan(document, diagnostics) if document is not None else {}
    if document is None or diagnostics.has_errors:
        for item in diagnostics:
            print(item, file=sys.stderr)
        return MISUSED
    lives = {key: life for key, (life, _) in plan.items()}
    if options.table:
        sys.stdout.write(table(lives))
        return KEPT
    findings = [
        Diagnostic(code, Severity.ERROR, said, document.at(plan[key][1])) for key, code, said in check(lives)
    ]
    sys.stdout.write(reporting.FORMATS[options.format](findings, RULES))
    return BROKEN if findings else KEPT


def read_plan(document: Document, diagnostics: Diagnostics) -> dict[Key, tuple[LifeCycle, str]]:
    """The entries of a plan with their pointers; what cannot be understood is a diagnostic."""
    found: dict[Key, tuple[LifeCycle, str]] = {}
    entries = document.value.get("resources") if isinstance(document.value, dict) else None
    if not isinstance(entries, list):
        diagnostics.error("P100", "a plan has a list called resources", document.at(""))
        return found
    for index, entry in enumerate(entries):
        place = f"/resources/{index}"
        api_version = entry.get("api_version") if isinstance(entry, dict) else None
        kind = entry.get("kind") if isinstance(entry, dict) else None
        if not isinstance(api_version, str) or not isinstance(kind, str) or not api_version or not kind:
            diagnostics.error("P100", "an entry has api_version and kind", document.at(place))
            continue
        texts = {name: entry.get(name, "") for name in _FIELDS}
        for name in _FIELDS:
            if not isinstance(texts[name], str) or (name != "replacement" and not _is_release(texts[name])):
                said = f"{name}: {texts[name]!r} is no release"
                diagnostics.error("P100", said, document.at(f"{place}/{name}"), 'quote it: "1.30"')
                texts[name] = ""
        found[api_version, kind] = (LifeCycle(**texts), place)
    return found


def _is_release(text: str) -> bool:
    try:
        return not text or len(release_of(text)) == 2
    except ValueError:
        return False


def check(lives: Mapping[Key, LifeCycle]) -> Iterator[tuple[Key, str, str]]:
    """What in a plan breaks the deprecation policy: the entry, the code, and why."""
    for key, life in lives.items():
        api_version, kind = key
        name = f"{kind} of {api_version}"
        steps = [release_of(text) for text in (life.introduced, life.deprecated, life.removed) if text]
        if steps != sorted(steps):
            yield key, "P001", f"{name}: introduced, deprecated and removed must follow each other"
            continue
        level = version_priority(api_version.rpartition("/")[2])[0]
        if life.deprecated:
            yield from _successor_faults(key, life, level, lives)
        if life.removed:
            yield from _removal_faults(key, life, level, name)


def _removal_faults(key: Key, life: LifeCycle, level: int, name: str) -> Iterator[tuple[Key, str, str]]:
    wait = _WAIT.get(level, 0)
    start = release_of(life.deprecated or life.introduced or life.removed)
    gone = release_of(life.removed)
    if wait is None:
        if gone[0] == start[0]:
            yield key, "P004", f"{name} is stable: it stays for all of {start[0]}.x"
        return
    if wait and not life.deprecated:
        yield key, "P002", f"{name} is removed without having been deprecated"
    elif gone[0] == start[0] and gone[1] - start[1] < wait:
        earliest = f"{start[0]}.{start[1] + wait}"
        said = f"deprecated in {life.deprecated}, may go with {earliest} at the earliest, not {life.removed}"
        yield key, "P002", f"{name} is {_LEVELS[level]}: {said}"
    if wait and not life.replacement:
        yield key, "P005", f"{name} is removed without a successor"


def _successor_faults(
    key: Key, life: LifeCycle, level: int, lives: Mapping[Key, LifeCycle]
) -> Iterator[tuple[Key, str, str]]:
    successor = life.successor
    if successor is None:
        return
    reached = version_priority(successor[0].rpartition("/")[2])[0]
    if reached < level:
        said = (
            f"{key[1]} of {key[0]} is {_LEVELS[level]}, its successor {successor[0]} only {_LEVELS[reached]}"
        )
        yield key, "P003", said
    other = lives.get(successor)
    if other is not None and other.introduced and release_of(other.introduced) > release_of(life.deprecated):
        said = f"{key[1]} of {key[0]} is deprecated in {life.deprecated}, "
        said += f"before {successor[0]} comes in {other.introduced}"
        yield key, "P003", said


def table(lives: Mapping[Key, LifeCycle]) -> str:
    """The life cycles in Markdown, and of a beta that is only deprecated the release it may go with."""
    lines = [
        "| kind | API version | introduced | deprecated | removed | use instead |",
        "|---|---|---|---|---|---|",
    ]
    for (api_version, kind), life in sorted(lives.items(), key=lambda e: (e[0][1], e[0][0])):
        removed = life.removed
        level = version_priority(api_version.rpartition("/")[2])[0]
        if life.deprecated and not removed and (wait := _WAIT.get(level)):
            major, minor = release_of(life.deprecated)
            removed = f"{major}.{minor + wait} at the earliest"
        cells = (kind, api_version, life.introduced, life.deprecated, removed, life.replacement)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
