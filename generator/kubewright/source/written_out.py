"""Schemas at operations: the objects that are written out in them become definitions."""

from __future__ import annotations

from dataclasses import replace

from kubewright.diagnostics import Diagnostics
from kubewright.ir.types import Definition, Json, ListOf, MapOf, RawJson, Ref, Struct, Value
from kubewright.ir.words import singular
from kubewright.location import Document
from kubewright.source.schema import Dialect, SchemaReader


class WrittenOut:
    """Reads the schemas at the operations of one document. ``definitions`` are those made so far, none called as those
    ``taken``."""

    def __init__(
        self, document: Document, dialect: Dialect, taken: set[str], diagnostics: Diagnostics
    ) -> None:
        self.definitions: list[Definition] = []
        self._document = document
        self._dialect = dialect
        self._taken = taken
        self._diagnostics = diagnostics
        self._places: dict[str, Value] = {}
        self._made: dict[str, Value] = {}

    def read(self, schema: Json, name: str, pointer: str, place: str = "") -> Value:
        """The value of a schema, with the objects that are written out in it as definitions called ``name`` or as items
        of it; one for each ``place`` (``pointer``, if it is empty)."""
        value = SchemaReader(self._document, self._dialect, self._diagnostics).read(schema, pointer)
        return self._hoist(value, name, place or pointer)

    def _hoist(self, value: Value, name: str, pointer: str) -> Value:
        node = value.type
        if isinstance(node, ListOf):
            return replace(value, type=ListOf(self._hoist(node.items, singular(name), f"{pointer}/items")))
        if isinstance(node, MapOf):
            inner = self._hoist(node.values, singular(name), f"{pointer}/additionalProperties")
            return replace(value, type=MapOf(inner))
        union = isinstance(node, RawJson) and (value.constraints.one_of or value.constraints.any_of)
        if not union and not (isinstance(node, Struct) and node.fields):
            return value
        known = self._places.get(pointer)
        if known is None:
            free, count = name, 2
            while free in self._taken and self._made.get(free) != value:
                free, count = f"{name}{count}", count + 1
            if free not in self._made:
                self._taken.add(free)
                self._made[free] = value
                self.definitions.append(Definition(name=free, group="", version="", value=value))
            known = self._places[pointer] = Value(type=Ref(free), location=value.location)
        return replace(known, nullable=value.nullable)
