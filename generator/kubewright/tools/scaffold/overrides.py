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
from kubewright.output import HOOKS
from kubewright.source.text import read_single
from kubewright.tools.scaffold.writing import FilePlan, RefusedError

FILE = HOOKS
_STEM = "hooks"
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
    plan: FilePlan,
    package: GeneratedFolder,
    kind: str,
    group: str,
    version: str,
    copied: tuple[str, str, str] | None = None,
) -> None:
    """Puts an entry of ``kind`` into the version's ``hooks.py``, which is made where there is none. ``copied`` is the
    group, version and kind whose behaviour it begins with, where that has any. A file that cannot be edited is left as
    it is."""
    place = package.hooks(group, version)
    value, line = "Hooks()", ""
    if copied is not None:
        former, module = package.hooks(*copied[:2]), package.modules[copied[:2]]
        if former.is_file() and copied[2] in (_entries(former.read_text(encoding="utf-8")) or ()):
            value = f'{module.upper()}["{copied[2]}"]'
            line = f"from ..{module}.hooks import HOOKS as {module.upper()}"
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


def drop_kind(plan: FilePlan, package: GeneratedFolder, kind: str, group: str, version: str) -> None:
    """Takes ``kind`` out of a version's ``hooks.py``, which goes with its last entry; what later versions have taken
    from there becomes their own. Raises ``RefusedError`` where only a person can say how."""
    place = package.hooks(group, version)
    if not place.is_file():
        return
    text = plan.current(place)
    module = package.modules[group, version]
    others = {each: plan.current(each) for each in sorted(package.folder.glob(f"*/{FILE}")) if each != place}
    heirs = {each: held for each, held in others.items() if f"..{module}.{_STEM} " in held}
    kinds = _entries(text)
    is_last = kinds is None or set(kinds) <= {kind}
    if is_last and not _is_empty(text, "CONVERSIONS"):
        raise RefusedError(
            f"{place}: its CONVERSIONS would go with {version}", f"move them to the {FILE} of another version"
        )
    value = _value(text, kind)
    for heir, before in heirs.items():
        after = _inherited(before, module, kind, value)
        if after is None and is_last and len(heirs) == 1 and _adds_nothing(before, module):
            after = text.replace(f"{group}/{version}", f"{group}/{_version_of(package, heir)}")
        if after is None:
            raise RefusedError(
                f"{heir} takes the hooks of {kind} from {place}, which goes",
                "move the functions that it needs there, without the import, and run the command again",
            )
        plan.edit(heir, before, after)
    if is_last:
        plan.delete(place)
        return
    kept = _without_entry(text, kind)
    if kept is None:
        plan.notes.append(f"{place} was not edited: take {kind} out of its table {_TABLE}")
    else:
        plan.edit(place, text, kept)


def _version_of(package: GeneratedFolder, hooks: Path) -> str:
    return next(version for (_, version), name in package.modules.items() if name == hooks.parent.name)


def _value(text: str, kind: str) -> ast.expr | None:
    """What a table has for a kind."""
    table = _table(text)
    pairs = zip(table.keys, table.values, strict=True) if table is not None else ()
    return next((value for key, value in pairs if isinstance(key, ast.Constant) and key.value == kind), None)


def _inherited(text: str, module: str, kind: str, value: ast.expr | None) -> str | None:
    """``text`` of a ``hooks.py`` with ``value`` where it took the hooks of ``kind`` from ``module``; ``None`` where the
    value needs more than the runtime gives."""
    needed = (
        {node.id for node in ast.walk(value) if isinstance(node, ast.Name)} if value is not None else {""}
    )
    taken = f'{module.upper()}["{kind}"]'
    if not needed <= {"Hooks"} or value is None:
        return None if taken in text else text
    result = text.replace(taken, ast.unparse(value))
    line = f"from ..{module}.{_STEM} import {_TABLE} as {module.upper()}\n"
    if module.upper() not in result.replace(line, ""):
        result = result.replace(f"\n\n{line}", "\n").replace(line, "")
    return result


def _adds_nothing(text: str, module: str) -> bool:
    """Whether a ``hooks.py`` is what scaffold made of it: entries that are taken from ``module``, and nothing else."""
    table, body = _table(text), ast.parse(text).body
    plain = (ast.Import, ast.ImportFrom, ast.Expr, ast.AnnAssign)
    return (
        table is not None
        and all(isinstance(node, plain) for node in body)
        and all(ast.unparse(value).startswith(f"{module.upper()}[") for value in table.values)
        and _is_empty(text, "CONVERSIONS")
    )


def _is_empty(text: str, name: str) -> bool:
    """Whether a table has no entries, or is not there."""
    table = _table(text, name)
    return table is None or not table.keys


def _without_entry(text: str, kind: str) -> str | None:
    """``text`` without an entry of its table that has lines of its own."""
    value = _value(text, kind)
    if value is None:
        return None
    lines = text.splitlines(keepends=True)
    first, last = value.lineno - 1, value.end_lineno or value.lineno
    if not lines[first].strip().startswith(f'"{kind}":'):
        return None
    result = "".join([*lines[:first], *lines[last:]])
    return (
        result if _entries(result) == tuple(each for each in _entries(text) or () if each != kind) else None
    )


def _table(text: str, called: str = "HOOKS") -> ast.Dict | None:
    """The dict display that a name is bound to."""
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
            and target.id == called
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
