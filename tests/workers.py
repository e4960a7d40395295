"""A worker that died: its test files run once more, in a process of their own.

Native code can stop a process for good (a lock of a C library that a garbage collection waits for while it holds the
interpreter's); no timeout of a test ends that, only the end of the process, after ``faulthandler_timeout`` seconds.
pytest-xdist then reports the test that ran as failed and leaves the rest of its file. Only a process by itself shows
whether the tests are at fault: where they hang again, or fail, the run fails; else it says what happened, and passes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

_CRASH = "???"
"""The phase in which pytest-xdist reports a test that a worker died in."""


class LostWorkers:
    """A plugin of the process that hands out the tests."""

    def __init__(self) -> None:
        self._collected: Sequence[str] = ()
        self._ended: set[str] = set()
        self._lost: list[str] = []
        self._failed = False

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._collected = ids

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.when) == _CRASH:
            self._lost.append(report.nodeid)
            return
        self._failed |= report.failed
        if report.when == "teardown":
            self._ended.add(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._lost or self._failed or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            return
        files = sorted({test.partition("::")[0] for test in self._collected if test not in self._ended})
        print(
            f"\na worker died in {', '.join(self._lost)}; to run again: {', '.join(files) or 'nothing'}",
            flush=True,
        )
        command: list[Any] = [sys.executable, "-m", "pytest", "-q", "-n", "0", *files]
        if not files or subprocess.run(command, cwd=session.config.rootpath).returncode == 0:
            session.exitstatus = pytest.ExitCode.OK
