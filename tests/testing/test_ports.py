"""Ports for programs that listen later: no connection takes them meanwhile."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from kubewright.testing import ports


def test_drawn_ports_differ_and_nobody_listens_on_them() -> None:
    drawn = ports.free_ports(20)
    assert len(set(drawn)) == 20
    with socket.create_server(("127.0.0.1", drawn[0])) as listening:
        assert listening.getsockname()[1] == drawn[0]


def test_they_lie_below_the_ports_of_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "range"
    told.write_text("20000\t60999\n")
    monkeypatch.setattr(ports, "_RANGE", told)
    assert all(10_000 <= each < 20_000 for each in ports.free_ports(50))


@pytest.mark.parametrize("text", ["1024 65535", "", "none"])
def test_a_range_that_says_nothing_is_not_followed(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = tmp_path / "range"
    told.write_text(text)
    monkeypatch.setattr(ports, "_RANGE", told)
    assert all(10_000 <= each < 49_152 for each in ports.free_ports(50))


def test_seeds_of_tests_do_not_decide_them() -> None:
    random.seed(1)
    first = ports.free_ports(5)
    random.seed(1)
    assert ports.free_ports(5) != first
