"""CBOR: JSON values there and back, and faults for what JSON has no word for."""

from __future__ import annotations

import contextlib
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire import cbor
from apimachinery.wire.cbor_faults import unknown_place
from apimachinery.wire.json import DecodeFault

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8) | st.floats(0.1, 0.9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=15,
)


@given(JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    data = cbor.encode(value)
    assert data.startswith(b"\xd9\xd9\xf7")
    assert cbor.decode(data) == value


@given(JSON)
def test_text_strings_and_no_tag_are_read_too(value: Any) -> None:
    assert cbor.decode(cbor2.dumps(value)) == value


@given(st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_fault(data: bytes) -> None:
    with contextlib.suppress(DecodeFault):
        cbor.decode(data)


def test_a_whole_float_is_an_integer_as_in_json() -> None:
    assert repr(cbor.decode(cbor2.dumps({"f": 2.0, "g": 1.5}))) == "{'f': 2, 'g': 1.5}"


REFUSED = "cbor: data item of cbor type"
NOT_TAKEN = "is not accepted by protocol"
FAULTS = [
    ("nothing", b"", "EOF"),
    ("cut short", bytes.fromhex("d9d9f7a1"), "unexpected EOF"),
    ("a break alone", bytes.fromhex("ff00"), 'cbor: unexpected "break" code'),
    ("two values", bytes.fromhex("a000"), "cbor: 1 bytes of extraneous data starting at index 1"),
    (
        "a key that is no string",
        bytes.fromhex("a10102"),
        "cbor: cannot unmarshal positive integer into Go value of type string",
    ),
    ("a text string that is no text", bytes.fromhex("61ff"), "cbor: invalid UTF-8 string"),
    (
        "a key twice",
        bytes.fromhex("a2416101416102"),
        'cbor: found duplicate map key "a" at map element index 1',
    ),
    (
        "a key twice in two ways",
        bytes.fromhex("a2416101616102"),
        'cbor: found duplicate map key "a" at map element index 1',
    ),
    (
        "a number that is none",
        bytes.fromhex("f97e00"),
        f"{REFUSED} primitives {NOT_TAKEN}: floating-point NaN",
    ),
    (
        "a number without end",
        bytes.fromhex("a14161f97c00"),
        f"{REFUSED} primitives {NOT_TAKEN}: floating-point infinity",
    ),
    ("a big number", bytes.fromhex("c249010000000000000000"), f"{REFUSED} tag {NOT_TAKEN}: bignum"),
    (
        "undefined",
        bytes.fromhex("f7"),
        f"{REFUSED} primitives {NOT_TAKEN}: simple value 23 is not recognized",
    ),
    (
        "more than 64 bits hold",
        bytes.fromhex("1bffffffffffffffff"),
        "cbor: cannot unmarshal positive integer into Go value of type int64 "
        "(18446744073709551615 overflows Go's int64)",
    ),
    (
        "a time that is none",
        bytes.fromhex("c06474657874"),
        'cbor: cannot set text for time.Time: parsing time "text" as "2006-01-02T15:04:05Z07:00": '
        'cannot parse "text" as "2006"',
    ),
]


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
        ("c11a43b940e5", "2006-01-02T15:04:05Z"),
        ("c1fb41d452d9ec200000", "2013-03-21T20:04:00.5Z"),
        ("c120", "1969-12-31T23:59:59Z"),
        ("d64401020304", "AQIDBA=="),
        ("d7420aff", "0aff"),
        ("c5822003", [-1, 3]),
        ("d87b6161", "a"),
        ("42abcd", "\ufffd\ufffd"),
    ],
)
def test_tags_and_bytes_become_json(data: str, value: Any) -> None:
    assert cbor.decode(bytes.fromhex(data)) == value


@pytest.mark.parametrize(("data", "text"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_faults_are_worded(data: bytes, text: str) -> None:
    with pytest.raises(DecodeFault) as caught:
        cbor.decode(data)
    assert str(caught.value) == text


def test_deep_nesting_and_endless_lengths_are_refused() -> None:
    for data in (
        b"\x81" * 100_000 + b"\x00",
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x5b\x00\x00\x00\xff\xff\xff\xff\xff",
    ):
        with pytest.raises(DecodeFault):
            cbor.decode(data)


@pytest.mark.parametrize("count", [199, 200, 255, 256, 65_536])
def test_long_lists_are_written_as_short_ones_are(count, monkeypatch):
    """Items go to the encoder one by one; what comes out is the same."""
    value = {
        "kind": "List",
        "apiVersion": "v1",
        "metadata": {"b": 1, "aa": "ü"},
        "items": [{"n": n} for n in range(count)],
    }
    data = cbor.encode(value)
    monkeypatch.setattr(cbor, "MANY_ITEMS", 1 << 40)
    assert data == cbor.encode(value)
    assert cbor.decode(data) == value


@pytest.mark.parametrize(
    ("value", "dropped", "place"),
    [
        ({"kind": "A", "": 1}, [""], 0),
        ({"a": {"": 2, "b": 1}}, ["a."], 0),
        ({"": {"x": 1}}, [".x"], 0),
        ({"a.b": {"c": 1, "d[0]": 2}}, ["a.b.d[0]"], 1),
        ({"a": [{"b": 1}, {"c": 1, "x": 2}]}, ["a[1].x"], 1),
        ({"a": [[{"": [1]}]]}, ["a[0][0].[0]"], 0),
        ({"a": 1}, ["not.there"], 0),
    ],
)
def test_the_unknown_field_is_found_whatever_it_is_called(value, dropped, place):
    assert unknown_place(cbor.encode(value), dropped) == place
