"""Property names as CEL identifiers: ``my-prop`` is ``my__dash__prop``, ``namespace`` is ``__namespace__``."""

from __future__ import annotations

import re

RESERVED = frozenset(
    "true false null in as break const continue else for function if import let loop package namespace return "
    "var void while".split()
)
_ESCAPED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_UNESCAPED = {text: plain for plain, text in _ESCAPED.items()}
_TO_ESCAPE = re.compile(r"__|[-./]")
_TO_UNESCAPE = re.compile("|".join(_UNESCAPED))
_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)


def escape(name: str) -> str | None:
    """The identifier for a property, or None if it has none."""
    if not name or name[0].isdigit():
        return None
    if name in RESERVED:
        return f"__{name}__"
    escaped = _TO_ESCAPE.sub(lambda found: _ESCAPED[found.group()], name)
    return escaped if _IDENTIFIER.fullmatch(escaped) else None


def unescape(identifier: str) -> str:
    """The property an identifier stands for."""
    if "__" not in identifier:
        return identifier
    if identifier.startswith("__") and identifier.endswith("__") and identifier[2:-2] in RESERVED:
        return identifier[2:-2]
    return _TO_UNESCAPE.sub(lambda found: _UNESCAPED[found.group()], identifier)
