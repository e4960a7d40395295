"""What is released is reproducible, and the CHANGELOG is in order."""

from __future__ import annotations

import re
import shutil
from importlib import import_module
from pathlib import Path

from apimachinery.meta.version import VERSION
from tests.packaging import release
from tests.packaging.environment import ROOT
from tests.packaging.test_reference import MODULES


def test_wheel_and_source_archive_are_reproducible(tmp_path: Path) -> None:
    source = tmp_path / "source"
    left_out = (".git", ".venv", "dist", "site", "__pycache__", ".mypy_cache", ".ruff_cache", ".hypothesis")
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(*left_out, ".pytest_cache", "*.pyc"))
    built = release.build(source, tmp_path, "1700000000")
    assert {path.name for path in built.iterdir()} == {
        f"kubewright-{VERSION}.tar.gz",
        f"kubewright-{VERSION}-py3-none-any.whl",
    }


def test_what_keeps_a_version_from_being_released() -> None:
    ready = f"# Changelog\n\n## Unreleased\n\n## {VERSION}\n\n### What you must do\n\nNothing.\n"

    def obstacles(text: str, version: str = VERSION) -> str:
        return "\n".join(release._in_changelog(text, version))

    assert obstacles(ready) == ""
    assert "move the lines" in obstacles(ready.replace("ed\n", "ed\n\n- One.\n", 1))
    assert "no section" in obstacles(ready, "9.9.9")
    assert "lacks" in obstacles(ready.replace("### What", "### Who"))


def test_subjects_are_at_most_72_characters() -> None:
    assert [*release.long_subjects(f"abc {'x' * 72}\ndef {'x' * 73}")] == [
        f"def: the subject has 73 characters, at most 72: {'x' * 73}"
    ]


def test_the_public_modules_are_those_of_the_reference() -> None:
    text = (ROOT / "docs/stability.md").read_text()
    table = re.findall(r"^\| `([\w.]+)` \| (`.*`) \|$", text, re.MULTILINE)
    named = {f"{package}.{name}" for package, names in table for name in re.findall(r"`([\w.]+)`", names)}
    packages = re.findall(r"`([\w.]+)`", text.partition("the packages ")[2].partition("(")[0])
    assert named | {*packages} == set(MODULES)
    assert packages == [name for name in MODULES if hasattr(import_module(name), "NAMES")]
