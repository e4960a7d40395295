"""Node and what is installed beside the TypeScript tests: tests skip where they are not there, saying so.

``make node`` installs it into ``tests/compiler/languages/node``; KUBEWRIGHT_NODE_MODULES names another place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "node"
MODULES = Path(os.environ.get("KUBEWRIGHT_NODE_MODULES", HERE / "node_modules"))
NODE = shutil.which("node")
needs_tsc = pytest.mark.skipif(
    NODE is None or not (MODULES / "typescript").is_dir(), reason="no node, or no typescript: make node"
)
needs_eslint = pytest.mark.skipif(
    NODE is None or not (MODULES / "typescript-eslint").is_dir(), reason="no node, or no eslint: make node"
)
LONGEST = 300


def node(folder: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A run of node that ends by itself."""
    assert NODE is not None
    return subprocess.run(
        [NODE, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


def project(folder: Path) -> Path:
    """A folder whose ``src`` is compiled strictly; gives ``src``."""
    (folder / "node_modules").symlink_to(MODULES.resolve())
    for name in ("tsconfig.json", "eslint.config.js"):
        shutil.copy(HERE / name, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "src").mkdir()
    return folder / "src"


def compile_strictly(folder: Path, *more: str) -> list[str]:
    """What the compiler says against ``src``."""
    done = node(folder, MODULES / "typescript" / "bin" / "tsc", "-p", ".", *more)
    return (done.stdout + done.stderr).splitlines()
