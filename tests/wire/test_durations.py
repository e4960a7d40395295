"""Durations as Go writes and prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire.durations import duration_text, nanoseconds


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0s", 0),
        ("15s", 15 * 10**9),
        ("1m30s", 90 * 10**9),
        ("1h0m0.5s", 3600 * 10**9 + 5 * 10**8),
        ("1.5ms", 1_500_000),
        ("2µs", 2000),
        ("7ns", 7),
        ("-1m0s", -60 * 10**9),
    ],
)
def test_texts_are_gos(text: str, amount: int) -> None:
    assert duration_text(amount) == text
    assert nanoseconds(text) == amount


@given(st.integers(-(2**63), 2**63 - 1))
def test_what_is_printed_is_read(amount: int) -> None:
    assert nanoseconds(duration_text(amount)) == amount


@pytest.mark.parametrize("text", ["", "5", "s", "1h5", "1 s", "1d", "--1s"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        nanoseconds(text)
