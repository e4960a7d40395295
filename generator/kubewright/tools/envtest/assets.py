"""The folder that KUBEBUILDER_ASSETS names: programs called kube-apiserver, etcd and kubectl."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

_MARK = "# made by kubewright envtest"
_SCRIPT = """#!/bin/sh
{mark}
export PYTHONPATH={roots}"${{PYTHONPATH:+:$PYTHONPATH}}"
exec {python} -S {program} {words} "$@"
"""
_PACKAGES = ("kubewright", "apimachinery", "kubernetes_api")


class AssetsError(ValueError):
    """A folder that cannot be written to; the text says why."""


def write_assets(folder: Path, words: Sequence[str] = ()) -> list[Path]:
    """Writes the programs; ``words`` go to each kube-apiserver before those of its caller.

    Raises AssetsError, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    here = Path(__file__).resolve().parent
    made = []
    for name, program, before in (("kube-apiserver", "kube_apiserver.py", words), ("etcd", "etcd.py", ())):
        path = folder / name
        if path.exists() and _MARK.encode() not in path.read_bytes()[:200]:
            raise AssetsError(f"{path} is not this command's; give an empty folder, or remove it")
        text = _SCRIPT.format(
            mark=_MARK,
            roots=shlex.quote(":".join(_roots())),
            python=shlex.quote(sys.executable),
            program=shlex.quote(str(here / program)),
            words=shlex.join(before),
        )
        part = folder / f".{name}.part"
        part.write_text(text)
        part.chmod(0o755)
        part.replace(path)
        made.append(path)
    kubectl = shutil.which("kubectl")
    if kubectl is not None and not (folder / "kubectl").exists():
        (folder / "kubectl").symlink_to(Path(kubectl).resolve())
    if (folder / "kubectl").exists():
        made.append(folder / "kubectl")
    return made


def _roots() -> list[str]:
    """The folders that hold our packages, wherever they are imported from now."""
    roots: list[str] = []
    for name in _PACKAGES:
        found = importlib.util.find_spec(name)
        for place in (found.submodule_search_locations if found is not None else None) or ():
            root = str(Path(place).resolve().parent)
            if root not in roots:
                roots.append(root)
    return roots
