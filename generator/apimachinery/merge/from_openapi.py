"""From OpenAPI schemas to the merge schema, by the rules of kube-apiserver's type converter.

Both dialects are read: definitions of built-in types in OpenAPI v2 form (``$ref: '#/definitions/NAME'``), and
the structural ``openAPIV3Schema`` of a CRD. What decides, in this order: for lists ``x-kubernetes-list-type``
(with ``-list-map-keys``), else a patch strategy ``merge`` (a map list by its
``x-kubernetes-patch-merge-key``, a set without one), else atomic; for objects ``x-kubernetes-map-type``, else
granular. A place without a type takes its form from the value. Under
``x-kubernetes-preserve-unknown-fields``, and in an object of which nothing is declared, undeclared fields are
deduced: granular objects, atomic lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.schema import (
    ABSENT,
    ANY,
    ATOMIC,
    BOOLEAN,
    DEDUCED,
    MAP,
    NUMBER,
    SET,
    STRING,
    UNTYPED,
    Either,
    Field,
    Kind,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
)
from apimachinery.merge.typed import MergeType

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_NAMED: Final[Mapping[str, Type]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": ANY,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": UNTYPED,
}
"""Definitions whose schema does not say what they are."""
_META_PREFIX: Final = OBJECT_META.removesuffix("ObjectMeta")

METADATA_TYPES: Final[Mapping[str, Type]] = {
    OBJECT_META: Struct(
        {
            "annotations": MapOf(STRING),
            "creationTimestamp": Field(ANY),
            "deletionGracePeriodSeconds": NUMBER,
            "deletionTimestamp": ANY,
            "finalizers": Field(ListOf(STRING, SET), patch=("merge",)),
            "generateName": STRING,
            "generation": NUMBER,
            "labels": MapOf(STRING),
            "managedFields": ListOf(Ref(f"{_META_PREFIX}ManagedFieldsEntry")),
            "name": STRING,
            "namespace": STRING,
            "ownerReferences": Field(
                ListOf(Ref(f"{_META_PREFIX}OwnerReference"), MAP, ("uid",)), patch=("merge",), merge_key="uid"
            ),
            "resourceVersion": STRING,
            "selfLink": STRING,
            "uid": STRING,
        }
    ),
    f"{_META_PREFIX}OwnerReference": Struct(
        {
            "apiVersion": Field(STRING, default=""),
            "blockOwnerDeletion": BOOLEAN,
            "controller": BOOLEAN,
            "kind": Field(STRING, default=""),
            "name": Field(STRING, default=""),
            "uid": Field(STRING, default=""),
        },
        atomic=True,
    ),
    f"{_META_PREFIX}ManagedFieldsEntry": Struct(
        {
            "apiVersion": STRING,
            "fieldsType": STRING,
            "fieldsV1": MapOf(DEDUCED),
            "manager": STRING,
            "operation": STRING,
            "subresource": STRING,
            "time": ANY,
        }
    ),
}
"""Object metadata, which every object has whatever its schema says."""


def builtin_table(definitions: Mapping[str, Any]) -> dict[str, Type]:
    """The merge schema of built-in definitions: what a generated ``merge_schema.py`` holds."""
    return {name: _Reader(definitions).top(name, schema) for name, schema in definitions.items()}


def custom_resource(schema: Mapping[str, Any] | None, *, preserve_unknown: bool = False) -> MergeType:
    """The merge type of a custom resource at one version.

    ``schema`` is the version's ``openAPIV3Schema``, None where there is none: then all is deduced.
    ``preserve_unknown`` is the CRD's ``spec.preserveUnknownFields``.
    """
    table = dict(METADATA_TYPES)
    if schema is None:
        return MergeTypes(table).compile(DEDUCED)
    declared = _Reader({}, preserve_unknown).type(_with_type_meta(schema), preserve_unknown)
    return MergeTypes(table).compile(declared)


def _with_type_meta(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema with the three fields that every object has."""
    properties = {
        **_mapping(schema.get("properties")),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"$ref": f"#/definitions/{OBJECT_META}"},
    }
    return {**schema, "type": "object", "properties": properties}


