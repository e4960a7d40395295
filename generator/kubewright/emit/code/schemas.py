"""Values of the IR back into OpenAPI schemas: the inverse of ``source.schema``, for every writer of schemas."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubewright.ir.merge import ListType, MapType, Merge
from kubewright.ir.types import (
    ABSENT,
    Constraints,
    Definition,
    Duration,
    EmbeddedObject,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    MicroTime,
    Quantity,
    RawJson,
    Ref,
    Rule,
    Scalar,
    Struct,
    Time,
    Type,
    Value,
)


@dataclass(frozen=True, slots=True)
class SchemaWriter:
    """Turns values back into schemas. ``ref_prefix`` begins each reference."""

    documentation: bool = False
    ref_prefix: str = "#/definitions/"

    def definition(self, definition: Definition) -> Json:
        """The schema of a named definition, with the GVKs it is registered for."""
        if isinstance(definition.value.type, IntOrString):
            # How OpenAPI v2 documents of Kubernetes have always written the named type.
            schema: dict[str, Json] = {"type": "string", "format": "int-or-string"}
            if self.documentation and definition.value.doc:
                schema["description"] = definition.value.doc
        else:
            schema = self.schema(definition.value)
        if definition.kinds:
            schema["x-kubernetes-group-version-kind"] = [
                {"group": group, "version": version, "kind": kind}
                for group, version, kind in definition.kinds
            ]
        return schema

    def schema(self, value: Value) -> dict[str, Json]:
        """The schema of one place."""
        schema = self._type(value.type)
        if self.documentation and value.doc:
            schema["description"] = value.doc
        if value.nullable:
            schema["nullable"] = True
        if value.default is not ABSENT:
            schema["default"] = value.default
        schema.update(self.constraints(_with_required(schema, value.constraints)))
        self._write_merge(schema, value.merge)
        for key, item in value.extensions:
            if self.documentation or key not in ("title", "externalDocs", "example", "examples"):
                schema[key] = item
        return schema

    def _type(self, node: Type) -> dict[str, Json]:
        if isinstance(node, Ref):
            return {"$ref": self.ref_prefix + node.name}
        if isinstance(node, Scalar):
            return {"type": node.primitive.value, **({"format": node.format} if node.format else {})}
        if isinstance(node, IntOrString):
            return {"x-kubernetes-int-or-string": True}
        if isinstance(node, Quantity | Duration):
            return {"type": "string"}
        if isinstance(node, Time | MicroTime):
            return {"type": "string", "format": "date-time"}
        if isinstance(node, ListOf):
            return {"type": "array", "items": self.schema(node.items)}
        if isinstance(node, MapOf):
            return {"type": "object", "additionalProperties": self.schema(node.values)}
        if isinstance(node, RawJson):
            return {"type": "object"} if node.object_only else {}
        if isinstance(node, EmbeddedObject):
            return {**self._struct(node.body), "x-kubernetes-embedded-resource": True}
        return self._struct(node)

    def _struct(self, node: Struct) -> dict[str, Json]:
        schema: dict[str, Json] = {"type": "object"}
        required = [field.wire_name for field in node.fields if field.required]
        if required:
            schema["required"] = required
        if node.fields:
            schema["properties"] = {field.wire_name: self.schema(field.value) for field in node.fields}
        if node.extra is not None:
            schema["additionalProperties"] = self.schema(node.extra)
        if node.preserve_unknown:
            schema["x-kubernetes-preserve-unknown-fields"] = True
        return schema

    def constraints(self, given: Constraints) -> dict[str, Json]:
        """The keywords of value validations."""
        schema: dict[str, Json] = {}
        for name, key in _CONSTRAINTS.items():
            value = getattr(given, name)
            if value is None or value is False or value == "" or value == ():
                continue
            schema[key] = [self._links(item) for item in value] if isinstance(value, tuple) else value
        if given.negated is not None:
            schema["not"] = self._links(given.negated)
        if given.rules:
            schema["x-kubernetes-validations"] = [_rule(rule) for rule in given.rules]
        return schema

    def _links(self, schema: Json) -> Json:
        if isinstance(schema, list):
            return [self._links(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            key: self.ref_prefix + item if key == "$ref" and isinstance(item, str) else self._links(item)
            for key, item in schema.items()
        }

    def _write_merge(self, schema: dict[str, Json], merge: Merge) -> None:
        if merge.list_type_declared:
            schema["x-kubernetes-list-type"] = merge.list_type.value
            if merge.list_type is ListType.MAP:
                schema["x-kubernetes-list-map-keys"] = list(merge.list_map_keys)
        if merge.map_type_declared or merge.map_type is MapType.ATOMIC:
            schema["x-kubernetes-map-type"] = merge.map_type.value
        if merge.patch_strategy:
            schema["x-kubernetes-patch-strategy"] = ",".join(word.value for word in merge.patch_strategy)
        if merge.patch_merge_key:
            schema["x-kubernetes-patch-merge-key"] = merge.patch_merge_key


_CONSTRAINTS = {
    "enum": "enum",
    "pattern": "pattern",
    "minimum": "minimum",
    "exclusive_minimum": "exclusiveMinimum",
    "maximum": "maximum",
    "exclusive_maximum": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "unique_items": "uniqueItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "all_of": "allOf",
    "any_of": "anyOf",
    "one_of": "oneOf",
}


def _with_required(schema: dict[str, Json], given: Constraints) -> Constraints:
    """``given`` without what ``source.schema`` keeps of required names that are not fields: ``schema`` has them."""
    rest = []
    for item in given.all_of:
        names = item.get("required") if isinstance(item, dict) and len(item) == 1 else None
        if "type" in schema and names and not set(names) & schema.get("properties", {}).keys():
            schema["required"] = sorted({*schema.get("required", ()), *names})
        else:
            rest.append(item)
    return given if len(rest) == len(given.all_of) else replace(given, all_of=tuple(rest))


def _rule(rule: Rule) -> Json:
    given = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
    }
    written: dict[str, Json] = {key: text for key, text in given.items() if text}
    if rule.optional_old_self is not None:
        written["optionalOldSelf"] = rule.optional_old_self
    return written
