"""Compiles the modules that ``compiled.toml`` names with mypyc, for ``make wheel-compiled``.

A module stays in the wheel as text next to what was made of it: Python prefers the compiled one, tracebacks show the
text. mypyc, setuptools and a C compiler are needed for this alone.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "generator"
REQUIREMENTS = ["mypy>=2.1,<3", "setuptools>=65"]
_FUNCTION = re.compile(r"^(?:static )?(?P<result>\w+ \*?)CPyDef_\w+\(.*\) \{$", re.MULTILINE)
"""Where mypyc writes the body of a function that somebody wrote in Python."""
_FAILED = {
    "PyObject *": "NULL",
    "CPyTagged ": "CPY_INT_TAG",
    "char ": "2",
    "double ": "-113.0",
}
"""What a function of mypyc returns when it raises, by the type of its result."""
_FAILED_FIRST = {"O": "NULL", "I": "CPY_INT_TAG", "C": "2"}
"""The first item of a tuple of such a function, by the letter that mypyc has for its type."""
_TUPLE = re.compile(r"(?P<type>tuple_T\d+(?P<first>[A-Z])\w*) ")


def rooms() -> list[dict[str, Any]]:
    """Returns the table: ``folder``, ``tests`` and what is ``left_out`` of each room."""
    text = (ROOT / "build" / "compiled.toml").read_text()
    return list(tomllib.loads(text)["rooms"])


def modules() -> list[Path]:
    """Returns the files to compile, below ``generator/``."""
    return [path for room in rooms() for path in modules_of(room)]


def modules_of(room: dict[str, Any]) -> list[Path]:
    """Returns the files of one room."""
    folder = PACKAGES / room["folder"]
    return [
        path.relative_to(PACKAGES)
        for path in sorted(folder.rglob("*.py"))
        if path.name != "__init__.py" and path.relative_to(folder).as_posix() not in room["left_out"]
    ]


def compile_into(folder: Path) -> list[Path]:
    """Copies the runtime to ``folder``, compiles it there, and returns the libraries, relative to ``folder``.

    Each room is a library of its own, compiled by a process of its own: they are compiled at once.
    """
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGES / "apimachinery", folder / "apimachinery", ignore=ignored)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        logs = [log for log in pool.map(lambda room: _compile_room(room, folder), rooms()) if log]
    if logs:
        raise RuntimeError("mypyc or the C compiler failed:\n" + "\n".join(log[-6000:] for log in logs))
    return [
        path.relative_to(folder) for path in sorted(folder.rglob(f"*{_suffix()}")) if "made" not in path.parts
    ]


def _compile_room(room: dict[str, Any], folder: Path) -> str:
    """Compiles the copy of one room in ``folder``; returns what was printed if that fails."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), Path(room["folder"]).name, *map(str, modules_of(room))],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode else ""


def guarded(source: str) -> str:
    """Returns the C of mypyc in which each function first asks whether there is room on the stack (``stack.h``)."""
    count = 0

    def begin(found: re.Match[str]) -> str:
        nonlocal count
        failed = _failed(found["result"])
        if failed is None:
            raise ValueError(
                f"no way to fail from {found[0]}: build/compiled.py does not know this form of mypyc"
            )
        count += 1
        return f"{found[0]}\n    KUBEWRIGHT_ROOM({failed})"

    text = _FUNCTION.sub(begin, source)
    if not count:
        raise ValueError(
            "no functions in the C of mypyc: its form has changed, and build/compiled.py with it"
        )
    return '#include "stack.h"\n' + text


def _failed(result: str) -> str | None:
    """Returns what a function with such a result returns when it raises, or None if nobody knows."""
    if (struct := _TUPLE.fullmatch(result)) and struct["first"] in _FAILED_FIRST:
        return f"(({struct['type']}){{.f0 = {_FAILED_FIRST[struct['first']]}}})"
    return _FAILED.get(result)


def _suffix() -> str:
    from importlib.machinery import EXTENSION_SUFFIXES

    return EXTENSION_SUFFIXES[0]


def main(room: str, paths: list[str]) -> None:
    """Compiles ``paths`` in the current folder, as the library of ``room``."""
    from mypyc.build import mypycify
    from setuptools import setup

    made, name = Path("made", room), f"kubewright_{room}"
    settings = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(made / "cache")]
    extensions = mypycify(
        [*settings, "--follow-imports=silent", *paths],
        only_compile_paths=paths,
        opt_level="2",
        debug_level="0",
        group_name=name,
        target_dir=str(made),
    )
    for path in made.glob("*.c"):
        path.write_text(guarded(path.read_text()))
    for extension in extensions:
        extension.include_dirs.append(str(ROOT / "build"))
    setup(
        name=name,
        packages=[],
        ext_modules=extensions,
        script_args=["build_ext", "--inplace", f"--build-temp={made}/objects", f"--build-lib={made}/lib"],
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
