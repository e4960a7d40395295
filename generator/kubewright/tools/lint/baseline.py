"""What a project has agreed to fix later: a file of known findings that only shrinks.

A baseline is a JSON object: rule code → path → how many findings of that rule are there. Line numbers are not in
it, so it survives edits elsewhere. Findings beyond it are reported; entries that nothing stands for any more must
be taken out (``--update-baseline`` does it, and never adds), so that what is fixed stays fixed.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from kubewright.source.text import read_bytes
from kubewright.tools.lint.run import Finding

Baseline = dict[str, dict[str, int]]


class BaselineError(Exception):
    """The file is not a baseline; the text says why."""


def read(path: Path) -> Baseline:
    """Reads a baseline. Raises ``BaselineError``."""
    try:
        value = json.loads(read_bytes(path))
    except OSError as error:
        raise BaselineError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise BaselineError(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict) or not all(
        isinstance(places, dict) and all(isinstance(n, int) and n > 0 for n in places.values())
        for places in value.values()
    ):
        raise BaselineError(f"{path}: not a lint baseline (code → path → count)")
    return value


def write(path: Path, baseline: Baseline) -> None:
    """Writes a baseline, sorted, whole or not at all."""
    text = json.dumps(baseline, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def of(findings: list[Finding]) -> Baseline:
    """The baseline that holds exactly ``findings``."""
    counted = Counter((f.rule.code, f.path) for f in findings)
    made: Baseline = {}
    for (code, path), number in sorted(counted.items()):
        made.setdefault(code, {})[path] = number
    return made


def compare(findings: list[Finding], known: Baseline) -> tuple[list[Finding], Baseline]:
    """The findings beyond a baseline, and the baseline without what is gone."""
    counted = Counter((f.rule.code, f.path) for f in findings)
    beyond = [f for f in findings if counted[f.rule.code, f.path] > known.get(f.rule.code, {}).get(f.path, 0)]
    kept: Baseline = {}
    for code, places in known.items():
        for path, number in places.items():
            still = min(number, counted[code, path])
            if still:
                kept.setdefault(code, {})[path] = still
    return beyond, kept
