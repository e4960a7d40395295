"""JSON that people read in diffs: what is short is on one line, of anything longer each member is on its own."""

from __future__ import annotations

import json

from kubewright.ir.types import Json

_WIDTH = 120


def json_lines(value: Json, level: int = 0, *, ascii_only: bool = False) -> str:
    """``value`` as JSON, of which all lines but the first are indented by ``level`` spaces or more."""
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=ascii_only)}: {json_lines(item, level + 1, ascii_only=ascii_only)}"
            for key, item in value.items()
        ]
        opening, closing = "{", "}"
    elif isinstance(value, list | tuple):
        parts = [json_lines(item, level + 1, ascii_only=ascii_only) for item in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, ensure_ascii=ascii_only)
    flat = f"{opening}{', '.join(parts)}{closing}"
    if not parts or (len(flat) <= _WIDTH and "\n" not in flat):
        return flat
    start = "\n" + " " * (level + 1)
    return f"{opening}{start}{f',{start}'.join(parts)}\n{' ' * level}{closing}"
