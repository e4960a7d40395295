"""The wheel, built once, and an environment for each of its extras."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import Environment, build_wheel, make_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all workers of a run: it is built, and compiled by those who import of it, once."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= "wheel-of-all"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder / "wheel" if (folder / "wheel").is_dir() else build_wheel(folder)


@pytest.fixture(scope="session")
def environment_of(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Environment]:
    """Extra (``""`` for none) → its environment, with pytest in it."""
    made: dict[str, Environment] = {}
    folder = tmp_path_factory.mktemp("environments")

    def make(extra: str) -> Environment:
        if extra not in made:
            made[extra] = make_environment(wheel, extra, folder, beside=["pytest"])
        return made[extra]

    return make
