"""A manifest of a kind to begin with: what is required, or the first fields where nothing is, as YAML."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from kubewright.tools.docs.reference import KindEntry, Row

_MAX_DEPTH = 8
_EMPTY = '""'
_PLAIN = {"integer": "0", "number": "0", "boolean": "false", "Quantity": '"1"', "Object": "{}"}
_LEFT_OUT = frozenset({"apiVersion", "kind", "metadata", "status"})


def skeleton(entry: KindEntry, entries: Mapping[str, KindEntry]) -> str:
    """The YAML of an object of ``entry``; ``entries`` has all types by their anchor."""
    lines = [f"apiVersion: {entry.api_version}", f"kind: {entry.name}", "metadata:", "  name: example"]
    rows = [row for row in entry.rows if row.name not in _LEFT_OUT]
    for row in rows:
        if row.required or row.name in ("spec", "data"):
            lines += _field(row, entries, "", 0)
    return "\n".join(lines) + "\n"


def _field(row: Row, entries: Mapping[str, KindEntry], indent: str, depth: int) -> Iterator[str]:
    kind = "".join(text for text, _ in row.type)
    facts = dict(row.facts)
    key = f"{indent}{_scalar(row.name)}:"
    inner = row.children or (entries[row.unfolds].rows if row.unfolds in entries else ())
    if "default" in facts:
        yield f"{key} {facts['default'][0]}"
    elif "one of" in facts:
        yield f"{key} {facts['one of'][0]}"
    elif kind.startswith("map"):
        yield f"{key} {{}}"
    elif inner and depth < _MAX_DEPTH:
        wanted = [each for each in inner if each.required] or list(inner[: 3 if depth == 0 else 0])
        if not wanted:
            yield f"{key} {'[]' if kind.startswith('[]') else '{}'}"
            return
        yield key
        below = [line for each in wanted for line in _field(each, entries, "", depth + 1)]
        if kind.startswith("[]"):
            yield f"{indent}- {below[0]}"
            yield from (f"{indent}  {line}" for line in below[1:])
        else:
            yield from (f"{indent}  {line}" for line in below)
    elif kind.startswith("[]"):
        yield f"{key} []"
    else:
        yield f"{key} {_PLAIN.get(kind, _EMPTY)}"


def _scalar(name: str) -> str:
    return (
        name if name.replace("-", "").replace("_", "").isalnum() and not name.isdigit() else json.dumps(name)
    )
