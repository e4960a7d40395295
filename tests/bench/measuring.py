"""How a benchmark is measured and shown: ours and its peers by turns, in one run, medians, a ratio.

A machine that is busy slows all by turns alike; so the ratio counts, not the time. A peer that is not installed
is left out and said so. Nothing here fails a build: speed is read, not asserted.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. ``target`` is the greatest ratio ours/peer that is good enough; ``None`` where a
    peer is shown for comparison only. Times are seconds."""

    bench: str
    peer: str
    ours: float
    theirs: float
    target: float | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs if self.theirs else float("inf")

    @property
    def verdict(self) -> str:
        if self.target is None:
            return ""
        return "met" if self.ratio <= self.target else "MISSED"


@dataclass(frozen=True, slots=True)
class Peer:
    """What we are held against: something to run, and how much longer than it we may take."""

    name: str
    run: Callable[[], object]
    target: float | None = None


def compare(bench: str, ours: Callable[[], object], peers: Sequence[Peer], repeat: int = 5) -> list[Row]:
    """Runs ours and every peer ``repeat`` times by turns, after one round that does not count."""
    runs: list[Callable[[], object]] = [ours, *(peer.run for peer in peers)]
    times: list[list[float]] = [[] for _ in runs]
    for turn in range(repeat + 1):
        for index, run in enumerate(runs):
            gc.collect()
            start = time.perf_counter()
            run()
            if turn:
                times[index].append(time.perf_counter() - start)
    medians = [statistics.median(each) for each in times]
    return [
        Row(bench=bench, peer=peer.name, ours=medians[0], theirs=medians[index], target=peer.target)
        for index, peer in enumerate(peers, 1)
    ]


def limit(bench: str, run: Callable[[], object], seconds: float, repeat: int = 5) -> Row:
    """Ours against a wall-clock limit of the specification."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    ours = statistics.median(times)
    return Row(bench=bench, peer=f"limit of {seconds:g} s", ours=ours, theirs=seconds, target=1.0)


def python(*arguments: str, cwd: Path = ROOT) -> Callable[[], object]:
    """A run of a fresh interpreter that sees this checkout."""
    path = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])

    def run() -> object:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": ""},
            check=True,
            capture_output=True,
        )

    return run


def installed(*names: str) -> bool:
    """Whether all of these packages can be imported; says so where they cannot."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        print(f"  (left out: {', '.join(missing)} not installed)", file=sys.stderr)
    return not missing
