"""Base64 in pieces is what one call makes of it, and is refused where one call or Go refuses it."""

from __future__ import annotations

import base64
import binascii
import random

import pytest

from apimachinery.meta import base64_parts
from apimachinery.meta.base64_parts import PIECE, decode_base64


def whole(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def in_pieces(text: str) -> bytes | None:
    try:
        return decode_base64(text)
    except ValueError:
        return None


def test_pieces_make_what_one_call_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base64_parts, "PIECE", 8)
    chance = random.Random(27)
    refused = 0
    for _ in range(20_000):
        text = base64.b64encode(chance.randbytes(chance.randrange(30))).decode()
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(text) + 1)
            text = (
                text[:at] + chance.choice(["=", "==", "A", "é", "-", " "]) + text[at + chance.randrange(2) :]
            )
        expected = None if len(text) % 4 else whole(text)
        refused += expected is None
        assert in_pieces(text) == expected, text
    assert 2_000 < refused < 18_000


def test_no_call_is_given_more_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    real = binascii.a2b_base64

    def counted(text: str, *, strict_mode: bool) -> bytes:
        given.append(len(text))
        return real(text, strict_mode=strict_mode)

    monkeypatch.setattr(binascii, "a2b_base64", counted)
    data = random.Random(27).randbytes(1_000_000)
    assert decode_base64(base64.b64encode(data).decode()) == data
    assert max(given) == PIECE and len(given) == 21
