"""Documents that know nothing of Kubernetes: composition, tagged unions, faulty ones with ``--lenient``."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from apimachinery.openapi import decode
from kubewright.cli import main

Json = Any
TEXT = {"type": "string"}


def ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def document(**schemas: Json) -> Json:
    return {
        "openapi": "3.0.0",
        "info": {"title": "Pets", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }


def animal(**properties: Json) -> Json:
    return {"type": "object", "required": ["kind"], "properties": {"kind": TEXT, **properties}}


PETS = document(
    NewPet={"type": "object", "required": ["name"], "properties": {"name": TEXT, "y": {"type": "number"}}},
    Pet={
        "allOf": [
            ref("NewPet"),
            {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}},
        ],
        "description": "A pet with a number.",
    },
    Kitten={"allOf": [ref("Pet")], "properties": {"mother": ref("Pet")}, "type": "object"},
    Animal={
        "oneOf": [ref("Cat"), ref("Dog")],
        "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/components/schemas/Cat"}},
    },
    Cat=animal(lives={"type": "integer"}),
    Dog=animal(bark={"type": "boolean"}),
    Zoo={"type": "object", "properties": {"animals": {"type": "array", "items": ref("Animal")}}},
    Either={"oneOf": [ref("Pet"), ref("Zoo")]},
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return tmp_path


def generate(value: Json, package: str, *options: str) -> int:
    Path("spec.json").write_text(json.dumps(value))
    return main(["generate", "spec.json", "--package", package, "--output", ".", "-q", "-j1", *options])


def test_models_of_an_ordinary_document(folder: Path) -> None:
    assert generate(PETS, "pets_api") == 0
    models = importlib.import_module("pets_api.models")
    assert models.Pet(name="a", id=1).y is None
    assert models.Pet.__doc__.startswith("A pet with a number.")
    assert models.Kitten(name="a", id=1, mother=models.Pet(name="b", id=2)).mother.id == 2
    zoo = decode(b'{"animals": [{"kind": "cat", "lives": 9}, {"kind": "Dog"}]}', models.Zoo)
    assert zoo.animals == [models.Cat(lives=9), models.Dog()]
    assert json.loads(msgspec.json.encode(zoo))["animals"][0] == {"kind": "cat", "lives": 9}
    text = (folder / "pets_api/models/models.py").read_text()
    assert "Either: TypeAlias = Untagged[Pet | Zoo]" in text
    assert '"""Models of this API."""' in text and "Dog, ." not in text


def told_apart(*kinds: Json, mapping: Json = None) -> Json:
    """A union of two objects, each with what it says of its discriminator."""
    members = {name: animal(kind=kind) for name, kind in zip(("A", "B"), kinds, strict=True)}
    about = {"propertyName": "kind", **({"mapping": mapping} if mapping else {})}
    spec = document(Either={"oneOf": [ref("A"), ref("B")], "discriminator": about}, **members)
    spec["components"]["schemas"]["Holder"] = {"type": "object", "properties": {"it": ref("Either")}}
    return spec


@pytest.mark.parametrize(
    ("kinds", "mapping", "words"),
    [
        (({"enum": ["a"], **TEXT}, {"enum": ["b"], **TEXT}), None, ("a", "b")),
        (
            ({"enum": ["a"], **TEXT}, {"enum": ["b"], **TEXT}),
            {"a": "A", "b": "#/components/schemas/B"},
            ("a", "b"),
        ),
        (({"enum": ["a", "c"], **TEXT}, {"enum": ["b"], **TEXT}), {"c": "A", "b": "B"}, ("c", "b")),
        ((TEXT, TEXT), {"x": "A"}, ("x", "B")),
        (({"enum": ["a", "c"], **TEXT}, TEXT), None, ("a c", "B")),
        ((TEXT, TEXT), {"x": "A", "y": "A", "z": "B"}, ("x y", "z")),
    ],
)
def test_members_are_known_by_what_they_allow(folder: Path, kinds: Json, mapping: Json, words: Json) -> None:
    name = f"apart{abs(hash(str((kinds, mapping)))) % 10**8}_api"
    assert generate(told_apart(*kinds, mapping=mapping), name) == 0
    models = importlib.import_module(f"{name}.models")
    for known, cls in zip(map(str.split, words), (models.A, models.B), strict=True):
        for word in known:
            holder = decode(json.dumps({"it": {"kind": word}}), models.Holder)
            assert (type(holder.it), holder.it.kind) == (cls, word)
            given = cls(kind=word)
            assert json.loads(msgspec.json.encode(models.Holder(it=given))) == {"it": {"kind": word}}
        if len(known) == 1:
            assert cls() == given
        else:
            with pytest.raises(TypeError, match="kind"):
                cls()
    with pytest.raises(msgspec.ValidationError, match=r"Fits no member of `A \| B` .* at `\$.it`"):
        decode(b'{"it": {"kind": "other"}}', models.Holder)


UNIONS = document(
    Cat={"type": "object", "required": ["lives"], "properties": {"lives": {"type": "integer"}}},
    Dog={"type": "object", "properties": {"bark": {"type": "boolean"}, "lives": {"type": "integer"}}},
    Animal={"oneOf": [ref("Cat"), ref("Dog"), {"type": "null"}]},
    Names={"anyOf": [TEXT, {"type": "array", "items": TEXT}]},
    Anything={"anyOf": [ref("Cat"), {}]},
    Holder={
        "type": "object",
        "properties": {
            "animal": ref("Animal"),
            "names": ref("Names"),
            "size": {"type": ["string", "integer", "null"], "minLength": 2, "enum": ["xl", 1, None]},
            "parts": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {"type": "object", "title": "Text part", "properties": {"text": TEXT}},
                        {
                            "type": "object",
                            "properties": {"type": {"const": "image"}, "url": {"oneOf": [ref("Cat"), TEXT]}},
                        },
                        {"type": "array", "items": {"type": "object", "properties": {"deep": TEXT}}},
                    ]
                },
            },
            "bounds": {
                "type": "object",
                "properties": {"a": TEXT, "b": TEXT},
                "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            },
            "anything": ref("Anything"),
        },
    },
)
UNIONS["openapi"] = "3.1.0"


def test_unions_that_only_values_tell_apart(folder: Path) -> None:
    assert generate(UNIONS, "unions_api") == 0
    models = importlib.import_module("unions_api.models")
    value = {
        "animal": {"lives": 9},
        "names": ["a"],
        "size": 1,
        "parts": [{"type": "image", "url": {"lives": 1}}, {"text": "t"}, [{"deep": "d"}]],
        "bounds": {"a": "x"},
        "anything": [1],
    }
    holder = decode(json.dumps(value), models.Holder)
    assert holder.animal == models.Cat(lives=9)
    image, text, (deep,) = holder.parts
    assert (image.url, text) == (models.Cat(lives=1), models.TextPart(text="t"))
    assert type(image).__name__ == "HolderPartImage" and deep.deep == "d"
    assert json.loads(msgspec.json.encode(holder)) == value
    assert decode(b'{"animal": {"lives": 9, "bark": true}}', models.Holder).animal.bark is True
    assert decode(b'{"animal": null}', models.Holder).animal is None
    written = (folder / "unions_api/models/models.py").read_text()
    assert "Animal: TypeAlias = Untagged[Cat | Dog]" in written
    assert "Names: TypeAlias = str | list[str]\n" in written
    assert 'size: Literal["xl"] | Literal[1] | UnsetType | None' in written
    assert "bounds: HolderBounds | None" in written and "anything: Any" in written
    with pytest.raises(msgspec.ValidationError, match=r"Fits no member .*`\$.lives`.* at `\$.animal`"):
        decode(b'{"animal": {"lives": "9"}}', models.Holder)


@pytest.mark.parametrize("models", ["dataclass", "pydantic", "typeddict"])
def test_unions_in_other_flavours(folder: Path, models: str) -> None:
    name = f"{models}_unions_api"
    assert generate(UNIONS, name, "--models", models) == 0
    made = importlib.import_module(f"{name}.models.models")
    value = {"animal": {"bark": True}, "parts": [{"url": {"lives": 2}, "type": "image"}], "names": "n"}
    if models == "dataclass":
        form = importlib.import_module(f"{name}.json_form")
        holder = form.decode(value, made.Holder)
        assert (type(holder.animal), form.encode(holder)) == (made.Dog, value)
        assert type(form.decode({"animal": {"lives": 1, "bark": True}}, made.Holder).animal) is made.Dog
    elif models == "pydantic":
        holder = made.Holder.model_validate(value)
        assert type(holder.animal) is made.Dog and type(holder.parts[0].url) is made.Cat
    else:
        assert "HolderPartImage" in str(made.Holder.__annotations__["parts"])


def test_a_faulty_document_is_read_as_far_as_it_goes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = document(
        Thing={
            "type": "object",
            "properties": {
                "mode": {"type": "string", "enum": ["a", "b"], "default": ""},
                "list": {"type": "array"},
                "other": ref("Nowhere"),
            },
        }
    )
    assert generate(faulty, "faulty_api") == 2
    capsys.readouterr()
    assert generate(faulty, "faulty_api", "--lenient") == 0
    said = capsys.readouterr().err
    assert "warning K102" in said and "warning K201" in said and "error" not in said
    thing = importlib.import_module("faulty_api.models").Thing
    assert decode(b'{"mode": "a", "list": [1], "other": {"x": 1}}', thing).other == {"x": 1}


def test_null_as_openapi_3_1_says_it(folder: Path) -> None:
    null = {"type": "null"}
    spec = document(
        Pet={"type": "object", "properties": {"name": TEXT}},
        Owner={
            "type": "object",
            "required": ["pet", "age", "role", "kind"],
            "properties": {
                "pet": {"anyOf": [ref("Pet"), null], "description": "Perhaps."},
                "age": {"type": ["integer", "null"]},
                "role": {"oneOf": [{**TEXT, "enum": ["a", "b"]}, null]},
                "kind": {**TEXT, "const": "owner"},
                "nothing": null,
            },
        },
    )
    spec["openapi"] = "3.1.0"
    assert generate(spec, "null_api") == 0
    models = importlib.import_module("null_api.models")
    made = decode(b'{"pet": null, "age": null, "role": "a", "kind": "owner"}', models.Owner)
    assert (made.pet, made.age, made.role) == (None, None, "a")
    assert json.loads(msgspec.json.encode(made))["pet"] is None
    text = (folder / "null_api/models/models.py").read_text()
    assert "pet: Pet | None\n" in text and 'role: Literal["a", "b"] | None\n' in text
    assert 'kind: Literal["owner"]\n' in text


@pytest.mark.parametrize("required", [True, False])
def test_null_is_sent_where_the_schema_has_it_anywhere(folder: Path, required: bool) -> None:
    by_definition = {"Size": {**TEXT, "nullable": True}, "Alias": ref("Size")}
    fields = {
        "own": {**TEXT, "nullable": True},
        "by_reference": ref("Size"),
        "by_alias": ref("Alias"),
        "by_member": {"anyOf": [{"type": "integer", "nullable": True}, {"type": "array", "items": TEXT}]},
        "by_object": ref("Part"),
        "never": TEXT,
    }
    spec = document(
        **by_definition,
        Part={"type": "object", "nullable": True, "properties": {"a": TEXT}},
        Holder={"type": "object", "properties": fields, **({"required": list(fields)} if required else {})},
    )
    name = f"nulls_{required}_api".lower()
    assert generate(spec, name) == 0
    holder = importlib.import_module(f"{name}.models").Holder
    nulls = dict.fromkeys([field for field in fields if field != "never"])
    value = {**nulls, "never": "x"}
    assert json.loads(msgspec.json.encode(holder(**value))) == value
    assert decode(json.dumps(value), holder) == holder(**value)
    if not required:
        assert json.loads(msgspec.json.encode(holder())) == {}
