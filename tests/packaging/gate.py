"""The gate before a release: the wheel × its extras × the Pythons at hand, in environments that pip makes.

``make gate`` prints a table and ends with 1 where something is wrong. The same is tried without pip, for one Python, in
``test_extras.py``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kubewright.cli import COMMANDS
from tests.packaging.environment import EXTRAS, ROOT
from tests.packaging.test_extras import BROUGHT, MANIFEST, RUNS

ALL = "client,generate,server"
VERSIONS = range(11, 15)


def pythons() -> list[str]:
    """The interpreters on the PATH that can run us, oldest first."""
    found = (shutil.which(f"python3.{minor}") for minor in VERSIONS)
    return [path for path in found if path and _makes_environments(path)] or [sys.executable]


def _makes_environments(python: str) -> bool:
    """Whether a name on the PATH is a working Python with venv: a version manager leaves shims of others there."""
    done = subprocess.run([python, "-c", "import ensurepip, venv"], capture_output=True, check=False)
    return done.returncode == 0


def main() -> int:
    """Runs all of it; with ``--this-python``, for the Python that runs it alone."""
    chosen = [sys.executable] if "--this-python" in sys.argv[1:] else pythons()
    wrong: list[str] = []
    print("| Python | extra | installed in s | MB | pytest | --help | runs |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="kubewright-gate-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        for python in chosen:
            for extra in (*EXTRAS, ALL):
                wrong += _try(python, extra, wheel, folder / f"{Path(python).name}-{extra or 'bare'}")
    print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


def _try(python: str, extra: str, wheel: Path, folder: Path) -> list[str]:
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    empty = _megabytes(folder)
    pip = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    started = time.perf_counter()
    subprocess.run([*pip, f"{wheel}[{extra}]" if extra else str(wheel)], check=True, capture_output=True)
    seconds, size = time.perf_counter() - started, _megabytes(folder) - empty
    subprocess.run([*pip, "pytest"], check=True, capture_output=True)
    work = folder / "work"
    work.mkdir()
    (work / "test_one.py").write_text("def test_one():\n    assert True\n")
    brought = {each for part in extra.split(",") for each in BROUGHT[part]} if extra else BROUGHT[""]
    wrong: list[str] = []

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        environment["XDG_CACHE_HOME"] = str(folder / "cache")
        return subprocess.run(
            words, cwd=work, env=environment, input=MANIFEST, capture_output=True, text=True, check=False
        )

    def check(label: str, done: subprocess.CompletedProcess[str], code: int, shown: str = "") -> int:
        good = (
            done.returncode == code and shown in done.stdout + done.stderr and "Traceback" not in done.stderr
        )
        if not good:
            said = done.stdout[-300:] + done.stderr[-600:]
            wrong.append(f"{Path(python).name} [{extra}] {label}: exit {done.returncode}: {said}")
        return int(good)

    bare = check("pytest", run(str(folder / "bin/pytest"), "-q"), 0, "1 passed")
    program = str(folder / "bin/kubewright")
    helps = runs = wanted = 0
    for name, command in COMMANDS.items():
        is_there = command.extra in brought
        done = run(program, name, "--help")
        helps += check(f"{name} --help", done, 0 if is_there or done.returncode == 0 else 3)
        if is_there and name in RUNS:
            words, code, shown = RUNS[name]
            wanted += 1
            runs += check(name, run(program, *map(str, words)), code, shown)
    print(
        f"| {Path(python).name} | {extra or '(none)'} | {seconds:.1f} | {size} | {'passes' if bare else 'FAILS'} "
        f"| {helps} of {len(COMMANDS)} | {runs} of {wanted} |",
        flush=True,
    )
    return wrong


def _megabytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
