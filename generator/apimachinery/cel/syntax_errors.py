"""The messages for a source that does not follow the grammar, worded as the generated parser of cel-go words them."""

from __future__ import annotations

from .lexer import LexError, Token


def syntax_issues(source: str, tokens: list[Token], lex_errors: list[LexError]) -> list[tuple[int, str]]:
    """(offset, message) of every syntax error."""
    found = [(e.offset, f"token recognition error at: '{e.text}'") for e in lex_errors]
    return found or [(tokens[-1].offset, "mismatched input '<EOF>'")]
