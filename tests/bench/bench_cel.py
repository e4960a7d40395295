"""Rows of CEL for the common table: evaluations and compilations against the other packages (``cel_packages.py``)."""

from __future__ import annotations

from tests.bench.cel_packages import CASES, PACKAGES, rate
from tests.bench.measuring import Row

EVALUATION_TARGET = 1.5


def measure() -> list[Row]:
    """One row a case and peer; seconds of one call."""
    rows = []
    for source, schema, value in CASES:
        pairs = {}
        for name, make in PACKAGES.items():
            try:
                pairs[name] = make(source, schema, value)
                pairs[name][1]()
            except Exception:
                pairs.pop(name, None)  # not installed, or cannot run this
        own = pairs.pop("ours, typed")
        pairs.pop("ours, untyped", None)
        for which, word, target in ((1, "evaluate", EVALUATION_TARGET), (0, "compile", None)):
            ours = 1 / rate(own[which])
            for name, pair in pairs.items():
                title = f"cel {word} {source[:28]}"
                rows.append(
                    Row(bench=title, peer=name, ours=ours, theirs=1 / rate(pair[which]), target=target)
                )
    return rows
