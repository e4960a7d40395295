"""``python -m tests.tables.run [--json FILE] [--show N] [suite …]``: a line a suite, agreement by level."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from . import suites
from .agreement import Agreement, exceptions, faults_of, folder, is_recorded, measure, raise_floors


def main() -> int:
    """Measures, prints, and fails where a suite is below its floor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", help="by default all")
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    parser.add_argument("--raise-floors", action="store_true", help="write what agrees now to floors.yaml")
    parser.add_argument("--show", type=int, default=0, help="print so many lines that differ")
    parser.add_argument("--level", help="only differences of this level")
    parser.add_argument("--op", help="only differences of lines with this op, func or kind")
    parser.add_argument("--whole", action="store_true", help="differing lines with their whole input")
    arguments = parser.parse_args()
    if not folder().exists():
        sys.exit(f"no tables in {folder()}")
    numbers, failed = {}, False
    for suite in suites():
        if arguments.suites and suite.name not in arguments.suites:
            continue
        agreement = measure(suite)
        if not agreement.lines:
            continue
        numbers[suite.name] = agreement.as_json()
        levels = ", ".join(
            f"{level} {each['agree']}/{each['lines']} ({each['percent']} %)"
            for level, each in numbers[suite.name].items()
        )
        noted = len(exceptions(suite.name)) if is_recorded() else 0
        print(f"{suite.name:18} {len(agreement.lines):5} lines  {levels}  {noted} exceptions", flush=True)
        _show(agreement, arguments)
        if arguments.raise_floors and is_recorded():
            raise_floors(agreement)
        for fault in faults_of(agreement):
            failed = True
            print(f"  {fault}")
    if arguments.json:
        arguments.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    return int(failed)


def _show(agreement: Agreement, arguments: argparse.Namespace) -> None:
    left = arguments.show
    for name, answers in agreement.differing.items():
        line = agreement.lines[name]
        if arguments.op and arguments.op not in (line["op"], line.get("func"), line.get("kind")):
            continue
        shown = [each for each in answers if arguments.level in (None, each.level)]
        if not shown or left <= 0:
            continue
        left -= 1
        print(
            f"  {name} {line['file']} {line['op']} {line.get('func') or line.get('kind') or ''} {line['pos']}"
        )
        for answer in shown:
            print(f"    {answer.level}: wanted {json.dumps(answer.wanted)[:1500]}")
            print(f"    {answer.level}:   ours {json.dumps(answer.ours, default=repr)[:1500]}")
        if arguments.whole:
            print(
                f"    {json.dumps({key: each for key, each in line.items() if key not in ('errs', 'out')})}"
            )


if __name__ == "__main__":
    sys.exit(main())
