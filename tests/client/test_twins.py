"""What is said once stays said once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.client.twins import AWAITED, PAIRS, PLAIN, plain


@pytest.mark.parametrize(("awaited", "made"), PAIRS, ids=lambda path: path.name)
def test_a_plain_module_follows_from_its_awaited_twin(
    awaited: Path, made: Path, request: pytest.FixtureRequest
) -> None:
    text = plain(awaited.read_text())
    if request.config.getoption("--rewrite-golden"):
        made.write_text(text)
    assert made.read_text() == text, "run `make golden`"


def test_a_difference_is_seen() -> None:
    changed = AWAITED.read_text().replace("async def get(", "async def fetch(", 1)
    assert plain(changed) != PLAIN.read_text()
