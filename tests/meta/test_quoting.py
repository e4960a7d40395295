"""Strings in messages are quoted as Go's ``%q`` does, however long they are."""

from __future__ import annotations

import pytest

from apimachinery.meta.printing import go_quote

QUOTED = {
    "": '""',
    "a": '"a"',
    'a"b\\c': r'"a\"b\\c"',
    "a'/<>&é😀": '"a\'/<>&é😀"',
    "\a\b\f\n\r\t\v": r'"\a\b\f\n\r\t\v"',
    "\x00\x1b\x7f": r'"\x00\x1b\x7f"',
    "\x85\xa0\u200b\u2028\ufeff": r'"\u0085\u00a0\u200b\u2028\ufeff"',
    "\U000e0001": r'"\U000e0001"',
}


@pytest.mark.parametrize("text", QUOTED)
def test_quoted(text: str) -> None:
    assert go_quote(text) == QUOTED[text]


def test_a_string_is_quoted_as_its_characters_are() -> None:
    """What is printable is quoted in another way than the rest: both escape the same."""
    characters = [chr(code) for code in (*range(0x3000), *range(0xD7F0, 0xE010), *range(0x1F5F0, 0x1F610))]
    assert go_quote("".join(characters)) == f'"{"".join(go_quote(char)[1:-1] for char in characters)}"'