class _Reader:
    def __init__(self, definitions: Mapping[str, Any], preserve_unknown: bool = False) -> None:
        self.definitions = definitions
        self.preserve_unknown = preserve_unknown

    def top(self, name: str, schema: Mapping[str, Any]) -> Type:
        return _NAMED.get(name) or self.type(schema, self.preserve_unknown)

    def type(self, schema: Any, preserve: bool) -> Type:
        """The type of a schema; ``preserve`` says that something above preserves unknown fields."""
        if not isinstance(schema, Mapping):
            return DEDUCED
        # The reference may be declared atomic where it is used, whatever its target says.
        if (name := _reference(schema)) is not None:
            map_type = schema.get("x-kubernetes-map-type")
            return Ref(name, {"atomic": True, "granular": False}.get(str(map_type)))
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        if schema.get("x-kubernetes-embedded-resource") is True:
            schema = _with_type_meta(schema)
        kind = schema.get("type")
        # nullable is written as a list of types in some documents.
        if isinstance(kind, list):
            kind = next((word for word in kind if word != "null"), None)
        if kind == "object":
            return self._object(schema, preserve)
        if kind == "array":
            return self._list(schema, preserve)
        if kind in ("integer", "number"):
            return NUMBER
        if kind == "boolean":
            return BOOLEAN
        if kind == "string":
            # Formats such as int-or-string and quantity allow numbers as well.
            return STRING if schema.get("format", "") in ("", "byte") else ANY
        if kind:
            return ANY
        # Without a type the value decides.
        return Either(Kind.ANY, self._list(schema, preserve), self._object(schema, preserve))

    def _object(self, schema: Mapping[str, Any], preserve: bool) -> MapOf | Struct:
        properties = _mapping(schema.get("properties"))
        fields = {name: self._field(member, preserve) for name, member in properties.items()}
        extra = schema.get("additionalProperties")
        rest: Type | None
        if extra is None:
            # An object of which nothing is declared takes everything; one with properties only those.
            rest = DEDUCED if preserve or not properties else None
        elif isinstance(extra, Mapping):
            rest = self.type(extra, preserve)
        else:
            rest = DEDUCED if extra else None
        atomic = schema.get("x-kubernetes-map-type") == "atomic"
        if not fields and rest is not None:
            return MapOf(rest, atomic)
        return Struct(fields, atomic, rest)

    def _field(self, schema: Any, preserve: bool) -> Field | Type:
        declared = self.type(schema, preserve)
        if not isinstance(schema, Mapping):
            return declared
        default = schema.get("default", ABSENT)
        words = schema.get("x-kubernetes-patch-strategy", "")
        patch = tuple(word for word in str(words).split(",") if word)
        field = Field(declared, default, patch, str(schema.get("x-kubernetes-patch-merge-key", "")))
        return field if field != Field(declared) else declared

    def _list(self, schema: Mapping[str, Any], preserve: bool) -> ListOf:
        items = schema.get("items")
        declared = UNTYPED if items is None else self.type(items, preserve)
        kind = schema.get("x-kubernetes-list-type")
        if kind == "set":
            return ListOf(declared, SET)
        if kind == "map":
            keys = schema.get("x-kubernetes-list-map-keys")
            keys = keys if isinstance(keys, list | tuple) else ()
            # A map list without keys is a set in kube-apiserver's converter too.
            return ListOf(declared, MAP, tuple(map(str, keys))) if keys else ListOf(declared, SET)
        if kind is None and "merge" in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            key = schema.get("x-kubernetes-patch-merge-key")
            return ListOf(declared, MAP, (str(key),)) if key else ListOf(declared, SET)
        return ListOf(declared, ATOMIC)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _reference(schema: Mapping[str, Any]) -> str | None:
    """The definition a schema refers to, itself or by an ``allOf`` of that one reference."""
    # OpenAPI v3 wraps a reference in allOf to put a description next to it.
    target = schema.get("$ref")
    if target is None:
        only = schema.get("allOf")
        if isinstance(only, list) and len(only) == 1 and isinstance(only[0], Mapping):
            target = only[0].get("$ref")
    return target.rpartition("/")[2] if isinstance(target, str) else None
