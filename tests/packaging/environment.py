"""What ``pip install 'kubewright[…]'`` gives, without pip: the wheel, and links to the distributions that an extra
asks for, taken from the environment of the tests. ``python -S`` then sees nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
EXTRAS = ("", "cel", "check", "client", "server", "generate")


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment: its folder of packages."""

    wheel: Path
    site: Path

    def run(
        self, folder: Path, *arguments: str | Path, stdin: str = "", path: Sequence[Path] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``python arguments`` in ``folder``, which is outside the repository."""
        found = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "PYTHON", "KUBEWRIGHT"))}
        search = [*path, self.wheel, self.site]
        environment = {
            **found,
            "PYTHONPATH": os.pathsep.join(map(str, search)),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "KUBECONFIG": str(folder / "kubeconfig"),
        }
        return subprocess.run(
            [sys.executable, "-S", *map(str, arguments)],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def kubewright(
        self, folder: Path, *arguments: str | Path, stdin: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Runs ``kubewright arguments``."""
        return self.run(folder, "-m", "kubewright", *arguments, stdin=stdin)


def build_wheel(folder: Path) -> Path:
    """The wheel of this checkout, unpacked below ``folder``."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "wheel")
    return folder / "wheel"


def make_environment(wheel: Path, extra: str, folder: Path, *, beside: Iterable[str] = ()) -> Environment:
    """An environment of the wheel with ``extra``, and the distributions ``beside`` (pytest, say)."""
    (information,) = wheel.glob("*.dist-info")
    own = metadata.Distribution.at(information)
    wanted = [r for r in map(Requirement, own.requires or ()) if _applies(r, {extra})]
    wanted += map(Requirement, beside)
    site = folder / (extra or "bare")
    site.mkdir(parents=True)
    seen: set[tuple[str, frozenset[str]]] = set()
    while wanted:
        requirement = wanted.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen:
            continue
        seen.add(key)
        if key[0] == own.name:
            wanted += [
                r for r in map(Requirement, own.requires or ()) if _applies(r, set(requirement.extras))
            ]
            continue
        distribution = metadata.distribution(requirement.name)
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            target = Path(str(distribution.locate_file(top)))
            link = site / top
            if target.exists() and not link.exists():
                link.symlink_to(target)
        inner = map(Requirement, distribution.requires or ())
        wanted += [r for r in inner if _applies(r, {"", *requirement.extras})]
    return Environment(wheel, site)


def _applies(requirement: Requirement, extras: set[str]) -> bool:
    return requirement.marker is None or any(
        requirement.marker.evaluate({"extra": extra}) for extra in extras or {""}
    )
