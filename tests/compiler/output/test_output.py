"""What stands on disk after a run: all of it or nothing, nobody's own files touched, no trace of what went."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from kubewright import output
from kubewright.cli import main
from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import File

SPEC = """\
swagger: "2.0"
info: {title: Shop, version: v1}
paths: {}
definitions:
  shop.v1.Order:
    type: object
    x-kubernetes-group-version-kind: [{group: shop.example.com, version: v1, kind: Order}]
    properties:
      apiVersion: {type: string}
      kind: {type: string}
      total: {type: integer}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "shop.yaml").write_text(SPEC)
    return tmp_path


def generate(*options: str) -> int:
    return main(["generate", "shop.yaml", "--package", "shop_api", "-q", "-j1", *options])


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def tree(folder: Path, **files: str) -> output.Tree:
    made = output.Tree(folder)
    made.add([File(name.replace("__", "."), text) for name, text in files.items()], Diagnostics(), "test")
    return made


def write(made: output.Tree) -> None:
    diagnostics = Diagnostics()
    changes = made.compare(diagnostics)
    assert not list(diagnostics)
    made.write(changes)


def test_same_input_same_bytes(folder: Path) -> None:
    assert generate() == 0
    first = snapshot(folder / "generated" / "shop_api")
    assert generate("--force") == 0
    assert generate("--output", "again") == 0
    assert snapshot(folder / "generated" / "shop_api") == first == snapshot(folder / "again" / "shop_api")


def test_manifest_is_what_sha256sum_reads(folder: Path) -> None:
    assert generate() == 0
    package = folder / "generated" / "shop_api"
    for line in (package / output.MANIFEST).read_text().splitlines():
        digest, path = line.split("  ")
        assert hashlib.sha256((package / path).read_bytes()).hexdigest() == digest


def test_check_says_nothing_when_in_order_and_shows_drift(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate("--check") == 1
    assert not (folder / "generated" / "shop_api").exists()
    assert generate() == 0
    capsys.readouterr()
    assert generate("--check") == 0
    assert capsys.readouterr().out == ""
    (folder / "shop.yaml").write_text(SPEC.replace("total: {type: integer}", "total: {type: string}"))
    before = snapshot(folder / "generated" / "shop_api")
    assert generate("--check") == 1
    assert "-    total: int | None = None\n+    total: str | None = None" in capsys.readouterr().out
    assert snapshot(folder / "generated" / "shop_api") == before


def test_an_edited_generated_file_is_drift(folder: Path) -> None:
    assert generate() == 0
    models = folder / "generated" / "shop_api" / "shop_v1" / "models.py"
    written = models.read_text()
    models.write_text(written + "# mine\n")
    assert generate("--check") == 1
    assert generate() == 0
    assert models.read_text() == written


def test_files_no_longer_produced_go_and_others_stay(folder: Path) -> None:
    assert generate() == 0
    package = folder / "generated" / "shop_api"
    mine = package / "shop_v1" / "mine.py"
    mine.write_text("kept = True\n")
    inode = mine.stat().st_ino
    (folder / "shop.yaml").write_text(SPEC.replace("version: v1, kind", "version: v2, kind"))
    assert generate() == 0
    assert (package / "shop_v2" / "models.py").is_file()
    assert [path.name for path in (package / "shop_v1").iterdir()] == ["mine.py"]
    assert mine.stat().st_ino == inode


def test_a_handwritten_file_in_the_way_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    package = folder / "generated" / "shop_api"
    package.mkdir(parents=True)
    (package / "scheme.py").write_text("mine\n")
    assert generate() == 2
    assert "error K403: scheme.py is in the way: it was not generated" in capsys.readouterr().err
    assert snapshot(package) == {"scheme.py": b"mine\n"}


def test_only_leaves_other_files_alone(folder: Path) -> None:
    assert generate() == 0
    before = snapshot(folder / "generated" / "shop_api")
    (folder / "shop.yaml").write_text(SPEC.replace("total: {type: integer}", "total: {type: string}"))
    assert generate("--only", "definitions") == 0
    after = snapshot(folder / "generated" / "shop_api")
    assert {name for name in before if before[name] != after[name]} == {"definitions.json", output.MANIFEST}
    assert generate("--check") == 1


@pytest.mark.parametrize("moment", ["_exchange", "read_manifest"])
def test_a_run_that_dies_leaves_the_old_tree(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "api"
    write(tree(package, a__py="old\n"))
    before = snapshot(tmp_path)
    made = tree(package, a__py="new\n", b__py="new\n")
    changes = made.compare(Diagnostics())

    def die(*arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(output, moment, die)
        with pytest.raises(KeyboardInterrupt):
            made.write(changes)
    assert snapshot(tmp_path) == before
    write(tree(package, a__py="new\n", b__py="new\n"))
    assert sorted(path.name for path in package.iterdir()) == [output.MANIFEST, "a.py", "b.py"]


def test_without_renameat2_two_renames_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "api"
    write(tree(package, a__py="old\n"))
    monkeypatch.setattr(os, "name", "other")
    write(tree(package, a__py="new\n"))
    assert (package / "a.py").read_text() == "new\n"
    assert [path.name for path in tmp_path.iterdir()] == ["api"]


def test_what_a_crash_between_two_renames_left_is_put_back(tmp_path: Path) -> None:
    package = tmp_path / "api"
    write(tree(package, a__py="old\n"))
    package.rename(tmp_path / ".api.1.old")
    (tmp_path / ".api.999999999.new").mkdir()
    output.recover(package)
    assert (package / "a.py").read_text() == "old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["api"]


@pytest.mark.parametrize("path", ["../out.py", "/etc/x.py", "a/../../b.py", output.MANIFEST, "a//b.py"])
def test_emitters_cannot_leave_the_folder(path: str, tmp_path: Path) -> None:
    diagnostics = Diagnostics()
    output.Tree(tmp_path / "api").add([File(path, "")], diagnostics, "bad")
    assert [item.code for item in diagnostics] == ["K402"]


def test_a_manifest_cannot_name_files_elsewhere(tmp_path: Path) -> None:
    package = tmp_path / "api"
    package.mkdir()
    (tmp_path / "victim").write_text("mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    (package / output.MANIFEST).write_text(f"{digest}  ../victim\n{digest}  /etc/passwd\n<<<<<<< ours\n")
    assert output.read_manifest(package) == {}
    write(tree(package, a__py="new\n"))
    assert (tmp_path / "victim").read_text() == "mine"


def test_types_are_counted_in_what_was_made(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*options: str) -> str:
        assert main(["generate", "shop.yaml", "--package", "shop_api", "-j1", "--force", *options]) == 0
        return capsys.readouterr().out.partition(";")[0]

    assert printed() == "shop_api: 1 definition read, 1 type in the models"
    assert printed("--only", "resources") == "shop_api: 1 definition read"


def test_a_definition_without_a_type_fails_the_run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubewright.emit.code import layout

    monkeypatch.setattr(layout, "newspaper_order", lambda definitions: [])
    assert generate() == 2
    assert "K605: no type was made of shop.v1.Order" in capsys.readouterr().err
    assert not (folder / "generated" / "shop_api").exists()
