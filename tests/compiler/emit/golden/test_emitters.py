"""What each emitter writes, a folder an emitter, from one small API with rules of every kind.

``emitters/spec`` and ``emitters/facts`` go in (for the operations an ordinary document); ``emitters/<emitter>/`` is
what comes out, but for what every package has in the same words (meta/v1, package markers). ``make golden`` writes
the folders anew.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kubewright.config import Package, PathSource
from kubewright.emit.python.parts import PARTS
from kubewright.pipeline import build

HERE = Path(__file__).parent / "emitters"
_SAME_EVERYWHERE = ("meta_v1/", "py.typed")


def made(emitter: str) -> dict[str, str]:
    ordinary = emitter == "operations"
    name = "pets.yaml" if ordinary else "tickets.yaml"
    spec = PathSource(HERE / "spec" / name, name)
    facts = None if ordinary else HERE / "facts"
    package = Package(name="tickets_api", sources=(spec,), facts=facts, only=(emitter,))
    built = build(package, Path("tickets_api"))
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]
    return {
        f"{path}.txt": content.decode()
        for path, content in built.tree.files.items()
        if not path.startswith(_SAME_EVERYWHERE)
    }


@pytest.mark.parametrize("emitter", PARTS)
def test_emitter(emitter: str, request: pytest.FixtureRequest) -> None:
    files = made(emitter)
    assert files, "the API of these tests gives every emitter something to write"
    folder = HERE / emitter
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
