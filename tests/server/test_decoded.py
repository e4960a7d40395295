"""How the faults of bodies are worded, for each codec and family."""

from __future__ import annotations

import pytest

from apimachinery.server.catalog.family import BUILT_IN, CUSTOM, Family
from apimachinery.server.request.codecs import CBOR, JSON, YAML, Codecs, WireCodec
from apimachinery.server.request.decoded import decoded_as

PROTOBUF = next(codec for codec in Codecs() if "protobuf" in codec.media_type)
TWICE, STRANGER = 'duplicate field "a"', 'duplicate field "x"'
BODY = b'{"b":1,"x":1,"x":2,"a":1,"a":2}'
IN_ORDER = ['unknown field "b"', 'unknown field "x"', TWICE]
"""What follows the body; of structs, whose decoder has no place for x, and so none for it twice."""

UNKNOWN: list[tuple[WireCodec, Family, list[str]]] = [
    (JSON, BUILT_IN, IN_ORDER),
    (JSON, CUSTOM, [TWICE, STRANGER, 'unknown field "x"', 'unknown field "b"']),
    (YAML, BUILT_IN, [TWICE, 'unknown field "b"', 'unknown field "x"']),
    (YAML, CUSTOM, [TWICE, STRANGER, 'unknown field "x"', 'unknown field "b"']),
]


@pytest.mark.parametrize(("codec", "family", "texts"), UNKNOWN)
def test_duplicate_and_unknown_fields(codec: WireCodec, family: Family, texts: list[str]) -> None:
    decoded = decoded_as(codec, family)(BODY, [TWICE, STRANGER])
    assert decoded.unknown(["x", "b"]) == texts


def test_what_a_schema_drops_from_cbor_is_no_fault() -> None:
    body = CBOR.encode({"b": 1})
    assert decoded_as(CBOR, CUSTOM)(body).unknown(["b"]) == []
    assert decoded_as(CBOR, BUILT_IN)(body).unknown(["b"]) == [
        "cbor: found unknown field at map element index 0"
    ]


@pytest.mark.parametrize("family", [BUILT_IN, CUSTOM])
@pytest.mark.parametrize("codec", [JSON, YAML, CBOR, PROTOBUF])
def test_a_body_is_shown_and_its_kind_refused_as_by_its_decoder(codec: WireCodec, family: Family) -> None:
    value = {"kind": 1}
    decoded = decoded_as(codec, family)(CBOR.encode(value) if codec is CBOR else b'{"kind": 1}')
    shown = {YAML: '{"kind":1}', CBOR: "55799({'kind': 1})"}.get(codec, '{"kind": 1}')
    assert decoded.shown(value) == shown
    said = decoded.explain("json: cannot unmarshal number into Go struct field .kind of type string")
    prefix = {JSON: JSON, YAML: JSON, CBOR: CBOR}.get(codec, PROTOBUF).explain("")
    assert said.startswith(prefix) and (prefix or codec is PROTOBUF)
