"""What counts as agreement, on lines made for the purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import agreement
from .agreement import VALUE, VERDICT, Answer, Line, Suite, faults_of, identity, measure


def _runner(line: Line) -> Iterator[Answer]:
    if line["out"] is None:
        raise ValueError("no answer")
    yield Answer(VALUE, line["out"], 1)


_LINES = [{"op": "one", "out": 1}, {"op": "one", "out": 2}, {"op": "one", "out": None}]
_NAMES = [identity(json.dumps(line)) for line in _LINES]


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    (tmp_path / "made.jsonl").write_text("\n".join(map(json.dumps, _LINES)), encoding="utf-8")
    monkeypatch.setattr(agreement, "folder", lambda: tmp_path)
    monkeypatch.setattr(agreement, "is_recorded", lambda: True)
    monkeypatch.setattr(agreement, "floors", lambda name: {VALUE: 1})
    monkeypatch.setattr(agreement, "exceptions", lambda name: {})
    return Suite("made", ("made*.jsonl",), {"one": _runner})


def test_lines_are_counted_by_level_and_a_crash_is_a_verdict(suite: Suite) -> None:
    measured = measure(suite)
    assert measured.as_json() == {
        VALUE: {"lines": 2, "agree": 1, "percent": 50.0},
        VERDICT: {"lines": 1, "agree": 0, "percent": 0.0},
    }
    assert set(measured.differing) == set(_NAMES[1:])
    assert faults_of(measured) == []


def test_fewer_lines_than_the_floor_are_a_fault(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "floors", lambda name: {VALUE: 2})
    assert faults_of(measure(suite))[0].startswith("value: 1 lines agree, 2 did")


def test_an_exception_counts_as_agreeing(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "floors", lambda name: {VALUE: 2})
    monkeypatch.setattr(agreement, "exceptions", lambda name: {_NAMES[1]: "because"})
    assert faults_of(measure(suite)) == []


@pytest.mark.parametrize(
    ("name", "said"), [(_NAMES[0], "no longer applies"), ("0123456789ab", "is no line of the suite")]
)
def test_an_exception_without_a_difference_is_a_fault(
    suite: Suite, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    monkeypatch.setattr(agreement, "exceptions", lambda suite: {name: "because"})
    assert said in faults_of(measure(suite))[0]
