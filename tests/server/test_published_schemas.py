"""Schemas of custom resources as OpenAPI v2 publishes them."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.server.describe.openapi_schemas import OBJECT_META, v2_definition, with_described_metadata
from apimachinery.wire.protobuf_values import without_zeros

GVK = {"x-kubernetes-group-version-kind": [{"group": "g.io", "kind": "K", "version": "v1"}]}
FIELD: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "published"),
    [
        ({**FIELD, **GVK}, {**FIELD, **GVK}),
        ({**FIELD, **GVK, "x-kubernetes-preserve-unknown-fields": True}, {"type": "object", **GVK}),
        ({**FIELD, **GVK, "x-kubernetes-preserve-unknown-fields": False}, None),
    ],
)
def test_a_definition_that_allows_anything_names_no_field(schema: Any, published: Any) -> None:
    assert v2_definition(schema) == (schema if published is None else published)


def test_every_field_of_metadata_is_described() -> None:
    names = ("name", "labels", "uid", "finalizers", "managedFields")
    plain = {OBJECT_META: {"type": "object", "properties": {name: {"type": "string"} for name in names}}}
    described = with_described_metadata(plain)
    assert all(field["description"] for field in described[OBJECT_META]["properties"].values())
    assert "description" not in plain[OBJECT_META]["properties"]["name"]


def test_schemas_within_schemas_lose_what_their_struct_leaves_out() -> None:
    sent = {
        "id": "",
        "type": "object",
        "uniqueItems": False,
        "minProperties": 0,
        "x-kubernetes-preserve-unknown-fields": False,
        "properties": {"a": {"type": "string", "pattern": "", "nullable": True}},
        "allOf": [{"title": "", "required": ["a"]}],
        "default": {"a": "", "b": False},
    }
    assert without_zeros(sent) == {
        "type": "object",
        "minProperties": 0,
        "x-kubernetes-preserve-unknown-fields": False,
        "properties": {"a": {"type": "string", "nullable": True}},
        "allOf": [{"required": ["a"]}],
        "default": {"a": "", "b": False},
    }
