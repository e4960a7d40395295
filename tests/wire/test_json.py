"""JSON bodies: good ones read, bad ones explained as Go's decoder does."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire import json as wire
from apimachinery.wire import json_parts
from apimachinery.wire.json import (
    DecodeFault,
    copied_as_go,
    decode,
    elements,
    encode,
    encode_as_go,
    encode_in_steps,
    syntax_fault,
    with_go_numbers,
)

FAULTS = {
    b"": "unexpected end of JSON input",
    b'{"a":{': "unexpected end of JSON input",
    b'{"a":1}x': "invalid character 'x' after top-level value",
    b"not json": "invalid character 'o' in literal null (expecting 'u')",
    b"some": "invalid character 's' looking for beginning of value",
    b'{"a":tru}': "invalid character '}' in literal true (expecting 'e')",
    b'["\\q"]': "invalid character 'q' in string escape code",
    b'{"a" 1}': "invalid character '1' after object key",
    b"[1,]": "invalid character ']' looking for beginning of value",
    b"[1 2]": "invalid character '2' after array element",
    b'{"a":1 "b"': "invalid character '\"' after object key:value pair",
    b"{a:1}": "invalid character 'a' looking for beginning of object key string",
    b"[01]": "invalid character '1' after array element",
    b"[1.]": "invalid character ']' after decimal point in numeric literal",
    b'["\n"]': "invalid character '\\n' in string literal",
    b"[" * 20_000: "exceeded max depth",
}


@pytest.fixture(params=["short", "long"])
def length(request, monkeypatch):
    """As a short document is read, and as one that is read in parts."""
    if request.param == "long":
        monkeypatch.setattr("apimachinery.wire.json_parts.STEP_BYTES", 4)
        monkeypatch.setattr("apimachinery.wire.json.LARGE_BYTES", -1)


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("data", FAULTS)
def test_fault(data: bytes) -> None:
    with pytest.raises(DecodeFault) as fault:
        decode(data)
    assert str(fault.value) == FAULTS[data]


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize(
    ("data", "value"), [(b'"\xff"', "�"), (b'"\\ud800x"', "�x"), (b'{"a":1,"a":2}', {"a": 2})]
)
def test_lenient(data: bytes, value: object) -> None:
    assert decode(data) == value


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES)
def test_good_documents_have_no_fault(value: object) -> None:
    data = json.dumps(value).encode("utf-8", "replace")
    assert syntax_fault(data) == ""


@given(VALUES, st.integers(0, 200), st.binary(min_size=1, max_size=2))
def test_scanner_and_decoder_agree(value: object, place: int, noise: bytes) -> None:
    data = json.dumps(value, ensure_ascii=True).encode()
    place %= len(data)
    data = data[:place] + noise + data[place:]
    try:
        decode(data)
    except DecodeFault:
        return
    assert syntax_fault(data) == ""


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_what_is_encoded_in_steps_is_what_is_encoded(value: dict) -> None:
    assert encode_in_steps(value) == encode(value)


def test_long_values_are_encoded_in_steps() -> None:
    long = {f"k{number}": [number] for number in range(5_001)}
    for value in (long, list(long.values()), {"a": {"b": long}}, [[long, {}], []], 1, "a", {}, None):
        assert encode_in_steps(value) == encode(value)


def test_large_members_are_encoded_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty thousand containers made one call of 80 ms, in which no other thread ran."""
    sizes: list[int] = []

    def noted(value: object) -> bytes:
        sizes.append(len(made := encode(value)))
        return made

    members = {f"k{number}": {"a": "x" * 2_000} for number in range(3_000)}
    expected = encode(members), encode([*members.values()])
    monkeypatch.setattr(wire, "encode", noted)
    assert (encode_in_steps(members), encode_in_steps([*members.values()])) == expected
    assert max(sizes) <= 2 * wire.STEP_BYTES


def test_numbers_of_large_documents_are_sought_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []

    def sought(data: bytes, low: int = 0, high: int = sys.maxsize) -> None:
        parts.append(min(high, len(data)) - low)

    monkeypatch.setattr(wire, "_FLOAT_AFTER", (sought,) * 3)
    with_go_numbers(encode({"a": ["b"] * 500_000}))
    assert max(parts) <= 2 * wire.STEP_BYTES


