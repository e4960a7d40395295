"""Webhooks good and bad: what a create answers is what kube-apiserver answers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubewright.testing import ApiServer
from tests.webhooks.record import Cluster, Player, cases, differences


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    with ApiServer() as server:
        player = Player(Cluster(server.url, ""), 0.0)
        yield player
        player.close()


@pytest.mark.parametrize("name", cases())
def test_a_create_answers_what_is_recorded(player: Player, name: str) -> None:
    case = cases()[name]
    assert differences(case["want"], player.play(case)) == {}
