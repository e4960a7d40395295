"""What somebody typed: YAML as a value, and the line at which each of its fields is.

Fields are named as causes of a refusal name them (``spec.ports[0].port``) and as conflicts do
(``.spec.ports[port=80].name``): the page puts a message at the line of the longest part of its field that is there.
"""

from __future__ import annotations

from typing import Any

import yaml as pyyaml

from apimachinery.wire import yaml
from apimachinery.wire.json import DecodeFault

MOST_FIELDS = 50_000
_LOADER = getattr(pyyaml, "CSafeLoader", pyyaml.SafeLoader)
Json = dict[str, Any]


def read(text: str) -> Json:
    """``value`` and ``lines`` of a text, or ``fault`` with its line."""
    data = text.encode("utf-8", "surrogatepass")
    duplicates: list[str] = []
    try:
        value = yaml.decode(data, duplicates)
    except DecodeFault as fault:
        return {"fault": str(fault), "line": _fault_line(data)}
    lines: dict[str, int] = {}
    if "&" in text and len(text) > MOST_FIELDS:
        return {"value": value, "lines": lines, "duplicates": duplicates}  # aliases make nodes without end
    node = pyyaml.compose(data, Loader=_LOADER)
    if node is not None:
        _walk(node, "", lines, 0)
    return {"value": value, "lines": lines, "duplicates": duplicates}


def _fault_line(data: bytes) -> int:
    try:
        pyyaml.compose(data, Loader=_LOADER)
    except pyyaml.MarkedYAMLError as fault:
        mark = fault.problem_mark
        return mark.line + 1 if mark is not None else 1
    except (pyyaml.YAMLError, RecursionError, ValueError):
        pass
    return 1


def _walk(node: Any, field: str, lines: dict[str, int], depth: int) -> None:
    if len(lines) > MOST_FIELDS or depth > 100:
        return
    if isinstance(node, pyyaml.MappingNode):
        for key, value in node.value:
            name = str(key.value)
            at = f"{field}.{name}" if field else name
            lines.setdefault(at, key.start_mark.line + 1)
            _walk(value, at, lines, depth + 1)
    elif isinstance(node, pyyaml.SequenceNode):
        for index, item in enumerate(node.value):
            at = f"{field}[{index}]"
            lines.setdefault(at, item.start_mark.line + 1)
            _walk(item, at, lines, depth + 1)
