"""OpenAPI documents of several files: what is brought in, what it is called, and where its faults are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.cli import main
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.freshness import fingerprint
from kubewright.ir.api import Api
from kubewright.ir.types import Struct
from kubewright.pipeline import read_api

FILES = {
    "shop.yaml": """
openapi: 3.0.3
info:
  title: Shop
  version: "1"
  description: {$ref: "texts.yml#/intro"}
paths:
  /pets: {$ref: "paths/pets.yml"}
components:
  schemas:
    Owner: {$ref: "models/owner.yml"}
""",
    "texts.yml": "intro: A shop.\n",
    "paths/pets.yml": """
get:
  operationId: listPets
  parameters: [{$ref: "../shared.yml#/limit"}]
  responses:
    "200": {$ref: "../responses.yml#/pets"}
    default: {$ref: "../responses.yml#/problem"}
  x-samples: [{$ref: "no/such/file.yml"}]
""",
    "shared.yml": """
limit: {name: limit, in: query, schema: {$ref: "#/page/size"}}
page: {$ref: "models/page.yml"}
""",
    "models/page.yml": "size: {type: integer}\n",
    "responses.yml": """
pets:
  description: Pets.
  content: {application/json: {schema: {type: array, items: {$ref: "models/pet.yml"}}}}
problem:
  description: No.
  content:
    application/json:
      schema: {type: object, properties: {title: {type: string}}}
      examples: {$ref: "examples.yml"}
""",
    "models/pet.yml": """
type: object
required: [name]
properties:
  name: {type: string}
  mother: {$ref: "pet.yml"}
  owner: {$ref: "owner.yml"}
""",
    "models/owner.yml": "type: object\nproperties: {pets: {type: array, items: {$ref: pet.yml}}}\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content.lstrip())
    return tmp_path


def read(folder: Path) -> tuple[Api, list[str]]:
    diagnostics = Diagnostics()
    package = Package(name="shop", sources=(PathSource(folder / "shop.yaml"),))
    api = read_api(package, diagnostics, operations=True)
    return api, [str(each).removeprefix(f"{folder}/") for each in diagnostics]


def write(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_what_other_files_hold_is_brought_in(folder: Path) -> None:
    api, said = read(folder)
    assert said == []
    # A component that is a reference names what is there, however others refer to it.
    assert [each.name for each in api.definitions] == ["Owner", "ProblemResponse", "pet", "size"]
    assert api.interface is not None
    (operation,) = api.interface.operations
    assert [parameter.name for parameter in operation.parameters] == ["limit"]
    assert [answer.status for answer in operation.answers] == ["200", "default"]


@pytest.mark.parametrize("name", ["links", "example", "examples", "x-mother"])
def test_a_property_may_be_called_as_what_is_left_out_elsewhere(name: str, folder: Path) -> None:
    (folder / "models/pet.yml").write_text(f"type: object\nproperties: {{{name}: {{$ref: owner.yml}}}}\n")
    api, said = read(folder)
    (pet,) = (each.value.type for each in api.definitions if each.name == "pet")
    assert said == [] and isinstance(pet, Struct)
    assert [field.wire_name for field in pet.fields] == [name]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("models/pet.yml", "{type: string}", "{type: strin}", "models/pet.yml:4:10: error K102: unknown type 'strin'"),
        ("models/pet.yml", "owner.yml", "keeper.yml", "cannot resolve $ref 'keeper.yml': there is no file keeper.yml"),
        ("paths/pets.yml", "#/pets", "#/cats", "responses.yml:1:1: error K201: nothing is at '/cats'"),
        ("models/pet.yml", "owner.yml", "https://a.example/owner.yml", "only files next to the document are read"),
        ("models/pet.yml", "owner.yml", "/etc/owner.yml", "only files next to the document are read"),
        ("models/page.yml", "{type: integer}", "{$ref: ../shared.yml#/page/size}", "leads back to itself"),
        ("paths/pets.yml", "operationId: listPets", "oops: 1", "not valid OpenAPI: the key 'oops' has no meaning here"),
    ],
)  # fmt: skip
def test_faults_are_told_in_the_file_that_has_them(
    folder: Path, name: str, old: str, new: str, said: str
) -> None:
    write(folder, name, old, new)
    assert any(said in each for each in read(folder)[1]), read(folder)[1]


def test_a_change_of_any_file_is_a_change(folder: Path) -> None:
    package = Package(name="shop", sources=(PathSource(folder / "shop.yaml"),))
    before = fingerprint(package)
    assert fingerprint(package) == before
    write(folder, "models/page.yml", "integer", "string")
    assert fingerprint(package) != before


def test_leniently_nothing_is_a_failure_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder, "shop.yaml", "paths/pets.yml", "paths/none.yml")
    write(folder, "shop.yaml", 'Owner: {$ref: "models/owner.yml"}', "{}")
    arguments = ["generate", str(folder / "shop.yaml"), "--package", "shop", "--output", str(folder)]
    assert main([*arguments, "--lenient", "-q", "-j1"]) == 2
    assert "error K003: nothing could be read" in capsys.readouterr().err
    assert not (folder / "shop").exists()
