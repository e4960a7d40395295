"""A ``kubewright`` for tests that need a process of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packaging.warm import Stem

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def stem(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stem]:
    """Forked for each command, so that the imports of many commands are made once."""
    search = os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
    with Stem(search, tmp_path_factory.mktemp("stem"), alone=False) as running:
        yield running
