"""A definition as one schema without references: what a CustomResourceDefinition of the kind would say.

Defaults, bounds and CEL rules of a kind that no Go type describes are its schemas' own, and hang on the place where
a type is used as much as on the type (``default`` next to a ``$ref``). So references are replaced by what they stand
for, with what is next to them on top. What cannot be unfolded is free below that place: a type within itself,
and whatever would make the schema larger than ``MAX_SCHEMAS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apimachinery.meta.quantity import QUANTITY
from apimachinery.schema.node import MAX_DEPTH, Schema, referred

MAX_SCHEMAS = 50_000
_ANY_FIELDS = {"x-kubernetes-preserve-unknown-fields": True}
FREE: Schema = {"type": "object", **_ANY_FIELDS}
_NUMBER_OR_TEXT: Schema = {"x-kubernetes-int-or-string": True}
_INSTEAD: Mapping[str, Schema] = {
    "Quantity": {**_NUMBER_OR_TEXT, "pattern": f"^{QUANTITY}$"},
    "IntOrString": _NUMBER_OR_TEXT,
    "RawExtension": FREE,
    "FieldsV1": FREE,
    "Time": {"type": "string", "format": "date-time"},
    "MicroTime": {"type": "string", "format": "date-time"},
    "ObjectMeta": FREE,
}
"""Types of Kubernetes' own packages whose definition says less than they are."""
_SEVERAL = ("allOf", "anyOf", "oneOf")
_INNER = ("items", "additionalProperties")
_SHAPES = frozenset({"type", "properties", "items", "additionalProperties", "x-kubernetes-int-or-string"})
"""What says, each by itself, what a value may hold; a description without any leaves it open."""


def unfold(name: str, definitions: Mapping[str, Schema]) -> dict[str, Any]:
    """The schema of a definition, whole. Raises ``KeyError`` for a name that is not defined."""
    return _Unfolding(definitions).definition(name, frozenset(), 0)


class _Unfolding:
    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._left = MAX_SCHEMAS

    def definition(self, name: str, above: frozenset[str], depth: int) -> dict[str, Any]:
        instead = _INSTEAD.get(name.rpartition(".")[2]) if name.startswith("io.k8s.") else None
        if instead is not None:
            return dict(instead)
        if name in above or self._left <= 0 or depth >= MAX_DEPTH:
            return dict(FREE)
        return self.schema(self._definitions[name], above | {name}, depth)

    def schema(
        self, schema: Schema, above: frozenset[str], depth: int, *, restricts: bool = False
    ) -> dict[str, Any]:
        """``restricts``: the schema only narrows another one, which says what a value may hold."""
        self._left -= 1
        reference = referred(schema)
        if reference is not None:
            beside = {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}
            return {**self.definition(reference, above, depth), **beside}
        if schema.get("format") == "int-or-string":
            return {**{k: v for k, v in schema.items() if k not in ("format", "type")}, **_NUMBER_OR_TEXT}
        made = dict(schema)
        if not restricts and not schema.keys() & _SHAPES:
            made |= _ANY_FIELDS
        inside = depth + 1
        if isinstance(properties := schema.get("properties"), Mapping):
            made["properties"] = {
                key: self.schema(each, above, inside, restricts=restricts)
                for key, each in properties.items()
                if isinstance(each, Mapping)
            }
        for key in (*_INNER, "not"):
            if isinstance(inner := schema.get(key), Mapping):
                made[key] = self.schema(inner, above, inside, restricts=restricts or key == "not")
        for key in _SEVERAL:
            if isinstance(several := schema.get(key), list):
                made[key] = [
                    self.schema(each, above, inside, restricts=True)
                    for each in several
                    if isinstance(each, Mapping)
                ]
        return made
