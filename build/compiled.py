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
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ROOT / "generator"
REQUIREMENTS = ["mypy>=2.1,<3", "setuptools>=65"]
GROUP = "kubewright"
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
    found = []
    for room in rooms():
        folder = PACKAGES / room["folder"]
        found += [
            path.relative_to(PACKAGES)
            for path in sorted(folder.rglob("*.py"))
            if path.name != "__init__.py" and path.relative_to(folder).as_posix() not in room["left_out"]
        ]
    return found


def compile_into(folder: Path) -> list[Path]:
    """Copies the runtime to ``folder``, compiles it there, and returns the libraries, relative to ``folder``."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(PACKAGES / "apimachinery", folder / "apimachinery", ignore=ignored)
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), *map(str, modules())],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    made = [
        path.relative_to(folder) for path in sorted(folder.rglob(f"*{_suffix()}")) if "made" not in path.parts
    ]
    if done.returncode or not made:
        raise RuntimeError(f"mypyc or the C compiler failed:\n{done.stdout[-6000:]}")
    return made


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


def main(paths: list[str]) -> None:
    """Compiles ``paths`` in the current folder."""
    from mypyc.build import mypycify
    from setuptools import setup

    options = ["--config-file", str(ROOT / "pyproject.toml"), "--follow-imports=silent", *paths]
    extensions = mypycify(
        options, only_compile_paths=paths, opt_level="2", debug_level="0", group_name=GROUP, target_dir="made"
    )
    for path in Path("made").glob("*.c"):
        path.write_text(guarded(path.read_text()))
    for extension in extensions:
        extension.include_dirs.append(str(ROOT / "build"))
    setup(
        name=GROUP,
        packages=[],
        ext_modules=extensions,
        script_args=["build_ext", "--inplace", "--build-temp=made/objects", "--build-lib=made/lib"],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
