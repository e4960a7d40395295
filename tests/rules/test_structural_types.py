"""Schemas from before types were required: which type is inferred, and that v1 then takes them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from apimachinery.conversion.structural import structural_types_to_hub
from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create

EITHER = [{"type": "integer"}, {"type": "string"}]
ANY = {"x-kubernetes-preserve-unknown-fields": True}
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "string"}, {"type": "string"}),
    ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": ANY}}),
    ({"required": ["a"]}, {"type": "object", "required": ["a"]}),
    (
        {"additionalProperties": {"pattern": "^a"}},
        {"type": "object", "additionalProperties": {"type": "string", "pattern": "^a"}},
    ),
    ({"items": {"maxLength": 3}}, {"type": "array", "items": {"type": "string", "maxLength": 3}}),
    ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
    ({"enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
    ({"enum": ["a", 1]}, {"enum": ["a", 1], **ANY}),
    ({"default": True}, {"type": "boolean", "default": True}),
    ({"format": "int64"}, {"type": "integer", "format": "int64"}),
    ({"format": "int64", "minimum": 1}, {"type": "integer", "format": "int64", "minimum": 1}),
    ({"default": 1, "minimum": 1}, {"type": "number", "default": 1, "minimum": 1}),
    ({"minimum": 0}, {"type": "number", "minimum": 0}),
    ({"format": "date-time"}, {"type": "string", "format": "date-time"}),
    ({"anyOf": EITHER}, {"x-kubernetes-int-or-string": True, "anyOf": EITHER}),
    ({"anyOf": EITHER[::-1]}, {"x-kubernetes-int-or-string": True, "anyOf": EITHER}),
    (
        {"oneOf": [{"type": "string", "pattern": "a"}, {"type": "string", "pattern": "b"}]},
        {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]},
    ),
    ({"minLength": 1, "minItems": 1}, {"minLength": 1, "minItems": 1, **ANY}),
    ({"description": "anything"}, {"description": "anything", **ANY}),
]  # fmt: skip


def definition(field: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {"f": field}}}}},
                }
            ],
        },
    }


@pytest.mark.parametrize(("field", "wanted"), CASES)
def test_a_type_is_inferred_and_v1_takes_the_schema(field: dict[str, Any], wanted: dict[str, Any]) -> None:
    crd = definition(deepcopy(field))
    structural_types_to_hub(crd)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert schema["type"] == schema["properties"]["spec"]["type"] == "object"
    made = schema["properties"]["spec"]["properties"]["f"]
    assert made == wanted
    assert next(iter(made)) == next(iter(wanted))
    before = deepcopy(crd)
    structural_types_to_hub(crd)
    assert crd == before
    default_crd(crd)
    prepare_crd_for_create(crd)
    if "enum" not in field or len({type(each) for each in field["enum"]}) == 1:
        assert [str(fault) for fault in check_crd(crd)] == []
