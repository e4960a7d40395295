"""What a description says, as a structural schema says it (apiextensions.k8s.io/v1, "Specifying a structural schema").

Structural schemas are less than JSON Schema: a type at each place, logic that only validates, no schema for
undeclared fields besides declared ones, keys of list maps that are always there, sets of what is atomic. What can be
said another way is; what cannot is left out and told, as a warning where fewer values are refused than before (K702)
or where more are (K703).
"""

from __future__ import annotations

from dataclasses import replace

from kubewright.diagnostics import Diagnostics
from kubewright.ir.merge import DEFAULT_MERGE, ListType, MapType, Merge
from kubewright.ir.types import (
    ABSENT,
    Constraints,
    Duration,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    MicroTime,
    Primitive,
    Quantity,
    RawJson,
    Scalar,
    Struct,
    Time,
    Type,
    Value,
)
from kubewright.tools.crd.inlining import INT_OR_STRING

MARKER = "x-kubewright-crd"
PRESERVE = "x-kubernetes-preserve-unknown-fields"
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
"""The form of resource.Quantity, as its documentation gives the grammar."""
_KEPT = {PRESERVE, "title", "externalDocs", "example"}
_SILENT = {
    MARKER,
    "readOnly",
    "writeOnly",
    "deprecated",
    "xml",
    "id",
    "$id",
    "$schema",
    "examples",
    "definitions",
}
_LOGIC = {"allOf", "anyOf", "oneOf"}
_PLAIN_LOGIC = {
    "enum", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
    "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "required", "format",
}  # fmt: skip
_PROSE = {"description", "title", "example", "externalDocs"}


