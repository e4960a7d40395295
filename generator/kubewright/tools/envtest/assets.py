"""The folder that KUBEBUILDER_ASSETS names: programs called kube-apiserver, etcd and kubectl."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kubewright.tools.envtest import etcd, flags
from kubewright.tools.envtest.image import FLAG

_MARK = "# made by kubewright envtest"
_SCRIPT = """#!/bin/sh
{mark}
[ "$*" = --help ] && exec cat {usage}
export PYTHONPATH={roots}"${{PYTHONPATH:+:$PYTHONPATH}}"
exec {python} -S -X {flag}={image} {program} {words} "$@"
"""
_WRITE_IMAGE = "import sys; from kubewright.tools.envtest.image import write; sys.exit(write(sys.argv[1]))"
_IMAGE = ".image"
_PACKAGES = ("kubewright", "apimachinery", "kubernetes_api")


class AssetsError(ValueError):
    """A folder that cannot be written to; the text says why."""


def write_assets(folder: Path, words: Sequence[str] = (), image: bool = True) -> list[Path]:
    """Writes the programs; ``words`` go to each kube-apiserver before those of its caller.

    ``image`` writes the code of a start next to them as well. Raises AssetsError, OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    usages = {"kube-apiserver": flags.usage(flags.make_parser()), "etcd": etcd.usage()}
    here = Path(__file__).resolve().parent
    made = []
    for name, program, before in (("kube-apiserver", "kube_apiserver.py", words), ("etcd", "etcd.py", ())):
        path = folder / name
        if path.exists() and _MARK.encode() not in path.read_bytes()[:200]:
            raise AssetsError(f"{path} is not this command's; give an empty folder, or remove it")
        # envtest asks each program for its help before it starts it.
        usage = folder / f".{name}.help"
        usage.write_text(f"{usages[name]}\n")
        text = _SCRIPT.format(
            mark=_MARK,
            usage=shlex.quote(str(usage)),
            roots=shlex.quote(":".join(_roots())),
            python=shlex.quote(sys.executable),
            flag=FLAG,
            image=shlex.quote(str(folder / _IMAGE)),
            program=shlex.quote(str(here / program)),
            words=shlex.join(before),
        )
        part = folder / f".{name}.part"
        part.write_text(text)
        part.chmod(0o755)
        part.replace(path)
        made.append(path)
    if image:
        _write_image(folder / _IMAGE)
    kubectl = shutil.which("kubectl")
    if kubectl is not None and not (folder / "kubectl").exists():
        (folder / "kubectl").symlink_to(Path(kubectl).resolve())
    if (folder / "kubectl").exists():
        made.append(folder / "kubectl")
    return made


def _write_image(path: Path) -> None:
    """Writes the code of a start; without one (a package is missing, say) programs start all the same."""
    part = path.with_name(f"{path.name}.part")
    environment = os.environ | {"PYTHONPATH": ":".join(_roots())}
    command = [sys.executable, "-P", "-c", _WRITE_IMAGE, str(part)]
    written = subprocess.run(command, env=environment, capture_output=True, check=False)
    if written.returncode == 0:
        part.replace(path)
    else:
        part.unlink(missing_ok=True)
        path.unlink(missing_ok=True)


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
