"""The schema of a built-in kind, compiled. kube-apiserver decodes built-in kinds into Go structs, so a value of a wrong
type fails the decode; defaults and checks of values are generated code, not schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apimachinery.meta.field_errors import FieldError
from apimachinery.schema.decoding import Decoder, Names
from apimachinery.schema.node import Schema, SchemaNode, SchemaNodeReader
from apimachinery.schema.restoring import restore, restored


def compile_builtin(
    name: str, definitions: Mapping[str, Schema], names: Callable[[], Names] | None = None
) -> BuiltinSchema:
    """Compile a definition of a built-in kind.

    ``$ref: '#/definitions/NAME'`` is looked up in ``definitions``; ``names`` tells how faults of decoding call types.

    Raises ``KeyError`` for a name that is not defined.
    """
    reader = SchemaNodeReader(definitions)
    package = name.rpartition(".")[0]
    inner = f"{package}.JSONSchemaProps"
    schema_node = reader.definition(inner) if inner in definitions else None
    return BuiltinSchema(reader.definition(name), schema_node, names)


class BuiltinSchema:
    """The behaviour of a built-in kind. Its values' own rules are not a schema's: they are generated code."""

    def __init__(
        self, node: SchemaNode, schema_node: SchemaNode | None, names: Callable[[], Names] | None = None
    ):
        self.node = node
        self._decoder = Decoder(node, schema_node, names) if names else Decoder(node, schema_node)

    def default(self, value: Any) -> None:
        """Does nothing: the defaults of built-in kinds are generated code."""

    def prune(self, value: Any) -> list[str]:
        """See ``CompiledSchema``; in the order of the document."""
        return self._decoder.unknown(value, drop=True)

    def binary_fields(self) -> tuple[tuple[str, ...], ...]:
        """See ``CompiledSchema``; fields of definitions that hold themselves are left out."""
        found: list[tuple[str, ...]] = []
        _find_binary(self.node, (), frozenset(), found)
        return tuple(found)

    def unknown_fields(self, value: Any) -> list[str]:
        """See ``CompiledSchema``; in the order of the document."""
        return self._decoder.unknown(value, drop=False)

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        return self._decoder.read(value)

    def decode_fault(self, value: Any) -> str | None:
        fault = self._decoder.fault(value)
        return None if fault is None else str(fault)

    def repair(self, value: Any) -> None:
        """Does nothing: built-in kinds do not change below what is stored."""

    def restore(self, value: Any) -> None:
        restore(self.node, value)

    def restore_fault(self, value: Any) -> str | None:
        fault = self._decoder.fault(value, first=True)
        return None if fault is None else restored(fault)

    def validate(self, value: Any, old: Any = None) -> list[FieldError]:
        """Nothing: a value of a wrong type is a decode fault, other rules are generated code."""
        return []


def _find_binary(
    node: SchemaNode, path: tuple[str, ...], above: frozenset[int], found: list[tuple[str, ...]]
) -> None:
    if id(node) in above:
        return
    if node.types == ("string",) and node.format == "byte":
        found.append(path)
    above |= {id(node)}
    for name, child in node.properties.items():
        _find_binary(child, (*path, name), above, found)
    for inner in (node.additional, node.items):
        if isinstance(inner, SchemaNode):
            _find_binary(inner, (*path, "*"), above, found)
