"""Files of a group that are edited: read with their text, entries put at the end of a list or mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.source.text import read_single
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.scaffold.writing import FilePlan, RefusedError, says


def read(path: Path) -> tuple[Any, str]:
    """Value and text of a file of one document; faults of it are a refusal."""
    diagnostics = Diagnostics()
    document = read_single(path, diagnostics)
    if document is None or diagnostics.has_errors:
        raise RefusedError("\n".join(map(str, diagnostics)))
    return document.value, path.read_bytes().decode()


def insert(path: Path, text: str, key: str, mark: str, entries: list[str], wanted: Any) -> str:
    """``text`` with entries at the end of the list or mapping under its top-level ``key``, in block style. What it
    says then must be ``wanted``, else ``RefusedError``."""
    if not entries:
        return text
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(node, yaml.MappingNode)
    held = next(value for name, value in node.value if name.value == key)
    lines = text.splitlines(keepends=True)
    end = min(held.end_mark.line, len(lines))
    while end > held.start_mark.line + 1 and (
        not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")
    ):
        end -= 1
    if not lines[end - 1].endswith("\n"):
        lines[end - 1] += "\n"
    indent = " " * held.start_mark.column
    below = f"\n{indent}{' ' * len(mark)}"
    added = (f"{indent}{mark}{entry.replace(chr(10), below)}\n" for entry in entries)
    result = "".join([*lines[:end], *added, *lines[end:]])
    if not says(result, wanted):
        raise RefusedError(
            f"{path}: cannot edit {key} line by line", "write it in block style, without anchors"
        )
    return result


def place_of(path: Path, pointer: str) -> str:
    """``file:line:column`` of a value of a file that can be read."""
    document = read_single(path, Diagnostics())
    return str(path) if document is None else str(document.at(pointer))


def replaced(plan: FilePlan, path: Path, old: Any, text: str, new: Any) -> None:
    """Adds the edit by which ``path`` says ``new``, with comments and order kept. Raises ``RefusedError``."""
    edited = rewrite(text, old, new)
    if not edited.kept:
        raise RefusedError(
            f"{path}: it is written in a way that cannot be edited line by line",
            "write it in block style, without anchors",
        )
    plan.edit(path, text, edited.text)


def group_versions(folder: Path) -> set[tuple[str, str]]:
    """The group-versions of the CRDs of a folder."""
    pairs = set()
    for path in (folder / "crds").glob("*.yaml"):
        value, _ = read(path)
        try:
            pairs |= {(value["spec"]["group"], each["name"]) for each in value["spec"]["versions"]}
        except (KeyError, TypeError):
            continue
    return {(g, v) for g, v in pairs if isinstance(g, str) and isinstance(v, str)}
