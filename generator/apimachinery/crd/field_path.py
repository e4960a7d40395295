"""Paths to a field of a schema, as selectable fields and rules' ``fieldPath`` write them.

``.spec.a['b.c'].d``.

Source: apiextensions' ValidFieldPath: the text falls into ``.``, ``[``, ``]``, quoted strings and names
between them.
"""

from __future__ import annotations

from apimachinery.crd.form import Schema

_DELIMITERS = ".[]"
_ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class FieldPathError(ValueError):
    """A path that is malformed or leads nowhere; its text is what the API server says."""


def resolve_field_path(path: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema]:
    """The path as fields are shown (``spec.a[b]``) and the schema it leads to. Raises ``FieldPathError``."""
    tokens = iter(_tokens(path))
    shown = ""
    for token in tokens:
        if token == "[":
            if not brackets:
                raise FieldPathError("array notation is not allowed")
            quoted = _next(tokens)
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                raise FieldPathError(f"expected single quoted string but got {quoted}")
            name = _unescape(quoted[1:-1])
            shown, schema = _step(shown, schema, name)
            closing = _next(tokens)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
        elif token == ".":
            shown, schema = _step(shown, schema, _next(tokens))
        else:
            raise FieldPathError(f"expected [ or . but got: {token}")
    return shown, schema


def _next(tokens: object) -> str:
    token = next(tokens, None)  # type: ignore[call-overload]
    if token is None:
        raise FieldPathError("unexpected end of JSON path")
    return str(token)


def _step(shown: str, schema: Schema, name: str) -> tuple[str, Schema]:
    properties, additional = schema.get("properties"), schema.get("additionalProperties")
    if properties:
        if name in properties:
            return f"{shown}.{name}" if shown else name, properties[name]
    elif isinstance(additional, dict):
        return f"{shown}[{name}]", additional
    raise FieldPathError("does not refer to a valid field")


def _tokens(path: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(path):
        start = at
        if path[at] == "'":
            at += 1
            while at < len(path) and (path[at] != "'" or path[at - 1] == "\\"):
                at += 1
            at = min(at + 1, len(path))
        elif path[at] in _DELIMITERS:
            at += 1
        else:
            while at < len(path) and path[at] not in _DELIMITERS:
                at += 1
        tokens.append(path[start:at])
    return tokens


def _unescape(text: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
            if at >= len(text) or text[at] not in _ESCAPES:
                raise FieldPathError("invalid string literal: invalid syntax")
            char = _ESCAPES[text[at]]
        out.append(char)
        at += 1
    return "".join(out)