class Lowering:
    """Lowers the values of one kind. ``structural`` says that they come from a structural schema already: then its
    defaults all have been meant."""

    def __init__(self, kind: str, diagnostics: Diagnostics, *, structural: bool) -> None:
        self.kind = kind
        self.diagnostics = diagnostics
        self.structural = structural

    def lower(self, value: Value, path: str = "") -> Value:
        """``value``, which holds no references, at ``path`` in words."""
        node, extensions, constraints = value.type, dict(value.extensions), value.constraints
        if isinstance(node, Quantity):
            node = IntOrString()
            pattern = constraints.pattern or _QUANTITY
            constraints = replace(constraints, pattern=pattern, any_of=constraints.any_of or INT_OR_STRING)
        elif isinstance(node, RawJson):
            if node.object_only:
                node = Struct((), preserve_unknown=True)
            else:
                extensions[PRESERVE] = True
        node = self._type(node, value, path)
        value = replace(
            value,
            type=node,
            constraints=self._constraints(constraints, node, value, path),
            extensions=self._extensions(extensions, node, value, path),
        )
        return self._merge(value, path, unique=constraints.unique_items)

    def loses(self, what: str, value: Value, path: str, hint: str = "") -> None:
        """Tells that the CRD refuses less than the description."""
        self.diagnostics.warning("K702", f"{self.kind}{path}: {what}", value.location, hint)

    def narrows(self, what: str, value: Value, path: str, hint: str = "") -> None:
        """Tells that the CRD refuses more than the description."""
        self.diagnostics.warning("K703", f"{self.kind}{path}: {what}", value.location, hint)

    def _type(self, node: Type, value: Value, path: str) -> Type:
        if isinstance(node, Time | MicroTime):
            return Scalar(Primitive.STRING, "date-time")
        if isinstance(node, Duration):
            return Scalar(Primitive.STRING)
        if isinstance(node, ListOf):
            return ListOf(self._inner(node.items, f"{path}[]"))
        if isinstance(node, MapOf):
            return MapOf(self._inner(node.values, f"{path}{{}}"))
        if isinstance(node, EmbeddedObject):
            body = self._struct(node.body, value, path)
            return EmbeddedObject(body if body.fields else replace(body, preserve_unknown=True))
        return self._struct(node, value, path) if isinstance(node, Struct) else node

    def _inner(self, value: Value, path: str) -> Value:
        lowered = self.lower(value, path)
        # Documents of Kubernetes give items the zero of their Go type, which is not a default of anything.
        return lowered if self.structural else replace(lowered, default=ABSENT)

    def _struct(self, node: Struct, value: Value, path: str) -> Struct:
        preserve = node.preserve_unknown
        if node.extra is not None:
            preserve = True
            if not isinstance(node.extra.type, RawJson):
                what = "undeclared fields are not checked (properties together with additionalProperties)"
                self.loses(what, value, path)
        fields = tuple(self._field(field, f"{path}.{field.wire_name}") for field in node.fields)
        return Struct(tuple(sorted(fields, key=lambda f: f.wire_name)), None, preserve)

    def _field(self, field: Field, path: str) -> Field:
        value = self.lower(field.value, path)
        # A server would fill in the zero of a Go type, and never ask for the field that is required.
        if field.required and not self.structural and value.default in ("", 0, False, {}):
            value = replace(value, default=ABSENT)
        return replace(field, value=value)

    def _extensions(
        self, given: dict[str, Json], node: Type, value: Value, path: str
    ) -> tuple[tuple[str, Json], ...]:
        if isinstance(node, Struct | EmbeddedObject):
            given.pop(PRESERVE, None)
        for key in sorted(given.keys() - _KEPT - _SILENT):
            self.loses(f"a CustomResourceDefinition has no {key}; it is left out", value, path)
        return tuple((key, item) for key, item in sorted(given.items()) if key in _KEPT and item is not False)

    def _constraints(self, given: Constraints, node: Type, value: Value, path: str) -> Constraints:
        changes: dict[str, Json] = {}
        if given.unique_items:
            changes["unique_items"] = False
        for name, keyword in (("all_of", "allOf"), ("any_of", "anyOf"), ("one_of", "oneOf")):
            kept = tuple(self._logic(schema, node) for schema in getattr(given, name))
            if name == "any_of" and isinstance(node, IntOrString) and given.any_of == INT_OR_STRING:
                continue
            if None in kept:
                what = f"{keyword} says more than a structural schema may; it is left out"
                self.loses(
                    what, value, path, "it holds only validations of fields that are declared next to it"
                )
                kept = tuple(one for one in kept if one is not None) if name == "all_of" else ()
            if kept != getattr(given, name):
                changes[name] = kept
        if given.negated is not None:
            changes["negated"] = self._logic(given.negated, node)
            if changes["negated"] is None:
                self.loses("not says more than a structural schema may; it is left out", value, path)
        return replace(given, **changes) if changes else given

    def _logic(self, schema: Json, node: Type) -> Json | None:
        """A schema under ``allOf`` and its like without prose; ``None`` where it says a type or speaks of what the
        value does not declare."""
        if self.structural:
            return schema
        if not isinstance(schema, dict):
            return None
        body = node.body if isinstance(node, EmbeddedObject) else node
        kept: dict[str, Json] = {}
        for key, item in schema.items():
            inner: Json | None = item
            if key in _PROSE or (key == "type" and item == _word(body)):
                continue
            if key in _LOGIC and isinstance(item, list):
                inner = [self._logic(one, node) for one in item]
                inner = None if None in inner else inner
            elif key == "not":
                inner = self._logic(item, node)
            elif key == "items":
                inner = self._logic(item, body.items.type) if isinstance(body, ListOf) else None
            elif key == "properties" and isinstance(item, dict):
                declared = (
                    {f.wire_name: f.value.type for f in body.fields} if isinstance(body, Struct) else {}
                )
                inner = {
                    name: self._logic(one, declared[name]) if name in declared else None
                    for name, one in item.items()
                }
                inner = None if None in inner.values() or "metadata" in inner else inner
            elif key not in _PLAIN_LOGIC:
                inner = None
            if inner is None:
                return None
            kept[key] = inner
        return kept

    def _merge(self, value: Value, path: str, *, unique: bool) -> Value:
        """The merge rule in the only words that CRDs have; patch strategies are translated into list types."""
        given = value.merge
        if isinstance(value.type, ListOf):
            return self._list(value, value.type, path, unique)
        merge = DEFAULT_MERGE
        if isinstance(value.type, Struct | EmbeddedObject | MapOf):
            declared = given.map_type_declared or given.map_type is MapType.ATOMIC
            merge = Merge(map_type=given.map_type, map_type_declared=declared)
        return value if merge == given else replace(value, merge=merge)

    def _list(self, value: Value, node: ListOf, path: str, unique: bool) -> Value:
        given, items = value.merge, node.items
        kind, keys = given.list_type, given.list_map_keys
        if unique and kind is ListType.ATOMIC and not given.list_type_declared:
            kind = ListType.SET if isinstance(items.type, Scalar | IntOrString) else kind
        if unique and kind is ListType.ATOMIC:
            self.loses("items may repeat (a CustomResourceDefinition has no uniqueItems)", value, path)
        if kind is not ListType.ATOMIC and not self.structural:
            items = replace(items, nullable=False)
        if kind is ListType.MAP:
            keyed = self._keyed(items, keys, path)
            if keyed is None:
                what = f"the list becomes atomic: its items have no {', '.join(keys)} to tell them apart by"
                self.loses(what, value, path)
                kind, keys = ListType.ATOMIC, ()
            items = keyed or items
        elif kind is ListType.SET and not self.structural:
            items = self._atomic(items, path)
        declared = given.list_type_declared or kind is not ListType.ATOMIC
        merge = Merge(list_type=kind, list_map_keys=keys, list_type_declared=declared)
        return replace(value, type=ListOf(items), merge=merge)

    def _keyed(self, items: Value, keys: tuple[str, ...], path: str) -> Value | None:
        """Items whose keys are always there: required, or with a default. ``None`` where they have no such field."""
        body = items.type.body if isinstance(items.type, EmbeddedObject) else items.type
        declared = {field.wire_name: field for field in body.fields} if isinstance(body, Struct) else {}
        if not isinstance(body, Struct) or not all(
            key in declared
            and not isinstance(declared[key].value.type, ListOf | MapOf | Struct | EmbeddedObject)
            for key in keys
        ):
            return None
        for key in keys:
            field = declared[key]
            if not field.required and field.value.default is ABSENT:
                self.narrows(
                    f"{key} becomes required: it is a key of the list", field.value, f"{path}[].{key}"
                )
                field = replace(field, required=True)
            if field.value.nullable:
                field = replace(field, value=replace(field.value, nullable=False))
            declared[key] = field
        struct = replace(body, fields=tuple(declared.values()))
        if struct == body:
            return items
        return replace(
            items, type=EmbeddedObject(struct) if isinstance(items.type, EmbeddedObject) else struct
        )

    def _atomic(self, items: Value, path: str) -> Value:
        """Items of a set, which merge as wholes."""
        if (
            isinstance(items.type, Struct | MapOf | EmbeddedObject)
            and items.merge.map_type is not MapType.ATOMIC
        ):
            self.narrows("items of the set become atomic", items, f"{path}[]")
            return replace(items, merge=Merge(map_type=MapType.ATOMIC, map_type_declared=True))
        if isinstance(items.type, ListOf) and items.merge.list_type is not ListType.ATOMIC:
            return replace(items, merge=Merge(list_type_declared=True))
        return items


def _word(node: Type) -> str:
    """The ``type`` that the schema of a lowered node says."""
    if isinstance(node, Scalar):
        return node.primitive.value
    if isinstance(node, ListOf):
        return "array"
    return "object" if isinstance(node, Struct | MapOf) else ""
