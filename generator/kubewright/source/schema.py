"""The schema grammar: one OpenAPI schema object in, one IR ``Value`` out.

It walks the grammar, never the dict: under ``properties`` every key is a field name, even if it reads
``$ref``, ``items`` or ``properties``. What a place says about its type is decided in this order:

1. ``$ref``, or ``allOf`` around a single ``$ref`` (how OpenAPI v3 documents of Kubernetes write a reference
   that has siblings): a ``Ref``; ``allOf`` of objects, named ones among them: one object with the fields of all;
2. ``x-kubernetes-int-or-string``, ``format: int-or-string``, or ``oneOf`` integer and string: ``IntOrString``;
   ``oneOf`` string and number: ``Quantity``;
3. ``type``, or what its absence implies (``properties`` or ``additionalProperties``: object; ``items``: array;
   otherwise any JSON).

An object that declares neither properties nor additionalProperties is ``RawJson(object_only=True)`` in
OpenAPI documents (``FieldsV1``, ``RawExtension``) and an empty ``Struct`` in structural schemas, where
undeclared fields are pruned.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubewright.diagnostics import Diagnostics
from kubewright.ir.types import (
    ABSENT,
    NO_CONSTRAINTS,
    Constraints,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Primitive,
    Quantity,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.location import Document, escape_pointer
from kubewright.source import alternatives, markers


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs among the documents a schema may be in. ``ref_prefix`` begins every ``$ref``, empty
    where there are none; ``null_means_nothing``: a ``null`` next to another type says nothing (the
    kubernetes-validate package adds one to every optional field); ``structural``: a CRD's schema;
    ``type_lists``: a value may be of several types (OpenAPI 3.1)."""

    ref_prefix: str
    null_means_nothing: bool = False
    structural: bool = False
    type_lists: bool = False


OPENAPI_V2 = Dialect("#/definitions/")
OPENAPI_V3 = Dialect("#/components/schemas/", type_lists=True)
KUBERNETES_VALIDATE = Dialect("#/$defs/", null_means_nothing=True)
STRUCTURAL = Dialect("", structural=True)

_PRIMITIVES = {item.value: item for item in Primitive}
_WORDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "count": int,
    "list": list,
}
_CONSTRAINTS = {
    "enum": ("enum", "list"),
    "pattern": ("pattern", "string"),
    "minimum": ("minimum", "number"),
    "maximum": ("maximum", "number"),
    "exclusiveMinimum": ("exclusive_minimum", "boolean"),
    "exclusiveMaximum": ("exclusive_maximum", "boolean"),
    "multipleOf": ("multiple_of", "number"),
    "minLength": ("min_length", "count"),
    "maxLength": ("max_length", "count"),
    "minItems": ("min_items", "count"),
    "maxItems": ("max_items", "count"),
    "uniqueItems": ("unique_items", "boolean"),
    "minProperties": ("min_properties", "count"),
    "maxProperties": ("max_properties", "count"),
    "allOf": ("all_of", "list"),
    "anyOf": ("any_of", "list"),
    "oneOf": ("one_of", "list"),
}
_CONSTRAINT_KEYS = _CONSTRAINTS.keys() | {"not", markers.VALIDATIONS}
_TYPE_KEYS = {"$ref", "type", "format", "properties", "required", "items", "additionalProperties"} | {
    "nullable",
    "default",
    "description",
}
_HANDLED = _CONSTRAINT_KEYS | _TYPE_KEYS | markers.CONSUMED
_OTHER_KEYWORDS = {"title", "example", "examples", "externalDocs", "readOnly", "writeOnly", "deprecated"} | {
    "xml",
    "discriminator",
    "id",
    "$id",
    "$schema",
    "definitions",
    "dependencies",
    "additionalItems",
    "patternProperties",
    "const",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "propertyNames",
    "prefixItems",
    "unevaluatedProperties",
    "$comment",
    "$defs",
}


