"""Laws of defaulting, pruning and validation, tried on schemas and values made up by Hypothesis."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.crd.recorded import crd_schema

from apimachinery.crd import check_crd
from apimachinery.schema.custom import compile_custom
from apimachinery.schema.defaulting import compile_defaulter
from apimachinery.schema.node import SchemaNodeReader
from apimachinery.schema.pruning import compile_known, prune_value, unknown_paths
from apimachinery.schema.validation.check import SchemaChecker
from apimachinery.schema.validation.explain import explain
from apimachinery.schema.validation.lists import list_faults
from apimachinery.schema.validation.ratcheting import OldAndNew
from apimachinery.wire.strict import duplicate_fields, has_duplicate_fields

NAMES = st.sampled_from(["a", "b", "c", "items", "$ref", "x y"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 300),
    st.sampled_from([0.5, 1.0, 2.5, -0.0, 1e20, 2**63, 2**31]),
    st.sampled_from(["", "a", "abc", "10.0.0.1", "2024-01-01", "50%", "ü"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def limits(**choices: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=choices)


STRINGS = limits(
    pattern=st.sampled_from(["^a", "b$", "^[a-z]*$"]),
    minLength=st.integers(0, 3),
    maxLength=st.integers(0, 4),
    enum=st.lists(st.sampled_from(["a", "abc", ""]), min_size=1, max_size=2),
    format=st.sampled_from(["ipv4", "date", "nonsense"]),
    nullable=st.booleans(),
    default=st.sampled_from(["a", "abc"]),
).map(lambda rules: {"type": "string", **rules})
NUMBERS = st.tuples(
    st.sampled_from(["integer", "number"]),
    limits(
        minimum=st.integers(-3, 3),
        maximum=st.sampled_from([2, 2.5, 100]),
        exclusiveMinimum=st.booleans(),
        exclusiveMaximum=st.booleans(),
        multipleOf=st.sampled_from([1, 2, 0.5]),
        format=st.sampled_from(["int32", "int64", "float"]),
        enum=st.lists(st.sampled_from([1, 2, 0.5]), min_size=1, max_size=2),
        nullable=st.booleans(),
        default=st.integers(0, 3),
    ),
).map(lambda pair: {"type": pair[0], **pair[1]})
OTHERS = st.sampled_from(
    [
        {"type": "boolean"},
        {"type": "boolean", "default": True},
        {"x-kubernetes-int-or-string": True},
        {"x-kubernetes-int-or-string": True, "pattern": "%$", "minimum": 2},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"x-kubernetes-preserve-unknown-fields": True, "enum": ["a", 1, None]},
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-embedded-resource": True,
        },
        {"type": "string", "anyOf": [{"pattern": "^a"}, {"minLength": 2}]},
        {"type": "integer", "oneOf": [{"minimum": 2}, {"multipleOf": 2}]},
        {"type": "string", "allOf": [{"maxLength": 2}], "not": {"enum": ["a"]}},
    ]
)


def containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    lists = st.tuples(
        inner, limits(minItems=st.integers(0, 2), maxItems=st.integers(0, 3), nullable=st.booleans())
    ).map(lambda pair: {"type": "array", "items": pair[0], **pair[1]})
    sets = st.sampled_from(["string", "integer"]).map(
        lambda kind: {"type": "array", "items": {"type": kind}, "x-kubernetes-list-type": "set"}
    )
    objects = st.tuples(
        st.dictionaries(NAMES, inner, max_size=4),
        limits(required=st.lists(NAMES, max_size=2, unique=True), nullable=st.booleans()),
    ).map(lambda pair: {"type": "object", "properties": pair[0], **pair[1]})
    maps = inner.map(lambda child: {"type": "object", "additionalProperties": child})
    return st.one_of(lists, sets, objects, maps)


SCHEMAS = st.recursive(st.one_of(STRINGS, NUMBERS, OTHERS), containers, max_leaves=8)
ROOTS = st.dictionaries(NAMES, SCHEMAS, max_size=4).map(lambda each: {"type": "object", "properties": each})
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


@given(ROOTS, OBJECTS)
def test_defaulting_twice_is_defaulting_once(schema: Any, value: Any) -> None:
    fill = compile_defaulter(SchemaNodeReader().read(schema))
    if fill is None:
        return
    fill(value)
    once = deepcopy(value)
    fill(value)
    assert value == once


@given(ROOTS, OBJECTS)
def test_defaults_are_not_shared_between_objects(schema: Any, value: Any) -> None:
    before = deepcopy(schema)
    compiled = compile_custom(schema)
    other = deepcopy(value)
    compiled.default(value)
    for each in value.values():
        if isinstance(each, dict):
            each["z"] = 1
        elif isinstance(each, list):
            each.append("z")
    compiled.default(other)
    assert schema == before
    assert "z" not in str(other)


@given(ROOTS, OBJECTS)
def test_pruning_is_idempotent_and_says_what_it_drops(schema: Any, value: Any) -> None:
    node = SchemaNodeReader().read(schema)
    known = compile_known(node)
    before = deepcopy(value)
    paths = unknown_paths(node, value)
    assert value == before
    if known(value):
        assert paths == []
    assert prune_value(node, value) == paths
    assert paths or value == before
    assert prune_value(node, value) == []
    assert known(value)


@given(ROOTS, st.lists(OBJECTS, min_size=1, max_size=3))
def test_fast_and_slow_validation_agree(schema: Any, values: list[Any]) -> None:
    """Several values for one compiled schema: what it remembers of one must not deceive it about the next."""
    node = SchemaNodeReader().read(schema)
    check = SchemaChecker().check(node)
    for value in values:
        before = deepcopy(value)
        faulty = bool(explain(node, value).faults) or any(list_faults(node, value))
        if check(value):
            assert not faulty
        elif not faulty:
            assert any(list_type in str(schema) for list_type in ("set", "map"))
        assert value == before


METADATA = st.dictionaries(
    st.sampled_from(["labels", "annotations", "finalizers", "ownerReferences", "name", "generation", "x"]),
    VALUES,
    max_size=3,
)
EMBEDDED = st.dictionaries(
    st.sampled_from(["apiVersion", "kind", "metadata", "a"]), VALUES | METADATA, max_size=4
)


@given(ROOTS, OBJECTS, EMBEDDED | VALUES)
def test_whatever_was_stored_is_read_by_another_schema(schema: Any, value: Any, embedded: Any) -> None:
    """A definition may change below its objects: what it then calls an embedded resource was any value before."""
    schema["properties"]["embedded"] = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    compiled = compile_custom(schema)
    value["embedded"] = embedded
    undecodable = compiled.decode_fault(value) is not None
    before = deepcopy(value)
    compiled.repair(value)
    assert undecodable == (value != before)
    assert compiled.decode_fault(value) is None
    compiled.prune(value)
    compiled.default(value)
    compiled.validate(value)


@given(ROOTS, OBJECTS, OBJECTS)
def test_an_update_is_asked_no_more_than_a_create(schema: Any, value: Any, old: Any) -> None:
    node = SchemaNodeReader().read(schema)
    faults = explain(node, value).faults
    updated = explain(node, value, "", OldAndNew(node, value, old)).faults
    assert {each.text for each in updated} <= {each.text for each in faults}
    assert explain(node, value, "", OldAndNew(node, value, deepcopy(value))).faults == []


@given(VALUES)
def test_a_document_without_duplicates_is_known_at_once(value: Any) -> None:
    import msgspec

    data = msgspec.json.encode(value)
    assert not has_duplicate_fields(data, msgspec.json.decode(data))
    assert duplicate_fields(data, msgspec.json.decode(data)) == []


KEYWORDS = st.sampled_from(
    (
        "type properties items anyOf allOf not required default enum pattern format additionalProperties nullable "
        "minimum dependencies $ref title x-kubernetes-list-type x-kubernetes-preserve-unknown-fields "
        "x-kubernetes-embedded-resource x-kubernetes-validations"
    ).split()
)
ODD_SCHEMAS = st.recursive(
    st.dictionaries(KEYWORDS, VALUES, max_size=3),
    lambda inner: st.dictionaries(
        KEYWORDS,
        st.one_of(inner, st.lists(inner, max_size=2), st.dictionaries(NAMES, inner, max_size=2)),
        max_size=3,
    ),
    max_leaves=5,
)


@given(st.dictionaries(NAMES, st.one_of(SCHEMAS, VALUES, ODD_SCHEMAS), max_size=3))
def test_checking_a_crd_never_fails(properties: Any) -> None:
    schema = {"type": "object", "properties": {k: v for k, v in properties.items() if isinstance(v, dict)}}
    crd = {
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
        "status": {"storedVersions": ["v1"]},
    }
    before = deepcopy(crd)
    if crd_schema().decode_fault(crd) is None:
        check_crd(crd)
    assert crd == before
