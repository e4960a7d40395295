"""Instants of RFC 3339: those that ``datetime`` knows, and the years before 1 and after 9999 that Go knows too."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.meta.times import instant, utc_text


@given(st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30), timezones=st.just(UTC)))
def test_instants_are_those_of_datetime(moment: datetime) -> None:
    found = instant(moment.isoformat(timespec="microseconds"))
    assert found is not None
    assert found == (int(moment.replace(microsecond=0).timestamp()), moment.microsecond * 1000)
    assert utc_text(found[0]) == moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00"),
        ("0000-01-01T00:00:00+01:00", "-0001-12-31T23:00:00"),
        ("0000-02-29T12:00:00Z", "0000-02-29T12:00:00"),
        ("9999-12-31T23:59:59-23:59", "10000-01-01T23:58:59"),
        ("2024-01-01T0:00:00Z", "2024-01-01T00:00:00"),
    ],
)
def test_years_beyond_those_of_datetime(text: str, shown: str) -> None:
    found = instant(text)
    assert found is not None
    assert utc_text(found[0]) == shown


@pytest.mark.parametrize(
    "text", ["", "2024", "2023-02-29T00:00:00Z", "0100-02-29T00:00:00Z", "2024-01-01T00:00:00"]
)
def test_what_names_no_instant(text: str) -> None:
    assert instant(text) is None
