"""What is said once stays said once."""

from __future__ import annotations

import pytest
from tests.client.twins import AWAITED, PLAIN, plain


def test_the_plain_verbs_follow_from_the_awaited_ones(request: pytest.FixtureRequest) -> None:
    made = plain(AWAITED.read_text())
    if request.config.getoption("--rewrite-golden"):
        PLAIN.write_text(made)
    assert PLAIN.read_text() == made, "run `make golden`"


def test_a_difference_is_seen() -> None:
    changed = AWAITED.read_text().replace("async def get(", "async def fetch(", 1)
    assert plain(changed) != PLAIN.read_text()
