"""What each emitter but Python's makes of one small API, a folder a language; ``make golden`` writes them anew."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kubewright.config import Config, Package, PathSource
from kubewright.emit.registry import LANGUAGES, load_language
from kubewright.pipeline import build, generate

HERE = Path(__file__).parent / "golden"
SPEC = Path(__file__).parent / "spec" / "parcels.yaml"
OTHERS = [name for name in LANGUAGES if name != "python"]


def package(language: str) -> Package:
    settings = {"go": (("module", "example.com/parcels"),)}.get(language, ())
    sources = (PathSource(SPEC, SPEC.name),)
    return Package(name="parcels", sources=sources, language=language, settings=settings)


@pytest.mark.parametrize("language", OTHERS)
def test_language(language: str, request: pytest.FixtureRequest) -> None:
    built = build(package(language), Path("parcels"))
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]
    files = {f"{path}.txt": content.decode() for path, content in built.tree.files.items()}
    folder = HERE / language
    if request.config.getoption("--rewrite-golden"):
        shutil.rmtree(folder, ignore_errors=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        return
    kept = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    assert files == kept


@pytest.mark.parametrize("language", OTHERS)
def test_drift_is_found(language: str, tmp_path: Path) -> None:
    wanted = Config(output=tmp_path, packages=(package(language),))
    generate(wanted)
    assert not any(generate(wanted, check=True, force=True).changes.values())
    path = next(
        path
        for path in sorted((tmp_path / "parcels").rglob("*"))
        if path.suffix != ".sha256" and path.is_file()
    )
    path.write_text(path.read_text() + "\n")
    outcome = generate(wanted, check=True)
    assert any(outcome.changes.values())
    assert path.name in outcome.drift


@pytest.mark.parametrize("language", OTHERS)
def test_parts_are_those_that_the_emitter_names(language: str) -> None:
    emitter = load_language(language)
    assert emitter.name == language
    whole = build(package(language), Path("parcels")).tree.files
    made = dict[str, bytes]()
    for part in emitter.parts:
        one = build(replace(package(language), only=(part,)), Path("parcels")).tree.files
        assert not made.keys() & one.keys()
        made |= one
    assert made == whole
