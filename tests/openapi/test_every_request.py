"""Every operation of a document, called through its client and judged by its schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.compiler.emit.test_operations import DOCUMENT
from tests.openapi.every_request import Outcome, check


def judged(folder: Path, package: str, old: str = "", new: str = "") -> Outcome:
    """What comes of calls that are judged by the document with ``new`` for ``old``."""
    text = json.dumps(DOCUMENT)
    assert old in text
    (folder / "spec.json").write_text(text)
    (folder / "judge.json").write_text(text.replace(old, new) if old else text)
    return check(folder / "spec.json", package, folder, judged_by=folder / "judge.json")


def test_no_request_breaks_the_schemas(tmp_path: Path) -> None:
    outcome = judged(tmp_path, "judged_api")
    assert outcome.wrong == []
    assert outcome.called == outcome.operations == 11


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"enum": ["name", "born"]', '"enum": ["size"]', "Invalid enum value 'size'"),
        ('"name": "since", "in": "query"', '"name": "after", "in": "query"', "query after: '2026"),
        (
            '"name": "trace", "in": "header"',
            '"name": "span", "in": "header", "required": true',
            "header span is missing",
        ),
        ('"/pets/{pet-id}"', '"/cats/{pet-id}"', "no method"),
    ],
)
def test_the_judge_sees_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    outcome: Any = judged(tmp_path, f"wrong{abs(hash(old)) % 10**6}_api", old, new)
    assert any(said in line for line in (*outcome.wrong, *outcome.undrawn)), outcome
