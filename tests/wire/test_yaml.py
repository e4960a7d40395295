"""YAML bodies: the rules of YAML 1.1, and hostile documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire.json import DecodeFault
from apimachinery.wire.yaml import decode, encode

SCALARS = {
    "y": True,
    "n": False,
    "On": True,
    "off": False,
    "yES": "yES",
    "010": 8,
    "0o10": 8,
    "0x1F": 31,
    "0b11": 3,
    "08": 8,
    "1_000": 1000,
    "1e3": 1000,
    "1.5": 1.5,
    ".5": 0.5,
    "1:30": "1:30",
    "2020-01-01": "2020-01-01",
    "~": None,
    "null": None,
    "'y'": "y",
    '"010"': "010",
    "!!str 1": "1",
    "!!int '7'": 7,
    "!!binary aGk=": "hi",
    "-": [None],
    "+1": 1,
    "v1": "v1",
    "1.2.3": "1.2.3",
}


@pytest.mark.parametrize("text", SCALARS)
def test_scalar(text: str) -> None:
    assert decode(text.encode()) == SCALARS[text]


DOCUMENTS = {
    "a: &x {e: 1}\nb: *x": {"a": {"e": 1}, "b": {"e": 1}},
    "a: &x {e: 1, h: 3}\ng: {<<: *x, h: 2}": {"a": {"e": 1, "h": 3}, "g": {"h": 2, "e": 1}},
    "1: z\ntrue: q\nnull: r\n1.5: s": {"1": "z", "true": "q", "null": "r", "1.5": "s"},
    "a: 1\n---\nb: 2": {"a": 1},
    "a: =\nb: <<\n=: 1": {"a": "=", "b": "<<", "=": 1},
    "": None,
    "# nothing\n": None,
}


@pytest.mark.parametrize("text", DOCUMENTS)
def test_document(text: str) -> None:
    assert decode(text.encode()) == DOCUMENTS[text]


def test_aliases_do_not_share() -> None:
    value = decode(b"a: &x {e: [1]}\nb: *x")
    value["a"]["e"].append(2)
    assert value["b"] == {"e": [1]}


def test_duplicates_are_told() -> None:
    told: list[str] = []
    assert decode(b"a: 1\nb: 2\na: 3\n", told) == {"a": 3, "b": 2}
    assert told == ['line 3: key "a" already set in map']


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (new, new, b",".join([b"*%c" % old] * 10))
    for old, new in zip(b"abcdefgh", b"bcdefghi", strict=False)
)
FAULTS = {
    b"apiVersion: v1\nkind: X\n  metadata: x: y\n": "yaml: line 3: mapping values are not allowed in this context",
    b"a: [1,\nb: 2": "yaml: line 2: did not find expected ',' or ']'",
    b"a: *nope": "yaml: unknown anchor 'nope' referenced",
    b"a: \xff": "yaml: invalid leading UTF-8 octet",
    b"a: .nan": "json: unsupported value: NaN",
    BOMB: "yaml: document contains excessive aliasing",
    b"[" * 5_000: "yaml: exceeded max depth",
    b"a: &x [*x]": "yaml: unknown anchor 'x' referenced",
}


@pytest.mark.parametrize("data", FAULTS)
def test_fault(data: bytes) -> None:
    with pytest.raises(DecodeFault) as fault:
        decode(data)
    assert str(fault.value) == FAULTS[data]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["a", "b", "y", "1"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_round_trip(value: object) -> None:
    assert decode(encode(value)) == value


def test_the_escaped_slash_of_json_is_refused_as_go_does() -> None:
    assert decode(rb'a: "x\\/y"') == {"a": "x\\/y"}
    with pytest.raises(DecodeFault, match=r"^yaml: line 3: found unknown escape character$"):
        decode(b'b: 1\na: "x\n  \\/y"\n')
