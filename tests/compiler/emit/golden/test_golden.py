"""Small inputs and the models, tables and schemes they make, to be read as code.

One ``*.txtar`` is one case: files below ``spec/`` go in; the others are what comes out, but for those that every
package has in the same words (meta/v1). ``make golden`` writes them anew.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from tests.compiler import txtar

from kubewright.cli import main

CASES = sorted(Path(__file__).parent.glob("*.txtar"))


def generated(files: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    txtar.unpack({name: text for name, text in files.items() if name.startswith("spec/")}, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    options = ["--only", "models,resources,scheme,registry", "-q", "-j1"]
    assert main(["generate", "spec", "--package", "golden_api", *options]) == 0
    package = folder / "generated" / "golden_api"
    return {
        path.relative_to(package).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(package.rglob("*"))
        if path.is_file() and "meta_v1" not in path.parts and path.name != "MANIFEST.sha256"
    }


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_golden(
    case: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = txtar.split(case.read_text(encoding="utf-8"))
    made = generated(files, tmp_path, monkeypatch)
    if request.config.getoption("--rewrite-golden"):
        specs = {name: text for name, text in files.items() if name.startswith("spec/")}
        case.write_text(txtar.join({**specs, **made}), encoding="utf-8")
        return
    assert made == {name: text for name, text in files.items() if not name.startswith("spec/")}


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_golden_files_are_as_black_writes_them(case: Path) -> None:
    black = pytest.importorskip("black")
    mode = black.Mode(line_length=110)
    for name, text in txtar.split(case.read_text(encoding="utf-8")).items():
        if name.endswith(".py") and text:
            assert black.format_str(text, mode=mode) == text, name


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_golden_packages_import(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = txtar.split(case.read_text(encoding="utf-8"))
    made = generated(files, tmp_path, monkeypatch)
    monkeypatch.syspath_prepend(str(tmp_path / "generated"))
    try:
        for name in made:
            if name.endswith(".py"):
                importlib.import_module("golden_api." + name.removesuffix(".py").replace("/", "."))
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "golden_api"]:
            del sys.modules[name]
