"""Fields that a schema allows without declaring them: they are read, typed, and written where they were."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.openapi import decode
from apimachinery.openapi.encoding import encode
from apimachinery.typed.undeclared import Open, OpenPart
from apimachinery.typed.unions import Untagged
from kubewright.cli import main

KEYS = st.sampled_from(["name", "bornAt", "inner", "either", "many", "more", "additionalProperties"])
JSON = st.recursive(
    st.sampled_from([None, 0, "x", True, 1.5]),
    lambda each: st.lists(each, max_size=2) | st.dictionaries(KEYS, each, max_size=3),
)


class Leaf(OpenPart, kw_only=True):
    name: str | None = None
    additional_properties: dict[str, Any] = msgspec.field(default_factory=dict)


class Tree(OpenPart, kw_only=True):
    born_at: str | None = None
    inner: Open[Tree] | None = None
    either: Untagged[Open[Leaf] | list[int] | str] | None = None
    many: dict[str, list[Open[Leaf]]] | None = None
    additional_properties: dict[str, Any] = msgspec.field(default_factory=dict)


LEAVES = st.fixed_dictionaries(
    {}, optional={"name": st.just("x"), "more": JSON, "additionalProperties": JSON}
)
TREES = st.recursive(
    LEAVES.map(lambda leaf: {key: item for key, item in leaf.items() if key != "name"}),
    lambda each: st.fixed_dictionaries(
        {},
        optional={
            "bornAt": st.just("x"),
            "inner": each,
            "either": LEAVES | st.just([1]) | st.just("x"),
            "many": st.dictionaries(KEYS, st.lists(LEAVES, max_size=2), max_size=2),
            "name": JSON,
            "more": JSON,
        },
    ),
    max_leaves=4,
)


@given(TREES)
def test_what_is_read_is_written(value: Any) -> None:
    made = decode(json.dumps(value), Tree)
    assert json.loads(encode(made)) == value
    assert json.loads(encode([made])) == [value]
    assert set(made.additional_properties) == set(value) - {"bornAt", "inner", "either", "many"}


def test_a_declared_field_wins() -> None:
    assert json.loads(encode(Leaf(name="a", additional_properties={"name": "b", "more": 1}))) == {
        "name": "a",
        "more": 1,
    }


DOCUMENT = """
openapi: 3.0.3
info: {title: Shop, version: "1"}
paths:
  /pets:
    get:
      operationId: listPets
      responses:
        "200": {description: Pets., content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
components:
  schemas:
    Pet:
      allOf:
      - {type: object, required: [name], properties: {name: {type: string}}}
      - {type: object, additionalProperties: {type: object, properties: {size: {type: integer}}}}
    Closed: {type: object, properties: {name: {type: string}}}
    Own: {type: object, properties: {additionalProperties: {type: string}}, additionalProperties: true}
    Kept: {type: object, x-kubernetes-preserve-unknown-fields: true, allOf: [{properties: {name: {minLength: 1}}}]}
    Open: {type: object, properties: {mother: {$ref: "#/components/schemas/Pet"}}}
"""


def test_generated_classes_have_a_field_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.yaml").write_text(DOCUMENT)
    assert (
        main(
            [
                "generate",
                str(tmp_path / "shop.yaml"),
                "--package",
                "undeclared_api",
                "-o",
                str(tmp_path),
                "-q",
            ]
        )
        == 0
    )
    monkeypatch.syspath_prepend(tmp_path)
    models = importlib.import_module("undeclared_api.models.models")
    try:
        value = {"mother": {"name": "Bella", "collar": {"size": 3}}}
        made = decode(json.dumps(value), models.Open_)
        assert made.mother.additional_properties["collar"].size == 3
        assert json.loads(encode(made)) == value
        with pytest.raises(msgspec.ValidationError, match=r"Expected `int \| null`, got `str`"):
            decode('{"name": "Bella", "collar": {"size": "3"}}', models.Pet)
        names = {name: getattr(models, name).__struct_fields__ for name in ("Pet", "Closed", "Own")}
        assert names == {
            "Pet": ("name", "additional_properties"),
            "Closed": ("name",),
            "Own": ("additional_properties",),
        }
        assert not issubclass(models.Own, OpenPart)
        assert models.Kept == dict[str, Any]
    finally:
        for name in [name for name in sys.modules if name.startswith("undeclared_api")]:
            del sys.modules[name]
