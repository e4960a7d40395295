"""The kit itself, in short: what ``make attack`` runs at length finds nothing in a few seconds either."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.attack import rights, storage_keys
from tests.attack.run import ATTACKS, main
from tests.attack.target import ROOT

HELD_ONCE = "delete options,a stored role,a stored definition,a stored flow schema"


def test_each_row_of_the_threat_model_names_tests_that_exist():
    text = (
        (ROOT / "docs/security.md").read_text().partition("## Threat model by flow")[2].partition("\n## ")[0]
    )
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 24
    for row in rows:
        named = re.findall("`([^`]+)`", row.rstrip("| ").rpartition(" | ")[2])
        assert named, row
        folder = Path()
        for name in named:
            if name.endswith(".py"):
                folder = (ROOT / name).parent if "/" in name else folder
                assert (folder / Path(name).name).is_file(), name
            else:
                assert name in ATTACKS, name


def test_a_short_attack_finds_nothing(capsys):
    # Only stalls of seconds count: other tests run meanwhile. `make attack` counts those of milliseconds.
    options = ["--requests", "300", "--inputs", HELD_ONCE, "--stall", "3", "--health", "3"]
    code = main(["--only", "inputs,fuzz,storage keys,linearizability,power cuts", *options])
    assert code == 0, capsys.readouterr().out


def test_no_two_resources_of_any_world_share_a_prefix():
    assert list(storage_keys.worlds(random.Random(1), 400)) == []


def test_nobody_gains_a_right_that_he_could_not_grant(tmp_path):
    assert rights.against(tmp_path, random.Random(1), 250, "") == []


def test_the_law_knows_a_right_that_was_gained():
    atoms = [("", "get", "", "pods", ""), ("", "get", "", "secrets", "")]
    step = rights.Step(0, "PATCH", f"{rights.RBAC}/clusterroles/wr0")
    before, after = (
        FakeRights(held) for held in ({(0, atoms[0])}, {(0, atoms[0]), (1, atoms[0]), (1, atoms[1])})
    )
    assert "u1 gained" in rights.unlawful(step, before, after, atoms, None, {"metadata": {"name": "wr0"}})
    before.granted.add((0, ("", "escalate", rights.GROUP, "clusterroles", "wr0")))
    assert rights.unlawful(step, before, after, atoms, None, {"metadata": {"name": "wr0"}}) == ""


class FakeRights:
    def __init__(self, granted):
        self.granted = set(granted)

    def may(self, number, atom):
        return (number, atom) in self.granted

    def held(self, number, atoms):
        return {atom for atom in atoms if self.may(number, atom)}


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("corpus", ["inputs", "crowds"])
def test_no_input_holds_the_server(corpus, capsys):
    assert main(["--only", corpus, "--memory", "2048"]) == 0, capsys.readouterr().out
