"""Printer columns have a budget: what a row costs does not grow with columns times values."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.meta.json_path import (
    CHARACTERS_A_VALUE,
    PathError,
    PathTooCostly,
    SearchBudget,
    parse_path,
)
from apimachinery.meta.resources import PrinterColumn
from apimachinery.server.answer import table
from apimachinery.server.answer.table import CELL_VALUES, LEAST_VALUES, ROW_VALUES

FLAT = {"metadata": {"name": "a"}, "spec": {f"k{number}": [number] for number in range(900)}}


def row(obj: dict[str, Any], *paths: str, kind: str = "string") -> tuple[list[Any], int]:
    """The cells of these columns, and how many values were looked at."""
    budget = SearchBudget(ROW_VALUES)
    column = PrinterColumn(name="c", type=kind)
    cells = [table._found(column, parse_path(path))(obj, budget) for path in paths]
    return cells, ROW_VALUES - budget.left


def deep(levels: int) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for _ in range(levels):
        nested = {"a": nested, "b": 1}
    return nested


@pytest.mark.parametrize(
    "path",
    [
        "..k",
        "..",
        "..a..a..a..x",
        "..[*]..[*]..x",
        ".spec[?(@..x)]",
        "..[?(@..b==2)]..x",
        "..[0:900:1]..x",
    ],
)
@pytest.mark.parametrize("obj", [FLAT, deep(900), {"spec": [[0] * 90] * 90}], ids=["flat", "deep", "lists"])
def test_two_hundred_columns_cost_what_a_row_may(path, obj):
    _, spent = row(obj, *[path] * 200)
    # A cell that passes its budget does so by one object or list, which is not gone through.
    assert spent <= ROW_VALUES + CELL_VALUES + 200 * (LEAST_VALUES + 1_000)


def test_a_plain_column_is_shown_whatever_the_others_took():
    cells, _ = row(FLAT, *["..missing"] * 50, ".metadata.name")
    assert cells == [None] * 50 + ["a"]


def test_one_search_of_a_usual_object_is_within_the_budget():
    containers = [{"env": [{"name": f"n{n}", "value": "v"} for n in range(200)]}] * 4
    pod = {"spec": {"containers": containers}, "at": {"last": "here"}}
    assert row(pod, "..last", '.spec.containers[*].env[?(@.name=="n9")].value')[0] == ["here", "v"]


def test_what_is_found_is_paid_for_before_it_is_printed():
    text = "x" * (CELL_VALUES * CHARACTERS_A_VALUE)
    assert row({"a": text[: len(text) // 2]}, ".a")[0] == [text[: len(text) // 2]]
    assert row({"a": text}, ".a")[0] == [None]
    cells, _ = row({"a": text[: len(text) // 2]}, *[".a"] * 200)
    assert sum(cell is not None for cell in cells) == ROW_VALUES // (CELL_VALUES // 2) - 1
    assert row({"a": {str(n): {} for n in range(20_000)}}, ".a")[0] == [None]


def test_a_search_ends_where_it_finds():
    obj = {"first": {"x": 1}, "rest": {str(n): n for n in range(9_000)}}
    assert row(obj, *["..x"] * 1_000, kind="integer") == ([1] * 1_000, pytest.approx(5_000, abs=4_000))


@given(st.text("?(@ .[]=<>!'a,:{}1\\", max_size=30))
def test_any_text_is_a_path_or_none(text):
    with suppress(PathError):
        parse_path(".a[" + text).find(FLAT)


def test_a_path_over_its_budget_says_so():
    with pytest.raises(PathTooCostly):
        parse_path("..x").find({"a": [0] * 20_000})


def test_tables_of_many_searching_columns_are_made_apart_sooner():
    maker = table._plain(lambda obj: "")
    weights = [table.Columns(({},), (maker,), list, searching=many).weight for many in (0, 200)]
    assert weights == [1, 201]
