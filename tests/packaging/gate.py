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
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from kubewright.cli import COMMANDS
from tests.packaging.environment import EXTRAS, ROOT
from tests.packaging.test_extras import ALL_RUNS, BROUGHT, MANIFEST, RUNS, helps_and_lacking, wrong_helps

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
    print(
        "| Python | extra | installed in s | MB | pytest | --help | runs |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="kubewright-gate-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = folder.glob("*.whl")
        # The largest first: it fills pip's cache of wheels, and the others end while it still runs.
        wanted = [(python, extra) for python in chosen for extra in (ALL, *reversed(EXTRAS))]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            tried = [
                pool.submit(_try, python, extra, wheel, folder / f"{Path(python).name}-{extra or 'bare'}")
                for python, extra in wanted
            ]
            for each in as_completed(tried):
                row, faults = each.result()
                print(row, flush=True)
                wrong += faults
    print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


def _try(python: str, extra: str, wheel: Path, folder: Path) -> tuple[str, list[str]]:
    """The row of one environment, and what is wrong in it. The environment is removed: seven are a gigabyte."""
    subprocess.run([python, "-m", "venv", "--without-pip", str(folder)], check=True)
    own = str(folder / "bin/python")
    # One pip for all: a venv's own takes seconds to be unpacked, and what it weighs is not ours.
    pip = [sys.executable, "-m", "pip", "--python", own, "install", "--quiet", "--disable-pip-version-check"]
    # Bytecode is written for what is imported, not for all that is installed.
    pip += ["--no-compile", "--prefer-binary"]
    empty, started = _megabytes(folder), time.perf_counter()
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
    check("--help", run(program, "--help"), 0, "Generate")
    said = run(own, "-c", ALL_RUNS, helps_and_lacking(brought))
    faults = wrong_helps(said.stdout, brought) if check("every --help", said, 0) else list(COMMANDS)
    wrong += [f"{Path(python).name} [{extra}] {fault}" for fault in faults]
    runs = wanted = 0
    for name, command in COMMANDS.items():
        if command.extra in brought and name in RUNS:
            words, code, shown = RUNS[name]
            wanted += 1
            runs += check(name, run(program, *map(str, words)), code, shown)
    shutil.rmtree(folder)
    row = (
        f"| {Path(python).name} | {extra or '(none)'} | {seconds:.1f} | {size} | {'passes' if bare else 'FAILS'} "
        f"| {len(COMMANDS) - len(faults)} of {len(COMMANDS)} | {runs} of {wanted} |"
    )
    return row, wrong


def _megabytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file()) // 1_000_000


if __name__ == "__main__":
    sys.exit(main())
