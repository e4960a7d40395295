"""A file system that is soon full."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a small file system is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
