"""Requests walk through no more files than walks.yaml says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml

HERE = Path(__file__).parent
BUDGETS: dict[str, list[int]] = yaml.load((HERE / "walks.yaml").read_text(), yaml.CSafeLoader)


def test_no_request_walks_further_than_its_budget() -> None:
    """In a process of its own, whose threads are all watched."""
    command = [sys.executable, "-m", "tests.architecture.walks"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=250, check=True, cwd=HERE.parents[1]
    )
    lines = re.findall(r"^(\w+): (\d+) files, (\d+) moves$", done.stdout, re.MULTILINE)
    walked = {name: [int(files), int(moves)] for name, files, moves in lines}
    assert walked.keys() == BUDGETS.keys()
    further = {
        name: (walk, BUDGETS[name])
        for name, walk in walked.items()
        if walk[0] > BUDGETS[name][0] or walk[1] > BUDGETS[name][1]
    }
    assert not further, (
        "files and moves, and those allowed; `python -m tests.architecture.walks NAME` lists them"
    )
