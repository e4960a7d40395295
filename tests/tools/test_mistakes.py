"""Typical mistakes in manifests: each gets a hint that names the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.command import kubewright

MISTAKES: list[dict[str, str]] = yaml.load(
    Path(__file__).with_name("mistakes.yaml").read_text(), yaml.CSafeLoader
)


@pytest.mark.parametrize("case", MISTAKES, ids=[case["mistake"] for case in MISTAKES])
def test_a_mistake_is_answered_with_its_fix(case: dict[str, Any]) -> None:
    _, out, err = kubewright("validate", "-", "--format", "json", stdin=case["input"])
    hints = [finding["hint"] for finding in json.loads(out)["findings"]]
    assert any(case["hint"] in hint for hint in hints), (hints, out, err)


@pytest.mark.parametrize("release", ["1.36", "v1.36", "1.36.2", "v1.36.0-rc.1"])
def test_a_release_may_have_a_v_and_a_patch(release: str) -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
    code, _, err = kubewright("validate", "-", "--kubernetes", release, stdin=pod)
    assert (code, err) == (0, "1 object: no findings\n")
