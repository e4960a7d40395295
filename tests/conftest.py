"""Options of the whole suite, and its Hypothesis profiles.

A usual run looks at the same few examples every time, so that it fails for what changed alone and takes the same time;
``HYPOTHESIS_PROFILE=thorough`` (``make test-real``) searches at random, and far. Nothing is measured here, so no
example has a deadline, and drawing one may take as long as a busy machine makes it take.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

import apimachinery.cel.syntax.parser  # noqa: F401  (raises the recursion limit, which a property test must not see change)

_BUSY_MACHINES = [HealthCheck.too_slow]
settings.register_profile(
    "usual",
    max_examples=40,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=_BUSY_MACHINES,
)
settings.register_profile("thorough", max_examples=2000, deadline=None, suppress_health_check=_BUSY_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden", action="store_true", help="write what tests expect anew, to be read in the diff"
    )
