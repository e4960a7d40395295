"""The kit itself, in short: what ``make attack`` runs at length finds nothing in a few seconds either."""

from __future__ import annotations

from tests.attack.run import main


def test_a_short_attack_finds_nothing(capsys):
    code = main(["--only", "fuzz,linearizability,power cuts", "--requests", "600", "--stall", "30"])
    assert code == 0, capsys.readouterr().out
