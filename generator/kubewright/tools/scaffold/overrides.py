"""``hooks.py`` next to the generated modules of a group-version: what no rule can say about a kind.

``kubewright generate`` leaves the file alone, so that scaffold can put it there before anything is generated. A further
version begins with the behaviour of the one it copies, by import: what is checked of one is checked of the other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from kubewright.config import FILE_NAME, PathSource, read_config
from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.names import module_names
from kubewright.emit.code.render import render
from kubewright.source.text import read_single
from kubewright.tools.scaffold.writing import FilePlan

FILE = "hooks.py"
_TABLE = "HOOKS"


@dataclass(frozen=True, slots=True)
class GeneratedFolder:
    """The folder of the package that is generated of a group, and the module of each of its group-versions."""

    folder: Path
    modules: dict[tuple[str, str], str]

    def hooks(self, group: str, version: str) -> Path:
        """The path of a group-version's ``hooks.py``."""
        return self.folder / self.modules[group, version] / FILE


def find_package(folder: Path, group_versions: set[tuple[str, str]]) -> GeneratedFolder | None:
    """The package whose sources are ``folder/crds``; ``None`` where ``kubewright.yaml`` names none."""
    diagnostics = Diagnostics()
    path = folder / FILE_NAME
    document = read_single(path, diagnostics) if path.is_file() else None
    config = read_config(document, folder, diagnostics) if document is not None else None
    crds = (folder / "crds").resolve()
    for package in config.packages if config is not None else ():
        paths = [source.path.resolve() for source in package.sources if isinstance(source, PathSource)]
        if config is not None and crds in paths:
            target = config.output.joinpath(*package.name.split("."))
            base = folder.resolve()
            shown = folder / target.relative_to(base) if target.is_relative_to(base) else target
            return GeneratedFolder(shown, module_names(group_versions))
    return None


def add_kind(
    plan: FilePlan, package: GeneratedFolder, kind: str, group: str, version: str, copied: str = ""
) -> None:
    """Puts an entry of ``kind`` into the version's ``hooks.py``, which is made where there is none. ``copied`` is the
    version whose behaviour it begins with, where that has any. A file that cannot be edited is left as it is."""
    place = package.hooks(group, version)
    former = package.hooks(group, copied) if copied else place
    value, line = "Hooks()", ""
    if copied and former.is_file() and kind in (_entries(former.read_text(encoding="utf-8")) or ()):
        module = package.modules[group, copied]
        value, line = f'{module.upper()}["{kind}"]', f"from ..{module}.hooks import HOOKS as {module.upper()}"
    before = place.read_bytes().decode() if place.is_file() else ""
    if before and kind in (_entries(before) or ()):
        return
    after = add_entry(before or render("scaffold_hooks", group=group, version=version), kind, value, line)
    if after is None:
        plan.notes.append(f"{place} was not edited: add {kind} to {_TABLE} yourself if it needs hooks")
    elif before:
        plan.edits[place] = (before, after)
    else:
        plan.new[place] = after


def add_entry(text: str, kind: str, value: str, line: str) -> str | None:
    """``text`` of a module with ``"kind": value`` at the end of its table, and ``line`` among its imports; ``None``
    where the table is not written as a dict display that closes on a line of its own."""
    table = _table(text)
    if table is None or kind in (_entries(text) or ()) or table.end_lineno is None:
        return None
    lines = text.splitlines(keepends=True)
    close = table.end_lineno - 1
    if lines[close].strip() != "}" or (table.keys and not lines[close - 1].rstrip().endswith(("{", ","))):
        return None
    lines.insert(close, f'    "{kind}": {value},\n')
    if line and f"{line}\n" not in lines:
        imports = [
            node.end_lineno or 0
            for node in ast.parse(text).body
            if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        if not imports:
            return None
        # Imports of the package itself stand last, after a blank line.
        lines.insert(imports[-1], f"{line}\n" if " .." in lines[imports[-1] - 1] else f"\n{line}\n")
    result = "".join(lines)
    return result if _entries(result) == (*(_entries(text) or ()), kind) else None


def _table(text: str) -> ast.Dict | None:
    """The dict display that ``HOOKS`` is bound to."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return None
    for node in body:
        target: ast.expr | None = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
        if (
            isinstance(node, ast.Assign | ast.AnnAssign)
            and isinstance(target, ast.Name)
            and target.id == _TABLE
            and isinstance(node.value, ast.Dict)
        ):
            return node.value
    return None


def _entries(text: str) -> tuple[str, ...] | None:
    """The kinds in the table; ``None`` where there is no table or it is computed."""
    table = _table(text)
    keys = [key.value for key in table.keys if isinstance(key, ast.Constant)] if table is not None else []
    kinds = tuple(key for key in keys if isinstance(key, str))
    return kinds if table is not None and len(kinds) == len(table.keys) else None
