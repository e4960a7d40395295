"""The form objects take in typed structs, over a small made-up API."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.schema.typed_form import compile_typed_form

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
DEFINITIONS: dict[str, Any] = {
    "Thing": {
        "properties": {
            "kind": {"type": "string"},
            "spec": {"$ref": "#/definitions/Spec"},
            "status": {"$ref": "#/definitions/Status"},
            "at": {"$ref": f"#/definitions/{META}Time"},
            "exactly": {"$ref": f"#/definitions/{META}MicroTime"},
            "limits": {
                "type": "object",
                "additionalProperties": {
                    "$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"
                },
            },
        }
    },
    "Spec": {
        "properties": {
            "replicas": {"type": "integer"},
            "paused": {"type": "boolean"},
            "name": {"type": "string"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "parts": {"type": "array", "items": {"$ref": "#/definitions/Spec"}},
            "part": {"$ref": "#/definitions/Spec"},
        }
    },
    "Status": {"properties": {"ready": {"type": "integer"}, "items": {"type": "array"}}},
    META + "Time": {"type": "string", "format": "date-time"},
    META + "MicroTime": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
}
ZERO = {
    "Thing": ({"spec": {}, "status": {}, "at": None}, frozenset[str]()),
    "Spec": ({"name": ""}, frozenset({"replicas"})),
    "Status": ({"items": None}, frozenset[str]()),
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what is always written": ({}, {"spec": {"name": ""}, "status": {"items": None}, "at": None}),
    "zero values": (
        {"spec": {"replicas": 0, "paused": False, "labels": {}, "parts": []}, "status": {"ready": 0}},
        {"spec": {"name": "", "replicas": 0}, "status": {"items": None}, "at": None},
    ),
    "nulls": (
        {"spec": {"replicas": None, "part": None, "name": None}, "status": None},
        {"spec": {"name": ""}, "status": {"items": None}, "at": None},
    ),
    "an empty struct behind a pointer stays": (
        {"spec": {"part": {}}},
        {"spec": {"name": "", "part": {"name": ""}}, "status": {"items": None}, "at": None},
    ),
    "times and quantities": (
        {"at": "2020-01-01T02:00:00.9+02:00", "exactly": "2020-01-01T00:00:00Z", "limits": {"cpu": "1000m"}},
        {
            "at": "2020-01-01T00:00:00Z",
            "exactly": "2020-01-01T00:00:00.000000Z",
            "limits": {"cpu": "1"},
            "spec": {"name": ""},
            "status": {"items": None},
        },
    ),
    "values of a wrong type stay": (
        {"spec": "x", "at": 3, "limits": [1]},
        {"spec": "x", "at": 3, "limits": [1], "status": {"items": None}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    sent, expected = copy.deepcopy(CASES[name])
    to_typed_form = compile_typed_form("Thing", DEFINITIONS, ZERO)
    to_typed_form(sent)
    assert sent == expected


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["", "a", "1Gi", "2020-01-01T00:00:00Z"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["spec", "status", "at", "limits", "part", "parts", "name"]), inner)
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["spec", "status", "at", "limits", "exactly"]), JSON))
def test_twice_is_once_and_nothing_fails(obj: dict[str, Any]) -> None:
    to_typed_form = compile_typed_form("Thing", DEFINITIONS, ZERO)
    to_typed_form(obj)
    once = copy.deepcopy(obj)
    to_typed_form(obj)
    assert obj == once
