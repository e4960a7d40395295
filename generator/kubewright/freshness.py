"""What the last run was made from: a run with nothing to do ends after hashing its inputs."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from kubewright.config import Config, KubernetesSource, Package, specs_folder


def fingerprint(package: Package) -> str:
    """A hash of everything that a package is made from: its sources, its configuration, the compiler itself."""
    from kubewright.source.bundle import other_files
    from kubewright.source.kubernetes_validate import NEWEST, definitions_file
    from kubewright.source.python_classes import TARGET
    from kubewright.source.rules import rule_files

    digest = hashlib.sha256(repr((package, sys.version_info[:2], os.name)).encode())
    here = Path(__file__).resolve().parent
    roots = [here, here.parents[1] / "templates", specs_folder() / "kubernetes"]
    # Not the whole folder: it may be that of a project, with the output in it.
    roots += rule_files(package.facts) if package.facts else []
    for source in package.sources:
        if isinstance(source, KubernetesSource):
            path = definitions_file(source.release, with_prose=package.is_documented)
            roots += [path] if path else []
        elif TARGET.match(str(source.path)):
            digest.update(os.urandom(8))  # a module may import anything: it is never known to be as it was
        else:
            roots += [source.path, *other_files(source.path)]
    library = definitions_file(NEWEST)
    roots += [library] if library else []
    for root in roots:
        for path in _files_below(root):
            # The path too: renaming a file changes what generated headers name.
            digest.update(str(path).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files_below(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", ".git"))
        paths = (Path(folder, name) for name in sorted(files))
        yield from (path for path in paths if path.is_file())  # a pipe or socket among them is no input


def _stamp_file(config: Config, package: Package) -> Path:
    return config.output / ".kubewright" / f"{package.label}.json"


def read_stamp(config: Config, package: Package) -> str:
    """The fingerprint of the last run of ``package``; empty where there was none."""
    try:
        found = json.loads(_stamp_file(config, package).read_bytes())
    except (OSError, ValueError):
        return ""
    return str(found.get("fingerprint", "")) if isinstance(found, dict) else ""


def write_stamp(config: Config, package: Package, stamp: str) -> None:
    """Remembers ``stamp``, the fingerprint of a run that is done."""
    path = _stamp_file(config, package)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps({"fingerprint": stamp}), encoding="utf-8")
    # Replaced in one step, so that a killed run leaves no half of a stamp.
    temporary.replace(path)
