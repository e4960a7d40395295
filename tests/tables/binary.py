"""CBOR: bytes to values and back. Lines that decode into a Go struct or a Go type of the test are no case of ours."""

from __future__ import annotations

from collections.abc import Iterator

from apimachinery.wire import cbor
from apimachinery.wire.json import DecodeFault

from .agreement import TEXT, VALUE, VERDICT, Answer, Line, Suite


def decoded(line: Line) -> Iterator[Answer]:
    """``out`` or ``err``; ``DecodeLax`` differs only in unknown fields of structs."""
    if line["op"] == "cbordec" and line["into"] != "*interface {}":
        return
    ours, error = None, None
    try:
        ours = cbor.decode(bytes.fromhex(line["in"]))
    except DecodeFault as fault:
        error = str(fault)
    yield Answer(VERDICT, line["err"] is not None, error is not None)
    yield Answer(TEXT, line["err"], error)
    if line["err"] is None and error is None:
        yield Answer(VALUE, line["out"], ours)
        if line.get("enc"):
            tagged = cbor.encode(ours).hex()
            yield Answer("bytes", line["enc"], tagged.removeprefix("d9d9f7"))


def encoded(line: Line) -> Iterator[Answer]:
    """Values of JSON's types to bytes."""
    if line["gotype"] in ("string", "[3]uint8"):
        yield Answer("bytes", line["out"], cbor.encode(line["in"]).hex().removeprefix("d9d9f7"))


SUITE = Suite("cbor", ("cbor.jsonl",), {"cbordec": decoded, "cbora": decoded, "cborenc": encoded})
