"""The linked API as stable YAML: what ``--dump-ir`` prints, for people and for diffs.

Everything that is at its default is left out; places are written as text.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, get_args

from kubewright.ir.api import Api
from kubewright.ir.types import Json, Type
from kubewright.location import Location

_STEERING = re.compile("[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Marks of the reading direction, which YAML counts as printable, and separators of lines."""


def dump(api: Api) -> str:
    """``api`` as one YAML document, on a terminal too: text with marks that steer it is quoted and has them escaped."""
    import yaml

    class Dumper(yaml.CSafeDumper):
        pass

    def quoted(dumper: Any, text: str) -> Any:
        style = '"' if _STEERING.search(text) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, quoted)
    text: str = yaml.dump(
        {
            "api": api.name,
            "definitions": [_plain(d) for d in api.definitions],
            "resources": [_plain(r) for r in api.resources],
        },
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=110,
        explicit_start=True,
    )
    return _STEERING.sub(lambda mark: f"\\u{ord(mark.group()):04x}", text)


def _plain(node: Any) -> Json:
    if isinstance(node, Location):
        return f"{node.file}:{node.line}:{node.column}#{node.pointer}" if node.line else str(node)
    if isinstance(node, Enum):
        return node.value
    if is_dataclass(node) and not isinstance(node, type):
        written: dict[str, Json] = {}
        if type(node).__module__ == "kubewright.ir.types" and type(node).__name__ in _TYPE_NODES:
            written["is"] = type(node).__name__
        for item in fields(node):
            value = getattr(node, item.name)
            default = item.default if item.default is not MISSING else MISSING
            if item.default_factory is not MISSING:
                default = item.default_factory()
            if default is MISSING or value != default:
                written[item.name] = _plain(value)
        return written
    if isinstance(node, tuple | list):
        return [_plain(item) for item in node]
    if isinstance(node, dict):
        return {key: _plain(item) for key, item in node.items()}
    return node


_TYPE_NODES = frozenset(node.__name__ for node in get_args(Type))
