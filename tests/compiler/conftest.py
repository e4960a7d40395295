"""``--rewrite-golden`` writes what tests expect anew, to be read in the diff."""

from __future__ import annotations

import pytest


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-golden"))
