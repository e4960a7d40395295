"""The kit itself, in short: what ``make attack`` runs at length finds nothing in a few seconds either."""

from __future__ import annotations

import random

import pytest

from tests.attack import storage_keys
from tests.attack.run import main

HELD_ONCE = "delete options,a stored role,a stored definition,a stored flow schema"


def test_a_short_attack_finds_nothing(capsys):
    # The stalls that count are longer than elsewhere: other tests run meanwhile.
    options = ["--requests", "600", "--inputs", HELD_ONCE, "--stall", "0.25", "--health", "0.25"]
    code = main(["--only", "inputs,fuzz,storage keys,linearizability,power cuts", *options])
    assert code == 0, capsys.readouterr().out


def test_no_two_resources_of_any_world_share_a_prefix():
    assert list(storage_keys.worlds(random.Random(1), 400)) == []


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("corpus", ["inputs", "crowds"])
def test_no_input_holds_the_server(corpus, capsys):
    assert main(["--only", corpus, "--memory", "2048"]) == 0, capsys.readouterr().out
