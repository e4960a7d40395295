"""``fieldPath`` of a rule: a path of fields and keys, ``.spec.x['a key']``, below the rule's own schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_TOKEN = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]]+", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class RulePathError(ValueError):
    """A path that is none, or leads to nothing."""


def _unquote(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise RulePathError(f"expected single quoted string but got {token}")

    def one(found: re.Match[str]) -> str:
        plain = _SIMPLE.get(found.group()[1])
        if plain is None:
            raise RulePathError(f"invalid escape char {found.group()}")
        return plain

    return re.sub(r"\\.", one, token[1:-1], flags=re.DOTALL)


def read_field_path(path: str, schema: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """The pieces of ``path`` as (name, is a map key). Raises PathError."""
    tokens = _TOKEN.findall(path)
    pieces: list[tuple[str, bool]] = []
    at = 0
    while at < len(tokens):
        opening = tokens[at]
        if opening not in (".", "["):
            raise RulePathError(f"expected [ or . but got: {opening}")
        if at + 1 >= len(tokens):
            raise RulePathError("unexpected end of JSON path")
        name = _unquote(tokens[at + 1]) if opening == "[" else tokens[at + 1]
        properties, values = schema.get("properties"), schema.get("additionalProperties")
        if properties is not None:
            schema = properties.get(name)
            if not isinstance(schema, Mapping):
                raise RulePathError("does not refer to a valid field")
            pieces.append((name, False))
        elif isinstance(values, Mapping):
            schema = values
            pieces.append((name, True))
        else:
            raise RulePathError("does not refer to a valid field")
        at += 2
        if opening == "[":
            if at >= len(tokens):
                raise RulePathError("unexpected end of JSON path")
            if tokens[at] != "]":
                raise RulePathError(f"expected ] but got {tokens[at]}")
            at += 1
    return pieces


def show_path(pieces: list[tuple[str, bool]]) -> str:
    """The pieces as a field path."""
    text = ""
    for name, is_key in pieces:
        text += f"[{name}]" if is_key else f".{name}" if text else name
    return text
