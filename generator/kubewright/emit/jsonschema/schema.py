"""Values of the IR as JSON Schema, draft 7: closed objects, and nothing that a server would refuse is let pass, nor the
reverse, as far as schemas can say it (rules in CEL they cannot).

A server prunes and fills in defaults before it validates. So a field with a default is never required here; a null is
taken where the server takes one; and alternatives (``anyOf``, …) restrict, they never close.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubewright.emit.code.presence import PRESERVE, Presence
from kubewright.emit.code.schemas import SchemaWriter
from kubewright.emit.code.words import FieldWords
from kubewright.emit.jsonschema.alternatives import some_field, with_defaults
from kubewright.ir.api import Api
from kubewright.ir.merge import ListType
from kubewright.ir.types import (
    ABSENT,
    Definition,
    Duration,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    MicroTime,
    Quantity,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Time,
    Type,
    Value,
)
from kubewright.ir.versions import join_api_version

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXT = {"type": "string"}


class Drafts:
    """Writes the schemas of one API; ``words`` are those that fields of built-in kinds take."""

    def __init__(self, api: Api, words: FieldWords) -> None:
        self._table = {definition.name: definition for definition in api.definitions}
        crds = {(r.group, r.version) for r in api.resources if r.manifest is not None}
        self._presence = Presence(self._table, crds, interface=api.interface)
        self._words = words
        self._constraints = SchemaWriter(ref_prefix="#/definitions/")

    def kind(self, definition: Definition, group: str, version: str, kind: str) -> Json:
        """The schema of a whole object."""
        schema = dict(self.definition(definition))
        constants = {"apiVersion": join_api_version(group, version), "kind": kind}
        properties = dict(schema.get("properties", {}))
        for name, constant in constants.items():
            properties[name] = {**_described(properties.get(name)), "type": "string", "enum": [constant]}
        schema["type"] = "object"
        schema["properties"] = properties
        schema["required"] = sorted({*schema.get("required", ()), *constants})
        return schema

    def definition(self, definition: Definition) -> Json:
        """The schema of a named definition."""
        return self._value(definition.value, definition)

    def _value(self, value: Value, owner: Definition, *, may_be_null: bool = False) -> Json:
        node = value.type
        schema = self._type(value, owner)
        said = self._said(value)
        if said and "$ref" in schema:  # draft 7 reads nothing next to a reference
            said["allOf"] = [schema, *said.get("allOf", ())]
            schema = {}
        schema |= said
        if (PRESERVE, True) in value.extensions and isinstance(node, ListOf):
            schema["items"] = _opened(schema["items"])
        if isinstance(node, ListOf) and value.merge.list_type is ListType.SET:
            schema["uniqueItems"] = True
        if value.nullable or may_be_null:
            schema = _nullable(schema)
        notes: dict[str, Json] = {}
        if value.doc:
            notes["description"] = value.doc
        if value.default is not ABSENT and value.default is not None:
            notes["default"] = value.default
        if notes and "$ref" in schema:
            return {**notes, "allOf": [schema]}
        return {**notes, **schema}

    def _said(self, value: Value) -> dict[str, Json]:
        """The constraints next to a type."""
        written = _modern(self._constraints.constraints(value.constraints))
        struct = self._struct_of(value.type)
        alternatives = {
            word: written.pop(word) for word in ("allOf", "anyOf", "oneOf", "not") if word in written
        }
        said = {**written, **with_defaults(alternatives, struct, self._struct_of)}
        if struct is not None and struct.fields and said.get("minProperties") == 1:
            del said["minProperties"]
            said["allOf"] = [*said.get("allOf", ()), *some_field(struct)]
        return said

    def _struct_of(self, node: Type) -> Struct | None:
        """The fields of a type."""
        while isinstance(node, Ref) and node.name in self._table:
            node = self._table[node.name].value.type
        return node if isinstance(node, Struct) else None

    def _type(self, value: Value, owner: Definition) -> dict[str, Json]:
        node: Type = value.type
        if isinstance(node, Ref):
            return {"$ref": f"#/definitions/{node.name}"}
        if isinstance(node, Scalar):
            return {"type": node.primitive.value, **({"format": node.format} if node.format else {})}
        if isinstance(node, IntOrString):
            return {"type": ["integer", "string"]}
        if isinstance(node, Quantity):
            return {"type": ["string", "number"]}
        if isinstance(node, Time | MicroTime):
            return {"type": "string", "format": "date-time"}
        if isinstance(node, Duration):
            return dict(_TEXT)
        if isinstance(node, ListOf):
            return {
                "type": "array",
                "items": self._value(node.items, owner, may_be_null=self._presence.is_of_go(owner)),
            }
        if isinstance(node, MapOf):
            inner = self._value(node.values, owner, may_be_null=True)
            return {"type": "object", "additionalProperties": inner}
        if isinstance(node, RawJson):
            return {"type": "object"} if node.object_only else {}
        if isinstance(node, EmbeddedObject):
            return self._embedded(node, owner)
        return self._struct(node, owner)

    def _struct(self, node: Struct, owner: Definition) -> dict[str, Json]:
        words = self._words.fields.get(owner.name, {}) if node is owner.value.type else {}
        properties = {field.wire_name: self._field(field, owner, words) for field in node.fields}
        required = [f.wire_name for f in node.fields if self._is_required(owner, f)]
        schema: dict[str, Json] = {"type": "object"}
        if required:
            schema["required"] = required
        if properties:
            schema["properties"] = properties
        if node.extra is not None:
            schema["additionalProperties"] = self._value(node.extra, owner, may_be_null=True)
        elif not node.preserve_unknown:
            schema["additionalProperties"] = False
        return schema

    def _field(self, field: Field, owner: Definition, words: Mapping[str, tuple[str, ...]]) -> Json:
        # A null where none may be is dropped by the server of a CRD, and Go decodes one into a field of a built-in
        # type as if it were left out.
        is_required = self._is_required(owner, field)
        schema = self._value(field.value, owner, may_be_null=not is_required)
        is_any = field.value.type == RawJson() and not field.value.nullable
        if is_required and is_any and not self._presence.is_of_go(owner):
            schema = {**schema, "type": ["array", "boolean", "number", "object", "string"]}
        if field.wire_name in words and isinstance(field.value.type, Scalar):
            schema = {
                **schema,
                "enum": [*words[field.wire_name], *([None] if "null" in schema["type"] else [])],
            }
        return schema

    def _is_required(self, owner: Definition, field: Field) -> bool:
        return self._presence.must_be_sent(owner, field)

    def _embedded(self, node: EmbeddedObject, owner: Definition) -> dict[str, Json]:
        """A whole object inside another: with the metadata that every object has; apiVersion and kind are required."""
        schema = self._struct(node.body, owner)
        is_known = _OBJECT_META in self._table
        head: dict[str, Json] = {
            "apiVersion": dict(_TEXT),
            "kind": dict(_TEXT),
            "metadata": {"$ref": f"#/definitions/{_OBJECT_META}"} if is_known else {"type": "object"},
        }
        schema["properties"] = {**head, **schema.get("properties", {})}
        schema["required"] = sorted({*schema.get("required", ()), "apiVersion", "kind"})
        return schema


def _described(schema: Json) -> dict[str, Json]:
    return (
        {"description": schema["description"]} if isinstance(schema, dict) and "description" in schema else {}
    )


def _nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """``schema`` and null. Alternatives and bounds say nothing of a null; an enum does."""
    if not schema:
        return schema
    if "$ref" in schema or any(word in schema for word in ("anyOf", "oneOf", "allOf", "not")):
        return {"anyOf": [schema, {"type": "null"}]}
    kind = schema.get("type")
    if kind is not None:
        schema = {**schema, "type": [*([kind] if isinstance(kind, str) else kind), "null"]}
    if "enum" in schema and None not in schema["enum"]:
        schema = {**schema, "enum": [*schema["enum"], None]}
    return schema


def _opened(schema: dict[str, Json]) -> dict[str, Json]:
    return {
        key: item for key, item in schema.items() if not (key == "additionalProperties" and item is False)
    }


def _modern(schema: Json) -> Json:
    """A schema of OpenAPI in the words of draft 7: bounds, patterns and ``nullable``; what only servers read is left
    out."""
    if isinstance(schema, list):
        return [_modern(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Json] = {}
    for key, item in schema.items():
        if key in ("enum", "default", "example", "const", "required"):
            out[key] = item
        elif key in ("properties", "definitions", "patternProperties") and isinstance(item, dict):
            out[key] = {name: _modern(inner) for name, inner in item.items()}
        elif key == "pattern":
            if (text := ecma_pattern(item)) is not None:
                out[key] = text
        elif not key.startswith("x-") and key != "nullable":
            out[key] = _modern(item)
    for end, word in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(out.get(word), bool):
            if out.pop(word) and end in out:
                out[word] = out.pop(end)
    if schema.get("nullable") is True:
        return _nullable(out)
    return out


_POSIX = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-\\/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_ONLY_GO = re.compile(r"\(\?[imsU-]|\\[pPQECazA]|\[\[:\^|\\x\{")


def ecma_pattern(pattern: str) -> str | None:
    """A pattern of Go in the words that editors and Python read too; ``None`` where it has none in common."""
    text = pattern.replace("(?P<", "(?<") if "(?P<" in pattern else pattern
    text = re.sub(r"\[:(\w+):\]", lambda match: _POSIX.get(match[1], match[0]), text)
    text = re.sub(r"^\\A", "^", re.sub(r"\\z$", "$", text))
    if _ONLY_GO.search(text):
        return None
    if "(?<" in text:
        return re.sub(r"\(\?<\w+>", "(", text)
    try:
        re.compile(text)
    except re.error:
        return None
    return text
