"""Texts as Go prints them."""

from __future__ import annotations


def go_quote(text: str) -> str:
    """``text`` as Go's %q prints it."""
    simple = {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
        "\\": "\\\\", '"': '\\"',
    }  # fmt: skip

    def one(char: str) -> str:
        if char in simple:
            return simple[char]
        if char.isprintable():
            return char
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(map(one, text))}"'
