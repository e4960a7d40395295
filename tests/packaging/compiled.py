"""``make test-compiled`` and ``make bench-compiled``: the wheel with compiled modules, outside the repository.

The plain build is the same wheel without its libraries, which is what users of other machines have.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from tests.packaging.environment import ROOT

sys.path.insert(0, str(ROOT / "build"))
import compiled as table

ROUNDS = 5
_NOTHING_CHOSEN = 5
"""What pytest answers where no test is thorough."""


@dataclass(frozen=True, slots=True)
class Builds:
    """Two folders of packages, and one with the tests in which programs run."""

    compiled: Path
    plain: Path
    folder: Path

    def run(self, site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs ``python arguments`` with the packages of ``site``."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST"))}
        environment |= {"PYTHONPATH": f"{site}{os.pathsep}{self.folder}", "PYTHONHASHSEED": "0"}
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )


@contextmanager
def unpacked(dist: Path) -> Iterator[Builds]:
    """Both builds of the newest compiled wheel in ``dist`` for this Python."""
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}"
    wheels = sorted(dist.glob(f"kubewright-*-{tag}-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        raise LookupError(f"no compiled wheel for this Python in {dist}: make wheel-compiled")
    with tempfile.TemporaryDirectory(prefix="kubewright-compiled-") as name:
        builds = Builds(Path(name, "compiled"), Path(name, "plain"), Path(name, "outside"))
        zipfile.ZipFile(wheels[-1]).extractall(builds.compiled)
        zipfile.ZipFile(wheels[-1]).extractall(builds.plain)
        for library in builds.plain.rglob(f"*{EXTENSION_SUFFIXES[0]}"):
            library.unlink()
        ignored = shutil.ignore_patterns("__pycache__", "node_modules")
        for part in ("tests", "specs", "generated"):
            shutil.copytree(ROOT / part, builds.folder / part, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", builds.folder)
        if (recordings := ROOT.parent / "shared").is_dir():
            Path(name, "shared").symlink_to(recordings)
        yield builds


def faults_of_imports(builds: Builds) -> list[str]:
    """The modules of the table that are not what they should be: compiled in one build, text in the other."""
    program = "import importlib, sys\nfor name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    names = [".".join(path.with_suffix("").parts) for path in table.modules()]
    faults = []
    for site, suffix in ((builds.compiled, EXTENSION_SUFFIXES[0]), (builds.plain, ".py")):
        places = builds.run(site, "-c", program, *names).stdout.splitlines()
        if len(places) != len(names):
            faults.append(f"{len(names) - len(places)} modules cannot be imported from {site.name}")
        faults += [place for place in places if not place.startswith(str(site)) or not place.endswith(suffix)]
    return faults


def differences(builds: Builds) -> tuple[int, list[str]]:
    """How many outcomes were compared, and those that differ."""
    runs = [
        builds.run(site, "-m", "tests.packaging.outcomes", "inputs.pickle")
        for site in (builds.plain, builds.compiled)
    ]
    if broken := [each for each in runs if each.returncode]:
        return 0, [f"the program of outcomes ended with {each.returncode}" for each in broken]
    plain, ours = (each.stdout.splitlines() for each in runs)
    if not plain or len(ours) != len(plain):
        return 0, [f"{len(ours)} outcomes compiled, {len(plain)} plain"]
    return len(ours), [f"compiled {a}\nplain    {b}" for a, b in zip(ours, plain, strict=True) if a != b]


def test(builds: Builds) -> int:
    """Runs the tests of what is compiled, and compares outcomes; 1 if anything fails."""
    if faults := faults_of_imports(builds):
        print("not as build/compiled.toml says:", *faults, sep="\n  ")
        return 1
    folders = [folder for room in table.rooms() for folder in room["tests"]]
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    runs = [
        builds.run(builds.compiled, *pytest, *folders),
        builds.run(
            builds.compiled, *pytest, "-m", "thorough", *(f"{folder}/test_deep.py" for folder in folders)
        ),
    ]
    print(*(done.stdout for done in runs))
    compared, different = differences(builds)
    print(f"{compared} outcomes compared, {len(different)} differ", *different[:20], sep="\n")
    return 1 if any(done.returncode not in (0, _NOTHING_CHOSEN) for done in runs) or different else 0


def times(builds: Builds, rounds: int = ROUNDS) -> dict[str, dict[str, float]]:
    """CPU times of both builds by case, in microseconds, measured by turns: the least of each round's medians."""
    out: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for site in (builds.plain, builds.compiled):
            done = builds.run(site, "-m", "tests.packaging.speed")
            for case, microseconds in json.loads(done.stdout).items():
                held = out.setdefault(case, {})
                held[site.name] = min(held.get(site.name, microseconds), microseconds)
    return out


def bench(builds: Builds) -> int:
    """Prints CPU times of both builds."""
    print("| µs of CPU | plain | compiled | ratio |\n|---|---|---|---|")
    for case, by in times(builds).items():
        print(f"| {case} | {by['plain']:,.1f} | {by['compiled']:,.1f} | {by['plain'] / by['compiled']:.2f} |")
    return 0


if __name__ == "__main__":
    try:
        with unpacked(Path(sys.argv[2])) as both:
            sys.exit({"test": test, "bench": bench}[sys.argv[1]](both))
    except LookupError as missing:
        sys.exit(str(missing))
