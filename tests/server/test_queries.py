"""Query parameters and escapes: what is read in parts must be what is read whole."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.http.queries import parse_query, unescaped, values_of

PIECES = ["watch", "w", "atch", "a", "=", "&", "%77", "%61", "%", "%2", "%zz", "+", ";", "1", "false"]
PIECES += ["%26", "%3D", "%3b", "%C3%A9", "%ff", "%4a%4B"]
QUERIES = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(QUERIES)
def test_values_that_are_searched_for_are_those_that_are_parsed(text):
    assert list(values_of(text, "watch")) == parse_query(text).get("watch", [])


@given(QUERIES)
def test_long_values_are_empty_and_nothing_else_changes(text):
    whole, short = list(values_of(text, "watch")), list(values_of(text, "watch", 4))
    assert len(whole) == len(short)
    assert all(cut in (full, "") for full, cut in zip(whole, short, strict=True))


@given(QUERIES)
def test_escapes_are_what_the_standard_library_reads(text):
    assert unescaped(text.encode()) == unquote(text, errors="replace")


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("watch=1&watch=2", ["1", "2"]),
        ("w%61tch=1", ["1"]),
        ("%57atch=1", []),
        ("watch", [""]),
        ("awatch=1&watcha=2&watch%3D=3", []),
        ("watch=%zz&watch=1", ["1"]),
        ("watch=a;b&watch=1", ["1"]),
        ("watch=a=b", ["a=b"]),
    ],
)
def test_one_name_is_found_however_it_is_written(text, values):
    assert list(values_of(text, "watch")) == values
