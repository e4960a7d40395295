"""Walks over a normalized schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from apimachinery.crd.form import Schema


def any_node(schema: Schema, holds: Callable[[Schema], bool]) -> bool:
    """Does something hold for a schema or for one within it."""
    return holds(schema) or any(any_node(each, holds) for each in inner_schemas(schema))


def inner_schemas(schema: Schema) -> Iterator[Schema]:
    """The schemas right below one, wherever a schema may stand."""
    for keyword in ("items", "additionalProperties", "additionalItems", "not"):
        each = schema.get(keyword)
        if isinstance(each, dict):
            yield each
        elif isinstance(each, list):
            yield from each
    for keyword in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(keyword, ())
    for keyword in ("properties", "patternProperties", "definitions"):
        yield from schema.get(keyword, {}).values()
    for each in schema.get("dependencies", {}).values():
        if isinstance(each, dict):
            yield each
