"""Public repositories at their root: no finding beyond those that were judged (``repositories.yaml``)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.tools.command import kubewright

CLONES = Path(os.environ.get("KUBEWRIGHT_CLONES") or "/none")
RECORD: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("repositories.yaml").read_text())


def test_each_repository_was_judged_and_nothing_false_is_left() -> None:
    assert len(RECORD) >= 20
    assert [each["name"] for each in RECORD if each["wrong"]] == []
    assert all(each["right"] == 0 or each["mostly"] for each in RECORD)


@pytest.mark.thorough
@pytest.mark.skipif(not CLONES.is_dir(), reason="KUBEWRIGHT_CLONES names no folder of clones")
@pytest.mark.parametrize("each", RECORD, ids=[each["name"] for each in RECORD])
def test_a_repository_has_the_findings_that_were_judged(
    each: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CLONES / each["name"]
    if not folder.is_dir():
        pytest.skip(f"no clone of {each['name']}")
    monkeypatch.chdir(folder)
    found = json.loads(kubewright("validate", ".", "--format", "json", "--jobs", "1")[1])["findings"]
    judged = [f for f in found if f["severity"] != "note" and f["code"] != "V002"]
    assert len(judged) <= each["right"], [f["message"] for f in judged]
