"""Quantities: parsing, canonical spelling, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.meta.quantity import canonical, parse_quantity

CANONICAL = {
    "1000m": "1",
    "0.5": "500m",
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "1500": "1500",
    "1E3": "1E3",
    "0.1Gi": "107374182400m",
    "0.5Ki": "512",
    "0Gi": "0",
    "100000": "100k",
    "-1k": "-1k",
    "0.1n": "1n",
    "1e19": "10e18",
    "20Ei": "9223372036854775807",
    "+2": "+2",
    "0012": "0012",
    "00100": "00100",
    ".": "0",
    "-": "0",
    "Ti": "0",
    ".5": "500m",
}


@pytest.mark.parametrize(("text", "expected"), CANONICAL.items())
def test_canonical(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1KiB", "0x10", "1,5", "9" * 200])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse_quantity(text)


@pytest.mark.parametrize("text", ["--1", "1e", "1kk", "1Kii", "1.5ni"])
def test_suffix_refused(text: str) -> None:
    with pytest.raises(ValueError, match="unable to parse quantity's suffix"):
        parse_quantity(text)


@settings(deadline=None)
@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi", "e2"]))
def test_canonical_keeps_the_value_and_is_its_own_canonical_form(number: int, suffix: str) -> None:
    text = f"{number}{suffix}"
    once = canonical(text)
    assert canonical(once) == once
    assert parse_quantity(once).value == parse_quantity(text).value
