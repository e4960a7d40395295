"""One field that a spec gains is a few lines in the data files made of it, wherever it is."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.compiler.emit.test_shapes import crd, record

from kubewright.config import Package, PathSource
from kubewright.emit.code.json_lines import json_lines
from kubewright.pipeline import build

TEXT = {"type": "string", "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}


def cups(**added: Any) -> dict[str, Any]:
    names = [f"field{number}" for number in range(12)]
    deep = record(**dict.fromkeys(names, TEXT), **added)
    items = {"type": "array", "items": record(**{name: {"type": "string"} for name in names})}
    inner = record(deep=deep, items=items)
    return crd(v1=record(inner=inner, **dict.fromkeys(names, TEXT)))


def files(spec: dict[str, Any], folder: Path) -> dict[str, list[str]]:
    source = folder / "cups.yaml"
    source.write_text(yaml.safe_dump(spec, sort_keys=False))
    package = Package(name="cups_api", sources=(PathSource(source),), only=("definitions", "merge_schema"))
    built = build(package, folder / "cups_api")
    assert not built.diagnostics.has_errors
    return {path: content.decode().splitlines() for path, content in built.tree.files.items()}


@pytest.mark.parametrize("given", [TEXT, record(name=TEXT, port={"type": "integer"})], ids=["text", "object"])
def test_an_added_field_is_a_few_lines(given: dict[str, Any], tmp_path: Path) -> None:
    old, new = files(cups(), tmp_path), files(cups(added=given), tmp_path)
    for path in ("definitions.json", "example_v1/merge_schema.py"):
        changed = [line for line in difflib.ndiff(old[path], new[path]) if line[0] in "+-"]
        assert 0 < len(changed) <= 10, (path, changed)
        assert max(map(len, new[path])) <= 160


def test_json_on_lines_is_the_same_json() -> None:
    value = {"a": [{"b": "é" * 70, "c": ["x" * 60] * 3}, {}], "d": None, "e": [], "f": {"g": 1.5, "h": True}}
    for ascii_only in (False, True):
        text = json_lines(value, ascii_only=ascii_only)
        assert json.loads(text) == value
        assert text.isascii() is ascii_only
    assert json_lines({"short": [1, 2]}) == '{"short": [1, 2]}'
