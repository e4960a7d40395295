"""mypy as tests run it: with the project's configuration and one cache, so that what the runtime needs is read once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = (ROOT / "generator", ROOT / "generated")


def mypy(folder: Path, *arguments: str, path: tuple[Path, ...] = CODE) -> subprocess.CompletedProcess[str]:
    """Runs ``mypy --strict arguments`` in ``folder``, with the modules below ``path``.

    Paths are absolute: a cache entry counts only for the path that it was written for.
    """
    found = os.pathsep.join(map(str, path))
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), *arguments],
        cwd=folder,
        env={**os.environ, "MYPYPATH": found, "MYPY_CACHE_DIR": str(ROOT / ".mypy_cache" / "tests")},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