NUMBERS = st.from_regex(r"\A-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?\Z")
WRITTEN = VALUES.map(lambda value: json.dumps(value).encode()) | VALUES.map(encode) | NUMBERS.map(str.encode)


@given(WRITTEN, st.integers(0, 200), st.binary(max_size=2))
def test_a_long_document_is_read_as_a_short_one(data: bytes, place: int, noise: bytes) -> None:
    place %= len(data) + 1
    data = data[:place] + noise + data[place:]

    def outcome() -> tuple[str, object]:
        try:
            value = decode(data)
        except DecodeFault as fault:
            return type(fault).__name__, str(fault)
        return type(value).__name__, repr(value)

    short = outcome()
    with pytest.MonkeyPatch.context() as long:
        long.setattr("apimachinery.wire.json.LARGE_BYTES", -1)
        for few, size in ((1, 1), (1, 3), (2, 8), (9, 40)):
            long.setattr("apimachinery.wire.json_parts._FEW_BYTES", few)
            long.setattr("apimachinery.wire.json_parts.STEP_BYTES", size)
            assert outcome() == short


DENSE: dict[str, object] = {
    "an array in objects": {"metadata": {"name": "x"}, "data": {"a": [[] for _ in range(100_000)]}},
    "objects of some members": [{"a": 1, "b": "x"} for _ in range(20_000)],
    "nested objects": {"d": [{"a": {"b": [1, 2], "c": {"d": 3}, "e": 5}, "f": 6} for _ in range(8_000)]},
    "a map": {f"k{n}": n for n in range(50_000)},
    "commas in texts": {"d": [",],},"] * 60_000, "e": ["},\\", '],"'] * 30_000},
    "a small member before a large one": {**dict.fromkeys(map(str, range(300)), 1), "z": [[[], []]] * 40_000},
}


@pytest.mark.parametrize("name", DENSE)
def test_no_part_that_is_read_at_once_is_large(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def part(data: bytes) -> object:
        sizes.append(len(data))
        return read(data)

    read = json_parts._decode
    monkeypatch.setattr(json_parts, "_decode", part)
    assert decode(encode(DENSE[name])) == DENSE[name]
    assert len(sizes) > 1 and max(sizes) <= json_parts.STEP_BYTES + 100


@pytest.mark.parametrize("size", [1, 7, 100, 1 << 20])
@given(st.lists(st.dictionaries(st.sampled_from((",{", "a", "[{}]")), VALUES, max_size=3), max_size=8))
def test_the_elements_of_an_array_are_found_in_parts(size: int, items: list[dict]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("apimachinery.wire.json.ELEMENTS_BYTES", size)
        count, found = elements(b",".join(map(encode, items)))
        assert (count, [*found]) == (len(items), items)
        with pytest.raises(DecodeFault):
            elements(b'{"a":1},{"a":[{},{}')


NUMBERS = (
    st.floats()
    | st.integers(-(2**66), 2**66)
    | st.sampled_from([2**63, 2**64, -(2**63) - 1, 1e21, 1e-7, 0.0])
)
VALUES = st.recursive(
    NUMBERS | st.text() | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(VALUES, st.integers(1, 40))
def test_numbers_are_the_same_wherever_a_document_is_parted(value: object, size: int) -> None:
    try:
        data = encode(value)
    except OverflowError:
        return
    whole = with_go_numbers(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "STEP_BYTES", size)
        assert with_go_numbers(data) == whole


@given(VALUES)
def test_numbers_are_sought_only_where_there_may_be_some(value: object) -> None:
    try:
        expected = with_go_numbers(encode(value))
    except OverflowError:
        return
    assert encode_as_go(value) == expected


@given(VALUES)
def test_a_copy_is_what_the_document_says(value: object) -> None:
    try:
        expected = decode(encode_as_go(value))
    except OverflowError:
        with pytest.raises(OverflowError):
            copied_as_go(value)
        return
    assert repr(copied_as_go(value)) == repr(expected)