@dataclass(slots=True)
class SchemaReader:
    """Reads the schemas of one document in one dialect."""

    document: Document
    dialect: Dialect
    diagnostics: Diagnostics

    def read(self, schema: Json, pointer: str) -> Value:
        """The value that ``schema``, standing at ``pointer``, describes."""
        if schema is True:
            schema = {}
        if not isinstance(schema, dict):
            self.fault("K101", f"a schema must be an object, not {_kind_of(schema)}", pointer)
            return Value(type=RawJson(), location=self.document.at(pointer))
        if not schema:
            return Value(type=RawJson(), location=self.document.at(pointer))
        if not self.dialect.structural and (found := _without_null(schema, pointer)) is not None:
            return replace(self.read(*found), nullable=True)
        if self.dialect.type_lists and (by_type := alternatives.by_type(schema)) is not None:
            return self.read(by_type, pointer)
        nullable, word = self._read_type_word(schema, pointer)
        node, consumed = self._read_type(schema, word, pointer)
        merge = markers.read_merge(schema, pointer, self.document, self.diagnostics)
        doc = schema.get("description", "")
        extensions = self._read_extensions(schema, node, pointer)
        return Value(
            type=node,
            location=self.document.at(pointer),
            nullable=nullable,
            default=schema.get("default", ABSENT),
            doc=doc if isinstance(doc, str) else "",
            merge=merge,
            constraints=self._read_constraints(schema, consumed, node, pointer),
            extensions=extensions,
            alternatives=self._read_alternatives(schema, node, pointer),
        )

    def fault(self, code: str, message: str, pointer: str, hint: str = "") -> None:
        """Adds an error at ``pointer``."""
        self.diagnostics.error(code, message, self.document.at(pointer), hint)

    def _read_type_word(self, schema: Json, pointer: str) -> tuple[bool, str]:
        nullable = schema.get("nullable", False)
        if not isinstance(nullable, bool):
            self.fault("K102", "`nullable` must be true or false", f"{pointer}/nullable")
            nullable = False
        word = schema.get("type", "")
        if isinstance(word, list):
            words = [item for item in word if item != "null"]
            if len(words) != len(word) and not self.dialect.null_means_nothing:
                nullable = True
            if len(words) > 1:
                self.fault(
                    "K102",
                    f"`type` names more than one type: {', '.join(map(str, words))}",
                    f"{pointer}/type",
                    "say it with x-kubernetes-int-or-string, or leave the type away",
                )
            word = words[0] if words else ""
        if word == "null" and not self.dialect.structural:
            nullable, word = True, ""
        if not isinstance(word, str) or word not in ("", "object", "array", *_PRIMITIVES):
            self.fault(
                "K102",
                f"unknown type {word!r}",
                f"{pointer}/type",
                "one of: string, integer, number, boolean, object, array",
            )
            word = ""
        return nullable, word

    def _read_type(self, schema: Json, word: str, pointer: str) -> tuple[Type, str]:
        """The type node, and the constraint key that is spent on it (``allOf``, ``oneOf``) or an empty string."""
        if isinstance(schema.get("$ref"), str):
            return self._read_ref(schema["$ref"], f"{pointer}/$ref"), ""
        if "$ref" in schema:
            self.fault("K102", "`$ref` must be a string", f"{pointer}/$ref")
        single = schema.get("allOf")
        if (
            isinstance(single, list)
            and len(single) == 1
            and isinstance(single[0], dict)
            and isinstance(single[0].get("$ref"), str)
            and not word
            and "properties" not in schema
        ):
            return self._read_ref(single[0]["$ref"], f"{pointer}/allOf/0/$ref"), "allOf"
        if (
            not self.dialect.structural
            and isinstance(single, list)
            and (_refers(single) or not ("properties" in schema or markers.PRESERVE_UNKNOWN in schema))
            and word in ("", "object")
        ):
            whole = self._composed(schema, ())
            if whole is not None:
                return self._read_object(whole, pointer), "allOf"
        if schema.get(markers.INT_OR_STRING) is True or schema.get("format") == "int-or-string":
            return IntOrString(), "oneOf"
        alternatives = schema.get("oneOf")
        if isinstance(alternatives, list) and len(alternatives) == 2 and not word:
            both = frozenset(_sole_type(item) for item in alternatives)
            if both == {"integer", "string"}:
                return IntOrString(), "oneOf"
            if both == {"number", "string"}:
                return Quantity(), "oneOf"
        if word in _PRIMITIVES:
            form = schema.get("format", "")
            if not isinstance(form, str):
                self.fault("K102", "`format` must be a string", f"{pointer}/format")
                form = ""
            return Scalar(_PRIMITIVES[word], form), ""
        if word == "array" or (not word and "items" in schema):
            return self._read_list(schema, pointer), ""
        if word == "object" or (not word and ("properties" in schema or "additionalProperties" in schema)):
            return self._read_object(schema, pointer), ""
        members = schema.get("enum")
        if isinstance(members, list) and members and all(isinstance(member, str) for member in members):
            return Scalar(Primitive.STRING), ""
        return RawJson(), ""

    def _read_alternatives(self, schema: Json, node: Type, pointer: str) -> tuple[Value, ...]:
        """The members of a union; none where one of them cannot be read, or nothing says what it is."""
        if self.dialect.structural or not isinstance(node, RawJson):
            return ()
        key = next((key for key in ("oneOf", "anyOf") if isinstance(schema.get(key), list)), "")
        apart = replace(self, diagnostics=Diagnostics())
        found = [apart.read(part, f"{pointer}/{key}/{at}") for at, part in enumerate(schema.get(key, ()))]
        return () if apart.diagnostics.has_errors else tuple(found)

    def _composed(self, schema: Json, inside: tuple[str, ...]) -> Json | None:
        """An object schema that is put together by ``allOf``, as one; ``None`` where some part is not an object of this
        document."""
        whole: dict[str, Json] = {"type": "object", "properties": {}, "required": []}
        for part in (*schema["allOf"], {key: item for key, item in schema.items() if key != "allOf"}):
            if not isinstance(part, dict):
                return None
            target = part.get("$ref")
            if isinstance(target, str):
                found = None if target in inside else _at(self.document.value, target)
                if not isinstance(found, dict):
                    return None
                part = found
            if "allOf" in part:
                way = (*inside, target) if isinstance(target, str) else inside
                composed = self._composed(part, way) if isinstance(part["allOf"], list) else None
                if composed is None:
                    return None
                part = composed
            if part.get("type", "object") != "object" or "oneOf" in part or "anyOf" in part:
                return None
            properties, required = part.get("properties", {}), part.get("required", [])
            if not isinstance(properties, dict) or not isinstance(required, list):
                return None
            whole["properties"] |= properties
            whole["required"] += required
            if "additionalProperties" in part:
                whole["additionalProperties"] = part["additionalProperties"]
        return whole if whole["properties"] else None

    def _read_ref(self, target: str, pointer: str) -> Type:
        prefix = self.dialect.ref_prefix
        if prefix and target.startswith(prefix) and len(target) > len(prefix):
            return Ref(target[len(prefix) :].replace("~1", "/").replace("~0", "~"))
        self.fault(
            "K201",
            f"cannot resolve $ref {target!r}",
            pointer,
            f"references here begin with {prefix}" if prefix else "a structural schema has no references",
        )
        return RawJson()

    def _read_list(self, schema: Json, pointer: str) -> ListOf:
        if "items" not in schema:
            self.fault("K102", "an array needs `items`", pointer, "use `items: {}` for a list of anything")
            return ListOf(Value(type=RawJson(), location=self.document.at(pointer)))
        return ListOf(self.read(schema["items"], f"{pointer}/items"))

    def _read_object(self, schema: Json, pointer: str) -> Type:
        properties = schema.get("properties")
        additional = schema.get("additionalProperties")
        preserve = schema.get(markers.PRESERVE_UNKNOWN) is True
        embedded = schema.get(markers.EMBEDDED_RESOURCE) is True
        if properties is not None and not isinstance(properties, dict):
            self.fault("K102", "`properties` must be an object", f"{pointer}/properties")
            properties = None
        extra: Value | None = None
        if additional is not None and additional is not False:
            extra = self.read(additional, f"{pointer}/additionalProperties")
        required = self._read_required(schema, properties or {}, pointer)
        if properties is None and not embedded:
            if extra is not None:
                return MapOf(extra)
            if not self.dialect.structural:
                return RawJson(object_only=True)
        place = f"{pointer}/properties/"
        fields = tuple(
            Field(
                wire_name=name,
                required=name in required,
                value=self.read(member, place + escape_pointer(name)),
            )
            for name, member in (properties or {}).items()
        )
        body = Struct(fields, extra, preserve)
        return EmbeddedObject(body) if embedded else body

    def _read_required(self, schema: Json, properties: Json, pointer: str) -> frozenset[str]:
        required = schema.get("required", [])
        place = f"{pointer}/required"
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            self.fault("K102", "`required` must be a list of field names", place)
            return frozenset()
        for name in required:
            if name not in properties and "additionalProperties" not in schema:
                self.diagnostics.warning(
                    "K109", f"required field {name!r} is not a property", self.document.at(place)
                )
        return frozenset(required)

    def _read_constraints(self, schema: Json, consumed: str, node: Type, pointer: str) -> Constraints:
        present = schema.keys() & (_CONSTRAINT_KEYS | {"const"})
        undeclared = _undeclared(schema, node) if "required" in schema else []
        if not present and not undeclared:
            return NO_CONSTRAINTS
        found: dict[str, Json] = {}
        for key in present:
            if key == consumed or key not in _CONSTRAINTS:
                continue
            name, word = _CONSTRAINTS[key]
            given = schema[key]
            if given is None and self.dialect.structural:
                continue  # a null in a CustomResourceDefinition says nothing, as Go reads it
            if word == "boolean" and isinstance(given, int | float) and not isinstance(given, bool):
                # JSON Schema 2020-12 (OpenAPI 3.1): the exclusive bound is a number of its own.
                found[name] = True
                found["minimum" if key == "exclusiveMinimum" else "maximum"] = given
                continue
            wanted = _WORDS[word]
            if not isinstance(given, wanted) or (isinstance(given, bool) and word in ("number", "count")):
                self.fault("K102", f"`{key}` must be a {word}, not {_kind_of(given)}", f"{pointer}/{key}")
                continue
            found[name] = tuple(map(self._link_refs, schema[key])) if word == "list" else given
        if undeclared:
            found["all_of"] = (*found.get("all_of", ()), {"required": undeclared})
        if "not" in schema:
            found["negated"] = self._link_refs(schema["not"])
        if "const" in schema and "enum" not in schema and not self.dialect.structural:
            found["enum"] = (schema["const"],)
        rules = markers.read_rules(schema, pointer, self.document, self.diagnostics)
        if rules:
            found["rules"] = rules
        return Constraints(**found) if found else NO_CONSTRAINTS

    def _link_refs(self, schema: Json) -> Json:
        """``schema`` with every ``$ref`` of this dialect turned into a bare definition name."""
        prefix = self.dialect.ref_prefix
        if isinstance(schema, list):
            return [self._link_refs(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        target = schema.get("$ref")
        if prefix and isinstance(target, str) and target.startswith(prefix):
            return {**schema, "$ref": target[len(prefix) :]}
        return {key: self._link_refs(item) for key, item in schema.items()}

    def _read_extensions(self, schema: Json, node: Type, pointer: str) -> tuple[tuple[str, Json], ...]:
        rest = schema.keys() - _HANDLED
        if not rest:
            return ()
        if markers.PRESERVE_UNKNOWN in rest and not isinstance(schema[markers.PRESERVE_UNKNOWN], bool):
            self.fault(
                "K103",
                f"{markers.PRESERVE_UNKNOWN} must be true or false",
                f"{pointer}/{markers.PRESERVE_UNKNOWN}",
            )
        if isinstance(node, Struct | EmbeddedObject):
            rest.discard(markers.PRESERVE_UNKNOWN)
        for key in sorted(rest):
            if not key.startswith("x-") and key not in _OTHER_KEYWORDS:
                self.diagnostics.warning(
                    "K108",
                    f"unknown schema keyword {key!r}",
                    self.document.at(f"{pointer}/{escape_pointer(key)}"),
                    "it is kept, and means nothing",
                )
        return tuple((key, schema[key]) for key in sorted(rest))


def _without_null(schema: Json, pointer: str) -> tuple[Json, str] | None:
    """A schema whose alternatives are null and something else, without the null, and where it is; else ``None``.
    That is how OpenAPI 3.1 says that a value may be null."""
    for key in ("oneOf", "anyOf"):
        parts = schema.get(key)
        if not isinstance(parts, list) or "type" in schema or "$ref" in schema:
            continue
        rest = [index for index, part in enumerate(parts) if not _is_null(part)]
        if not rest or len(rest) == len(parts):
            continue
        around = {name: item for name, item in schema.items() if name != key}
        if len(rest) > 1:
            return {**around, key: [parts[index] for index in rest]}, pointer
        if isinstance(parts[rest[0]], dict):
            return {**parts[rest[0]], **around}, f"{pointer}/{key}/{rest[0]}"
    return None


def _is_null(schema: Json) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "null"


def _sole_type(schema: Json) -> str:
    word = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(word, list):
        words = [item for item in word if item != "null"]
        word = words[0] if len(words) == 1 else None
    return word if isinstance(word, str) and set(schema) == {"type"} else ""


def _refers(parts: list[Json]) -> bool:
    """Whether some part is a type of its own: otherwise ``allOf`` only bounds what is next to it."""
    return any(isinstance(part, dict) and "$ref" in part for part in parts)


def _at(value: Json, reference: str) -> Json | None:
    """What a reference within a document leads to."""
    if not reference.startswith("#/"):
        return None
    for part in reference[2:].split("/"):
        value = value.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value


def _undeclared(schema: Json, node: Type) -> list[str]:
    """Required names that no field of ``node`` can say: what an object with unknown fields must have all the same."""
    body = node.body if isinstance(node, EmbeddedObject) else node
    declared = {field.wire_name for field in body.fields} if isinstance(body, Struct) else set()
    names = schema["required"] if isinstance(schema["required"], list) else []
    return [name for name in names if isinstance(name, str) and name not in declared]


def _kind_of(value: Json) -> str:
    names: tuple[tuple[type, str], ...] = (
        (bool, "a boolean"),
        (str, "a string"),
        (int, "a number"),
        (float, "a number"),
        (list, "a list"),
        (dict, "an object"),
    )
    return next((name for kind, name in names if isinstance(value, kind)), "null")
