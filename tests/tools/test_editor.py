"""``kubewright editor``: settings that name the schemas, and nothing of the user's is lost."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

from tests.crds import crd_text
from tests.tools.command import kubewright

SPEC = "{type: object, required: [size], properties: {size: {type: integer, minimum: 1}}}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "box.json").write_text(crd_text("Box", SPEC))
    manifests = tmp_path / "manifests"
    (manifests / "deep").mkdir(parents=True)
    (manifests / "deep" / "box.yaml").write_text("apiVersion: example.com/v1\nkind: Box\n")
    return manifests


def editor(folder: Path, *more: str) -> tuple[int, str, str]:
    return kubewright("editor", folder, "--crds", folder.parent / "crds", *more)


def test_settings_name_a_schema_that_judges(folder: Path) -> None:
    code, out, err = editor(folder)
    assert (code, err) == (0, "")
    assert "schemas of 1 kind;" in out
    settings = json.loads((folder / ".vscode" / "settings.json").read_text())
    assert settings == {"yaml.schemas": {"./.schemas/all.json": ["**/*.yaml", "**/*.yml"]}}
    schema = json.loads((folder / ".schemas" / "all.json").read_text())
    box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": "a"}}
    assert jsonschema.Draft7Validator(schema).is_valid({**box, "spec": {"size": 1}})
    for wrong in ({"size": 0}, {}, {"size": 1, "sise": 2}):
        assert not jsonschema.Draft7Validator(schema).is_valid({**box, "spec": wrong})
    assert jsonschema.Draft7Validator(schema).is_valid({"apiVersion": "other/v1", "kind": "Box"})
    mapping = ElementTree.parse(folder / ".idea" / "jsonSchemas.xml")
    assert mapping.find(".//option[@name='relativePathToSchema']").get("value") == ".schemas/all.json"  # type: ignore[union-attr]
    assert sorted(path.name for path in folder.iterdir()) == [".idea", ".schemas", ".vscode", "deep"]


def test_settings_of_the_user_stay(folder: Path) -> None:
    path = folder / ".vscode" / "settings.json"
    path.parent.mkdir()
    mine = {"editor.tabSize": 2, "yaml.schemas": {"mine.json": "x.yaml"}}
    path.write_text(json.dumps(mine))
    assert editor(folder)[0] == editor(folder)[0] == 0
    after = json.loads(path.read_text())
    assert after.pop("yaml.schemas") == {
        "mine.json": "x.yaml",
        "./.schemas/all.json": ["**/*.yaml", "**/*.yml"],
    }
    assert after == {"editor.tabSize": 2}


def test_settings_with_comments_are_left_alone(folder: Path) -> None:
    path = folder / ".vscode" / "settings.json"
    path.parent.mkdir()
    path.write_text("// mine\n{}\n")
    code, _, err = editor(folder)
    assert code == 2
    assert "is not plain JSON" in err and 'add "yaml.schemas"' in err
    assert path.read_text() == "// mine\n{}\n"


def test_modelines_are_put_once_and_follow_the_schemas(folder: Path) -> None:
    manifest = folder / "deep" / "box.yaml"
    assert editor(folder, "--modelines")[0] == 0
    first = "# yaml-language-server: $schema=../.schemas/all.json\n"
    assert manifest.read_text() == f"{first}apiVersion: example.com/v1\nkind: Box\n"
    assert "in 0 files" in editor(folder, "--modelines")[1]
    editor(folder, "--modelines", "--schemas", str(folder.parent / "schemas"))
    assert manifest.read_text().startswith(
        "# yaml-language-server: $schema=../../schemas/all.json\napiVersion"
    )


def test_every_document_has_a_modeline_of_its_own(folder: Path) -> None:
    """Language servers read one of a document for that document alone."""
    line = "# yaml-language-server: $schema=../.schemas/all.json"
    manifest = folder / "deep" / "boxes.yaml"
    other = line.replace("../.schemas", "gone")
    manifest.write_bytes(
        f"# ours\n---\n# a box\nkind: Box\n--- # next\n{other}\nkind: Box\n---\n# none\n---\ntext: |\n  ---\n".encode()
    )
    (folder / "deep" / "dos.yaml").write_bytes(b"kind: Box\r\n---\r\nkind: Box\r\n")
    assert "in 3 files" in editor(folder, "--modelines")[1]
    assert manifest.read_text() == (
        f"{line}\n# ours\n---\n# a box\nkind: Box\n--- # next\n{line}\nkind: Box\n"
        f"---\n{line}\n# none\n---\ntext: |\n  ---\n"
    )
    assert (folder / "deep" / "dos.yaml").read_bytes() == (
        f"{line}\r\nkind: Box\r\n---\r\n{line}\r\nkind: Box\r\n".encode()
    )
    assert "in 0 files" in editor(folder, "--modelines")[1]


def test_what_cannot_be_used_is_said(folder: Path) -> None:
    assert kubewright("editor", folder)[0] == 2
    assert "name CRDs by --crds" in kubewright("editor", folder)[2]
    assert "there is no such folder" in kubewright("editor", folder / "none", "--crds", "x")[2]
    assert kubewright("editor", folder, "--crds", folder / "none")[0] == 2
    assert not (folder / ".vscode").exists()
