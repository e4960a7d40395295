"""What is said once stays said once."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def load() -> Any:
    """The build step: a script, not a module of any package."""
    spec = importlib.util.spec_from_file_location("build_plain", ROOT / "build/plain.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLAIN = load()


@pytest.mark.parametrize(("made", "source"), PLAIN.MADE, ids=lambda path: path.name)
def test_a_module_that_is_made_follows_from_its_source(made: Path, source: Path) -> None:
    assert made.read_text() == PLAIN.text_of(made, source), "run `make plain`"


def test_a_difference_is_seen() -> None:
    awaited = next(path for path in PLAIN.AWAITED if path.name == "async_resource.py")
    changed = awaited.read_text().replace("async def get(", "async def fetch(", 1)
    assert changed != awaited.read_text()
    assert PLAIN.plain(changed, awaited.name) != PLAIN.made_of(awaited).read_text()
    assert PLAIN.cluster(changed) != PLAIN.CLUSTER.read_text()


def test_verbs_of_cluster_scoped_resources_know_no_namespace() -> None:
    text = PLAIN.CLUSTER.read_text()
    assert "namespace" not in text.lower()
    assert "all_" not in text and "AsyncClusterExecutable" not in text
