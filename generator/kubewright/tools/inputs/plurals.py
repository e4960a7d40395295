"""The plural of a kind if nobody says it."""

from __future__ import annotations

import re


def plural_of(kind: str) -> str:
    """The plural of a kind, in lower case, by the rules that English mostly keeps to."""
    word = kind.lower()
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return f"{word}s"
