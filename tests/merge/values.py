"""Random values of one schema that has every form of merging, and random JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

STRING = {"type": "string"}
ITEM = {
    "type": "object",
    "properties": {
        "name": STRING,
        "value": STRING,
        "n": {"type": "integer"},
        "inner": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "x-kubernetes-patch-strategy": "merge",
            "x-kubernetes-patch-merge-key": "name",
            "items": {"type": "object", "properties": {"name": STRING, "value": STRING}},
        },
    },
}
FIELDS: dict[str, Any] = {
    "text": STRING,
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "map": {"type": "object", "additionalProperties": STRING},
    "maps": {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": STRING}},
    "atomic": {"type": "object", "additionalProperties": STRING, "x-kubernetes-map-type": "atomic"},
    "object": {"type": "object", "properties": {"a": STRING, "b": STRING}},
    "plain": {"type": "array", "items": STRING},
    "set": {
        "type": "array",
        "items": STRING,
        "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    },
    "list": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
        "items": ITEM,
    },
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
SCHEMA = {"type": "object", "properties": {"spec": {"type": "object", "properties": FIELDS}}}

words = st.sampled_from(["a", "b", "c", "d", "ü", 'q"', "x/y", "1"])
texts = st.one_of(words, st.text(max_size=3))
numbers = st.one_of(st.integers(-3, 3), st.sampled_from([0.5, 1.0, 2.5]))
scalars = st.one_of(texts, numbers, st.booleans())
json_values = st.recursive(
    st.one_of(st.none(), scalars),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=8,
)
string_maps = st.dictionaries(words, texts, max_size=3)


def _items(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4, unique_by=lambda item: item["name"])


inner_items = _items(st.fixed_dictionaries({"name": words}, optional={"value": texts}))
items = _items(
    st.fixed_dictionaries(
        {"name": words}, optional={"value": texts, "n": st.integers(0, 2), "inner": inner_items}
    )
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "text": texts,
        "number": numbers,
        "flag": st.booleans(),
        "map": string_maps,
        "maps": st.dictionaries(words, string_maps, max_size=2),
        "atomic": string_maps,
        "object": st.fixed_dictionaries({}, optional={"a": texts, "b": texts}),
        "plain": st.lists(texts, max_size=3),
        "set": st.lists(words, max_size=4, unique=True),
        "list": items,
        "free": st.dictionaries(words, json_values, max_size=3),
    },
)
