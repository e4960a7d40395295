"""Where the packages of a module are, and what a file imports: the packages that its code names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kubewright.emit.code.class_plans import ModulePlan
from kubewright.emit.go.text import string
from kubewright.emit.go.types import IMPORTS, TypeTexts

_STANDARD = ("json",)
_NAMED = re.compile(r"(?<![\w.])([a-z]\w*)\.[A-Z]")
_PROSE = re.compile(r"//.*|`[^`\n]*`|\"(?:[^\"\\\n]|\\.)*\"")


def folder_of(plan: ModulePlan) -> str:
    """Where a group-version is: ``apps_v1`` in ``apps/v1``."""
    stem, _, version = plan.name.rpartition("_")
    return f"{stem}/{version}" if stem and plan.version else plan.name


def file_of(name: str, blocks: Sequence[str], package: TypeTexts) -> str:
    """A file of the package ``name``."""
    body = "\n\n".join(blocks)
    used = set(_NAMED.findall(_PROSE.sub("", body)))
    folders = {package.aliases[plan.name]: folder_of(plan) for plan in package.layout.modules}
    folders |= {f"{each}ac": f"{folder}/applyconfiguration" for each, folder in folders.items()}
    paths = {alias: IMPORTS[alias] for alias in used & IMPORTS.keys()}
    paths |= {each: f"{package.module}/{folders[each]}" for each in used & folders.keys()}
    ordered = sorted(paths.items(), key=lambda pair: pair[1])
    groups = [
        [_imported(alias, path) for alias, path in ordered if (alias in _STANDARD) is standard]
        for standard in (True, False)
    ]
    shown = "\n\n".join("\n".join(lines) for lines in groups if lines)
    declared = f"import (\n{shown}\n)\n\n" if shown else ""
    return f"package {name}\n\n{declared}{body}\n"


def _imported(alias: str, path: str) -> str:
    return f"\t{string(path)}" if path.endswith(f"/{alias}") else f"\t{alias} {string(path)}"
