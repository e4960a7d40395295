"""The ../shared folder of recordings: every computable step of its apply area must come out as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.merge.replay import SCENARIOS, replay

APPLY = sorted((SCENARIOS / "apply").glob("*.yaml"))
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not APPLY, reason="the ../shared folder of recordings is not there"),
]


@pytest.mark.parametrize("path", APPLY, ids=lambda path: path.stem)
def test_a_recorded_conversation_comes_out_as_recorded(path: Path) -> None:
    verdicts = list(replay(path))
    assert verdicts, "no step of it is computable: the replay has lost its grip"
    assert [(v.step, v.fault) for v in verdicts if v.fault] == []


def test_most_steps_are_computable() -> None:
    assert sum(1 for path in APPLY for _ in replay(path)) >= 480
