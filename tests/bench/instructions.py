"""How many instructions a request takes in the API alone, against a kept file: a check that no other load disturbs.

python -m tests.bench.instructions [LINE …] [--keep] [--tolerance PERCENT]

It runs under valgrind's cachegrind, which counts. The API starts once; each line is two forks of that process, of
which one answers more requests than the other: the difference is what they take. ``instructions.json`` has what they
took last, and with which versions: other ones count differently, so then nothing is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.bench.api_requests import LINES, running_api

from apimachinery.http.messages import Request
from apimachinery.server.assembly.api import AssembledApi

KEPT = Path(__file__).with_name("instructions.json")
COUNTED = 40
WARMED = 20
TOLERANCE = 3.0
MEASURE = "--measure-under-valgrind"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("lines", nargs="*", metavar="LINE", help=f"of {', '.join(LINES)}")
    parser.add_argument("--keep", action="store_true", help="write what was counted into the kept file")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, metavar="PERCENT")
    parser.add_argument(MEASURE, dest="measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.lines if name not in LINES]:
        parser.error(f"there is no line {unknown[0]}; there are {', '.join(LINES)}")
    names = options.lines or list(LINES)
    if options.measure:
        asyncio.run(_fork_each(names))
    counts = count(names)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    worse = _show(counts, kept, options.tolerance)
    if options.keep:
        lines = {**(kept.get("lines") or {}), **counts} if kept.get("versions") == versions() else counts
        KEPT.write_text(json.dumps({"versions": versions(), "lines": lines}, indent=2) + "\n")
    elif worse:
        print(f"above the kept file by more than {options.tolerance:g} %: {', '.join(worse)}")
        return 1
    return 0


def versions() -> dict[str, str]:
    """What else the counts depend on."""
    return {
        "python": platform.python_version(),
        "msgspec": msgspec.__version__,
        "machine": platform.machine(),
    }


def _show(counts: dict[str, int], kept: dict[str, Any], tolerance: float) -> list[str]:
    """Prints the counts next to the kept ones, and gives the lines that are worse."""
    comparable = kept.get("versions") == versions()
    if not comparable:
        print(f"nothing to compare with: {KEPT.name} was counted with {kept.get('versions')}")
    worse = []
    for name, counted in counts.items():
        before = kept["lines"].get(name) if comparable else None
        change = (counted / before - 1) * 100 if before else 0.0
        print(f"{name:12s} {counted:12,}" + (f"  {change:+6.1f} %" if before else ""))
        if change > tolerance:
            worse.append(name)
    return worse


def count(names: Sequence[str]) -> dict[str, int]:
    """Instructions of one request of each line."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "-q", "--tool=cachegrind", "--cache-sim=no"]
        command += [
            f"--cachegrind-out-file={folder}/%p",
            sys.executable,
            "-m",
            __spec__.name,
            MEASURE,
            *names,
        ]
        run = subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": "0"}, stdout=subprocess.PIPE, check=True
        )
        forks: dict[str, tuple[int, int]] = json.loads(run.stdout)
        return {
            name: (_counted(Path(folder, str(more))) - _counted(Path(folder, str(fewer)))) // COUNTED
            for name, (fewer, more) in forks.items()
        }


def _counted(output: Path) -> int:
    summary = next(line for line in output.read_text().splitlines() if line.startswith("summary:"))
    return int(summary.split()[1])


async def _fork_each(names: Sequence[str]) -> None:
    async with running_api() as api:
        gc.collect()
        gc.freeze()
        forks = {}
        for name in names:
            requests = [LINES[name][0](number) for number in range(WARMED + COUNTED)]
            forks[name] = (_fork(api, requests[:WARMED]), _fork(api, requests))
        print(json.dumps(forks), flush=True)
        os._exit(0)  # stopping the API would be counted for nothing


def _fork(api: AssembledApi, requests: list[Request]) -> int:
    """The process that answered requests and ended; its counts begin with those of this one."""
    if process := os.fork():
        _, status = os.waitpid(process, 0)
        if status:
            raise SystemExit("a request was not answered")
        return process
    for request in requests:
        # Memory storage never waits, so no loop has to turn, which a fork could not.
        try:
            api.handle(request).send(None)
        except StopIteration as end:
            if end.value.status < 300:
                continue
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
