"""A pytest plugin for other people's suites: gives them our server where they look for theirs."""

from __future__ import annotations

import os
import sys

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option of pytest-kind that kr8s' conftest reads."""
    parser.addoption("--keep-cluster", dest="keep_cluster", action="store_true", default=True)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Ends the process: threads that a suite leaves behind would keep it for ever."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
