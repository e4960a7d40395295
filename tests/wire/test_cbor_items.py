"""CBOR item by item: what is not well-formed, diagnostic notation (RFC 8949 section 8), keys that repeat."""

from __future__ import annotations

import pytest

from apimachinery.wire.cbor_items import diagnosed, first_repeated, form_fault

BREAK = 'cbor: unexpected "break" code'
INFORMATION = "cbor: invalid additional information {} for type {}"
LENGTH = "cbor: {} length {} is too large, causing integer overflow"
COUNT = "cbor: {} length {} is too large, it would cause integer overflow"
FLOAT = "cbor: data item of cbor type primitives is not accepted by protocol: floating-point {}"
BIGNUM = "cbor: data item of cbor type tag is not accepted by protocol: bignum"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        *((data, "unexpected EOF") for data in ["", *"19 1900 62 6261 83 9f 9f01 a1 a101 bf 5f".split()]),
        ("0000", "cbor: 1 bytes of extraneous data starting at index 1"),
        ("ff", BREAK),
        ("bf01ff", BREAK),
        ("83ff", BREAK),
        ("1c", INFORMATION.format(28, "positive integer")),
        ("1f", INFORMATION.format(31, "positive integer")),
        ("3f", INFORMATION.format(31, "negative integer")),
        ("df", INFORMATION.format(31, "tag")),
        ("fc", INFORMATION.format(28, "primitives")),
        ("f817", "cbor: invalid simple value 23 for type primitives"),
        ("f97e00", FLOAT.format("NaN")),
        ("fb7ff8000000000000", FLOAT.format("NaN")),
        ("fa7f800000", FLOAT.format("infinity")),
        ("81f9fc00", FLOAT.format("infinity")),
        ("c240", BIGNUM),
        ("81c340", BIGNUM),
        ("5f6161ff", "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
        ("7f4161ff", "cbor: wrong element type byte string for indefinite-length UTF-8 text string"),
        ("5f5f4161ffff", "cbor: indefinite-length byte string chunk is not definite-length"),
        ("7b8000000000000000", LENGTH.format("UTF-8 text string", 1 << 63)),
        ("5bffffffffffffffff", LENGTH.format("byte string", (1 << 64) - 1)),
        ("9b8000000000000000", COUNT.format("array", 1 << 63)),
        ("bbffffffffffffffff", COUNT.format("map", (1 << 64) - 1)),
        ("9a80000000", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
        ("ba00200001", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
    ],
)  # fmt: skip
def test_what_is_not_well_formed(data: str, fault: str) -> None:
    assert form_fault(bytes.fromhex(data)) == fault


@pytest.mark.parametrize("item", ["81", "c6", "9f", "a100", "bf00"])
def test_depth_is_bounded(item: str) -> None:
    ends = {"9f": b"\xff", "bf": b"\xff"}.get(item[:2], b"")
    for depth in (250, 251, 5000):
        fault = form_fault(bytes.fromhex(item) * depth + b"\0" + ends * depth)
        assert fault == (None if depth == 250 else "cbor: exceeded max nested level 250")


@pytest.mark.parametrize(
    ("data", "notation"),
    [
        ("00", "0"),
        ("1864", "100"),
        ("20", "-1"),
        ("3863", "-100"),
        ("f90000", "0.0"),
        ("fb3ff199999999999a", "1.1"),
        ("fa47c35000", "100000.0"),
        ("fb7e37e43c8800759c", "1.0e+300"),
        ("fb3eb0c6f7a0b5ed8d", "0.000001"),
        ("fb3e7ad7f29abcaf48", "1.0e-7"),
        ("fb441ac53a7e04bcda", "123456789012345680000.0"),
        ("fb444b1ae4d6e2ef50", "1.0e+21"),
        ("f4", "false"),
        ("f5", "true"),
        ("f6", "null"),
        ("f7", "undefined"),
        ("f0", "simple(16)"),
        ("f8ff", "simple(255)"),
        ("c11a514b67b0", "1(1363896240)"),
        ("40", "h''"),
        ("4161", "'a'"),
        ("4127", r"'\''"),
        ("43010203", r"'\u0001\u0002\u0003'"),
        ("420aff", "h'0aff'"),
        ("6449455446", '"IETF"'),
        ("62225c", r'"\"\\"'),
        ("630a0d09", r'"\n\r\t"'),
        ("62c3bc", r'"\u00fc"'),
        ("64f0908591", r'"\ud800\udd51"'),
        ("80", "[]"),
        ("83010203", "[1, 2, 3]"),
        ("a0", "{}"),
        ("a201020304", "{1: 2, 3: 4}"),
        ("9fff", "[_ ]"),
        ("bfff", "{_ }"),
        ("5fff", "''_"),
        ("7fff", '""_'),
        ("5f42616243636465ff", "(_ 'ab', 'cde')"),
        ("7f657374726561646d696e67ff", '(_ "strea", "ming")'),
        ("bf61610161629f0203ffff", '{_ "a": 1, "b": [_ 2, 3]}'),
        ("61ff", "61ff"),
    ],
)
def test_diagnostic_notation(data: str, notation: str) -> None:
    assert form_fault(bytes.fromhex(data)) is None
    assert diagnosed(bytes.fromhex(data)) == notation


@pytest.mark.parametrize(
    ("data", "repeated"),
    [
        ("a2616100616200", None),
        ("a2616100616101", (0, "a", 1)),
        ("a2416100616101", (0, "a", 1)),  # a byte string and a text string
        ("bf616100616200616101ff", (0, "a", 2)),
        ("a1616da2616100616101", (1, "a", 1)),
        ("a2616da2616100616101616d00", (0, "m", 1)),  # the outermost map is read first
        ("82a1616100a2616200616200", (1, "b", 1)),  # the same key in two maps is none
        ("c1a2616100616101", (0, "a", 1)),
        ("a27f61616162ff006261620a", (0, "ab", 1)),
        ("8361616161a0", None),
    ],
)
def test_keys_that_repeat(data: str, repeated: tuple[int, str, int] | None) -> None:
    assert form_fault(bytes.fromhex(data)) is None
    assert first_repeated(bytes.fromhex(data)) == repeated
