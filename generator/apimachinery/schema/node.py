"""A schema dict read once: the node that defaulting, pruning and validation are compiled from.

Theory. A CRD's schema is *structural*: the tree of ``properties``, ``items`` and ``additionalProperties``
alone says what may be where; ``allOf``, ``anyOf``, ``oneOf`` and ``not`` only restrict values. A definition
of a built-in kind reaches others by ``$ref``. Nodes are frozen; a ``$ref`` becomes a link to the one node
of that definition, so the recursive JSONSchemaProps is a cycle of nodes, and nothing here walks nodes
without walking a value with them.

Keywords are read by the schema grammar: a property may be called ``items`` or ``$ref``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apimachinery.schema.formats import is_known_format

Schema = Mapping[str, Any]
MAX_DEPTH = 150
"""Deeper schemas are refused, before they can exhaust the stack; no real one passes 60."""


class Missing:
    """No value; ``None`` is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = Missing()


@dataclass(slots=True, eq=False)
class SchemaNode:
    """One schema. ``additional`` is None where the keyword is missing, else a bool or a node.

    ``go_type`` is the Go struct of a built-in's definition (``DeploymentSpec``), with its package's name
    before it in ``go_package`` (``v1``), and ``definition`` all of its name. Filled in place while reading, never
    changed after.
    """

    types: tuple[str, ...] = ()
    format: str = ""
    nullable: bool = False
    default: Any = MISSING
    properties: dict[str, SchemaNode] = field(default_factory=dict)
    additional: SchemaNode | bool | None = None
    items: SchemaNode | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    unique_items: bool = False
    all_of: tuple[SchemaNode, ...] = ()
    any_of: tuple[SchemaNode, ...] = ()
    one_of: tuple[SchemaNode, ...] = ()
    negated: SchemaNode | None = None
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_map_keys: tuple[str, ...] = ()
    go_type: str = ""
    go_package: str = ""
    definition: str = ""


class SchemaNodeReader:
    """Reads schemas into nodes; definitions are read when first met, each once.

    Without ``implied_types`` an integer or string has no type but the one it states: so defaults are judged.
    """

    def __init__(self, definitions: Mapping[str, Schema] | None = None, *, implied_types: bool = True):
        self._definitions = definitions or {}
        self._implied_types = implied_types
        self._nodes: dict[str, SchemaNode] = {}

    def definition(self, name: str) -> SchemaNode:
        """The node of a definition. Raises ``KeyError`` where there is none of that name."""
        node = self._nodes.get(name)
        if node is None:
            schema = self._definitions[name]
            node = self._nodes[name] = SchemaNode()
            parts = name.split(".")
            node.go_type, node.definition = parts[-1], name
            node.go_package = parts[-2] if len(parts) > 1 else ""
            self._fill(node, schema, 0)
        return node

    def read(self, schema: Schema, depth: int = 0) -> SchemaNode:
        """The node of a schema. Raises ``ValueError`` where it nests too deep."""
        if depth > MAX_DEPTH:
            raise ValueError(f"schema nests deeper than {MAX_DEPTH} levels")
        if self._definitions:
            reference = referred(schema)
            if reference is not None:
                return self.definition(reference)
        node = SchemaNode()
        self._fill(node, schema, depth)
        return node

    def _fill(self, node: SchemaNode, schema: Schema, depth: int) -> None:
        inner = depth + 1
        kind = schema.get("type")
        node.types = (
            (kind,) if isinstance(kind, str) and kind else tuple(kind) if isinstance(kind, list) else ()
        )
        if "null" in node.types and len(node.types) > 1:
            node.types = tuple(each for each in node.types if each != "null")
            node.nullable = True
        node.int_or_string = schema.get("x-kubernetes-int-or-string") is True or (
            bool(self._definitions) and schema.get("format") == "int-or-string"
        )
        if node.int_or_string and self._implied_types:
            node.types = ("integer", "string")
        node.nullable = node.nullable or schema.get("nullable") is True
        if schema.get("default") is not None:
            node.default = schema["default"]
        wanted = schema.get("format") or ""
        kind = node.types[0] if len(node.types) == 1 and not self._definitions else ""
        node.format = wanted if is_known_format(wanted, kind) else ""
        node.properties = {
            name: self.read(each, inner)
            for name, each in (schema.get("properties") or {}).items()
            if isinstance(each, Mapping)
        }
        additional = schema.get("additionalProperties")
        node.additional = self.read(additional, inner) if isinstance(additional, Mapping) else additional
        items = schema.get("items")
        node.items = self.read(items, inner) if isinstance(items, Mapping) else None
        node.required = tuple(schema.get("required") or ())
        node.enum = tuple(schema.get("enum") or ())
        node.pattern = schema.get("pattern") or ""
        self._fill_limits(node, schema)
        node.all_of = self._several(schema.get("allOf"), inner)
        node.any_of = self._several(schema.get("anyOf"), inner)
        node.one_of = self._several(schema.get("oneOf"), inner)
        negated = schema.get("not")
        node.negated = self.read(negated, inner) if isinstance(negated, Mapping) else None
        node.preserve = schema.get("x-kubernetes-preserve-unknown-fields") is True
        node.embedded = schema.get("x-kubernetes-embedded-resource") is True
        node.list_type = schema.get("x-kubernetes-list-type") or ""
        node.list_map_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())

    @staticmethod
    def _fill_limits(node: SchemaNode, schema: Schema) -> None:
        node.minimum = schema.get("minimum")
        node.maximum = schema.get("maximum")
        node.exclusive_minimum = schema.get("exclusiveMinimum") is True
        node.exclusive_maximum = schema.get("exclusiveMaximum") is True
        node.multiple_of = schema.get("multipleOf")
        node.min_length = schema.get("minLength")
        node.max_length = schema.get("maxLength")
        node.min_items = schema.get("minItems")
        node.max_items = schema.get("maxItems")
        node.min_properties = schema.get("minProperties")
        node.max_properties = schema.get("maxProperties")
        node.unique_items = schema.get("uniqueItems") is True

    def _several(self, schemas: Sequence[Schema] | None, depth: int) -> tuple[SchemaNode, ...]:
        return tuple(self.read(each, depth) for each in schemas or () if isinstance(each, Mapping))


def referred(schema: Schema) -> str | None:
    """The definition that a schema stands for.

    Its ``$ref``, or that of its only ``allOf`` (OpenAPI v3 form).
    """
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return reference.rpartition("/")[2]
    only = schema.get("allOf")
    if isinstance(only, list) and len(only) == 1 and isinstance(only[0], Mapping) and "type" not in schema:
        reference = only[0].get("$ref")
        if isinstance(reference, str):
            return reference.rpartition("/")[2]
    return None
