"""The wheel, built once, and an environment for each of its extras."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.environment import Environment, build_wheel, make_environment


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling")
    return build_wheel(tmp_path_factory.mktemp("wheel"))


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
