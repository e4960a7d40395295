"""A worker of pytest-xdist that dies: its file runs again, and decides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.workers import LostWorkers

def pytest_configure(config):
    if config.getoption("dist", "no") != "no":
        config.pluginmanager.register(LostWorkers(), "lost-workers")
"""
DIES = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("n", range(6))
def test_dies(n):
    met = Path(__file__).with_suffix(".met")
    if n == 3 and ({always} or not met.exists()):
        met.touch()
        os._exit(1)
"""
OTHER = "def test_other():\n    assert {holds}\n"


@pytest.mark.parametrize(
    ("always", "holds", "code"),
    [(False, True, 0), (True, True, 1), (False, False, 1)],
    ids=["once", "always", "beside a failure"],
)
def test_the_files_of_a_worker_that_died_decide(always: bool, holds: bool, code: int, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\naddopts = --import-mode=importlib\n"
    )
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_dies.py").write_text(DIES.format(always=always))
    (tmp_path / "test_other.py").write_text(OTHER.format(holds=holds))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "2",
        "--dist",
        "loadfile",
        "--max-worker-restart",
        "0",
    ]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True, timeout=250
    )
    assert done.returncode == code, done.stdout
    again = "a worker died in test_dies.py::test_dies[3]; to run again: test_dies.py" in done.stdout
    assert again == holds
    assert ("6 passed" in done.stdout) == (code == 0)
