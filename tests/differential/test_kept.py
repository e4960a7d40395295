"""Kept scenarios: conversations that once showed a difference, with the answers of kube-apiserver 1.36."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubewright.testing import ApiServer
from tests.differential.answers import Pairs, agreement, shown
from tests.differential.connection import Server
from tests.differential.conversation import read
from tests.differential.play import Side

KEPT = Path(__file__).parent / "kept"
FILES = sorted(KEPT.rglob("*.yaml"))


@pytest.fixture(scope="module")
def side() -> Iterator[Side]:
    with ApiServer(controllers="none") as server:
        yield from _side(Server(server.url, {}), "kept0")


@pytest.fixture(scope="module")
def controlled() -> Iterator[Side]:
    """With the controllers that end namespaces and collect garbage."""
    with ApiServer(controllers="all") as server:
        yield from _side(Server(server.url, {}), "kept1")


def _side(server: Server, run: str) -> Iterator[Side]:
    yield Side(server, run)
    server.close()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(KEPT).with_suffix("")))
def test_answers_as_recorded(path: Path, request: pytest.FixtureRequest) -> None:
    conversation = read(path, KEPT)
    played: Side = request.getfixturevalue("controlled" if conversation.area == "control" else "side")
    pairs = Pairs()
    for number, answer in played.play(conversation):
        wanted = conversation.steps[number]["expect"]
        pairs.meet(wanted, answer)
        got = pairs.rename(answer)
        if agreement(wanted, got) != "text":
            step = {key: value for key, value in conversation.steps[number].items() if key != "expect"}
            differing = "\n".join(f"{place}: {one!r} ≠ {other!r}" for place, one, other in shown(wanted, got))
            pytest.fail(f"step {number}:\n{yaml.safe_dump(step)}\nwanted ≠ got:\n{differing}")
