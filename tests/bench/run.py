"""Runs the benchmarks and prints one table.

    python tests/bench/run.py [WORD …] [--json FILE]

WORD limits the run to files ``bench_<something with WORD>.py``. See README.md for how to add one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[1] / "generator"), str(HERE.parents[1] / "generated")]

from tests.bench.measuring import Row  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only benchmarks whose file name has one of these")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    options = parser.parse_args()
    names = [path.stem for path in sorted(HERE.glob("bench_*.py"))]
    chosen = [name for name in names if not options.words or any(word in name for word in options.words)]
    if not chosen:
        parser.error(f"no such benchmark; there are: {', '.join(names)}")
    rows: list[Row] = []
    print(f"{'bench':48} {'against':40} {'ours':>10} {'theirs':>10} {'ratio':>7} {'target':>7}")
    for name in chosen:
        for row in importlib.import_module(f"tests.bench.{name}").measure():
            rows.append(row)
            target = f"{row.target:g}" if row.target is not None else ""
            print(
                f"{row.bench:48} {row.peer:40} {shown(row.ours):>10} {shown(row.theirs):>10} "
                f"{row.ratio:7.3f} {target:>7} {row.verdict}",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps([{**asdict(r), "ratio": r.ratio} for r in rows], indent=1))
    return 0


def shown(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


if __name__ == "__main__":
    sys.exit(main())
