"""Webhooks good and bad: what a create answers is what kube-apiserver answers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kubewright.testing import ApiServer
from tests.webhooks.record import Cluster, Json, Player, cases, differences

WAITING = ("slow", "slow-ignored", "code-429")
"""Cases that take a second by what they are about: they are played all at once, while the others are played."""


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def _played_apart(server: ApiServer, name: str) -> Json:
    player = Player(Cluster(server.url, ""), 0.0, f"recorded-{name}")
    try:
        return player.play(cases()[name])
    finally:
        player.close()


def test_creates_answer_what_is_recorded(server: ApiServer) -> None:
    found: dict[str, Json] = {}
    player = Player(Cluster(server.url, ""), 0.0)
    with ThreadPoolExecutor(len(WAITING)) as pool:
        later: dict[str, Future[Json]] = {name: pool.submit(_played_apart, server, name) for name in WAITING}
        for name, case in cases().items():
            if name not in later:
                found[name] = player.play(case)
        found |= {name: played.result() for name, played in later.items()}
    player.close()
    assert len(found) == len(cases()) > 100
    other = {name: differences(case["want"], found[name]) for name, case in cases().items()}
    assert {name: each for name, each in other.items() if each} == {}
