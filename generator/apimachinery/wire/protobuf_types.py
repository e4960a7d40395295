"""Which messages a package's definitions are: their fields, as descriptors that the protobuf library reads.

A field's type is a text: a scalar, ``.k.Message``, ``*`` before repeated ones, ``%`` before map values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from apimachinery.meta.gvk import GroupVersion
from apimachinery.wire.protobuf_faults import FIXED64, LENGTH, VARINT, Expected
from apimachinery.wire.protobuf_kinds import META, VERBS, FieldNumbers, with_meta_kinds

_FIELD: Final = descriptor_pb2.FieldDescriptorProto
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW: Final = frozenset(
    {
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        f"{META}FieldsV1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    }
)
TIMES: Final = {f"{META}Time": 0, f"{META}MicroTime": 6}
_DURATION: Final = f"{META}Duration"
SCHEMA_OR: Final = {
    "JSONSchemaPropsOrArray": "jSONSchemas",
    "JSONSchemaPropsOrBool": "allows",
    "JSONSchemaPropsOrStringArray": "property",
}


class MessageTypes:
    """The messages of a package. ``by_entries`` makes each map a list of entries."""

    def __init__(
        self, definitions: Mapping[str, Any], numbers: Mapping[str, FieldNumbers], *, by_entries: bool
    ) -> None:
        self.by_entries = by_entries
        self.definitions, self.numbers = with_meta_kinds(definitions, numbers)
        self._expected: dict[str, tuple[str, dict[int, Expected]]] = {}

    @cached_property
    def kinds(self) -> dict[tuple[str, str], str]:
        """Names of definitions by apiVersion and kind."""
        found: dict[tuple[str, str], str] = {}
        for name in self.numbers:
            for gvk in self.definitions.get(name, {}).get("x-kubernetes-group-version-kind", ()):
                group, version = gvk["group"], gvk["version"]
                # The first definition of a kind counts.
                found.setdefault((str(GroupVersion(group, version)), gvk["kind"]), name)
        found[("v1", "Status")] = f"{META}Status"
        for kind in ("APIVersions", "APIResourceList"):
            # What discovery says of the core group has no apiVersion.
            if f"{META}{kind}" in self.numbers:
                found[("", kind)] = f"{META}{kind}"
        return found

    def new(self, name: str) -> Any:
        """Returns an empty message."""
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(f"k.{name}"))()

    @cached_property
    def _pool(self) -> descriptor_pool.DescriptorPool:
        file = descriptor_pb2.FileDescriptorProto(name="kubernetes", package="k", syntax="proto2")
        _add(file, "TypeMeta", {"apiVersion": (1, "string"), "kind": (2, "string")})
        _add(file, "Unknown", {"typeMeta": (1, ".k.TypeMeta"), "raw": (2, "bytes"), "contentEncoding": (3, "string"),
                               "contentType": (4, "string")})  # fmt: skip
        _add(file, "Raw", {"raw": (1, "bytes")})
        _add(file, "Instant", {"seconds": (1, "int64"), "nanos": (2, "int32")})
        _add(file, "Text", {"string": (1, "string")})
        _add(file, "Duration", {"duration": (1, "int64")})
        _add(file, "IntOrString", {"type": (1, "int64"), "intVal": (2, "int32"), "strVal": (3, "string")})
        _add(file, "Strings", {"items": (1, "*string")})
        _add(file, "WatchEvent", {"type": (1, "string"), "object": (2, ".k.Raw")})
        for name, numbers in self.numbers.items():
            if name in self.definitions and name not in _RAW:
                properties = self.definitions[name].get("properties") or {}
                self._describe(file, message_name(name), properties, numbers)
        for name in self.schema_alternatives:
            prefix = name.rpartition("JSONSchemaPropsOr")[0]
            schema = f".k.{message_name(prefix + 'JSONSchemaProps')}"
            fields = {
                "JSONSchemaPropsOrArray": {"schema": (1, schema), "jSONSchemas": (2, f"*{schema}")},
                "JSONSchemaPropsOrBool": {"allows": (1, "bool"), "schema": (2, schema)},
                "JSONSchemaPropsOrStringArray": {"schema": (1, schema), "property": (2, "*string")},
            }[name[len(prefix) :]]
            _add(file, message_name(name), fields)
        for message in file.message_type if self.by_entries else ():
            # As an entry list the order of keys is ours.
            for entry in message.nested_type:
                entry.options.ClearField("map_entry")
        pool = descriptor_pool.DescriptorPool()
        pool.Add(file)
        return pool

    @cached_property
    def schema_alternatives(self) -> tuple[str, ...]:
        """Definitions of what is a schema or something else."""
        return tuple(sorted(n for n in self.definitions if n.rpartition(".")[2] in SCHEMA_OR))

    def _describe(
        self, file: Any, name: str, properties: Mapping[str, Any], numbers: Mapping[str, Any]
    ) -> None:
        fields: dict[str, tuple[int, str]] = {}
        for wire_name, entry in numbers.items():
            if isinstance(entry, tuple):
                inner = f"{name}_{wire_name}"
                self._describe(file, inner, properties, entry[1])
                fields[f"f{entry[0]}"] = (entry[0], f".k.{inner}")
            elif wire_name in properties:
                kind = self.type_of(properties[wire_name])
                if kind:
                    fields[f"f{entry}"] = (entry, kind)
        _add(file, name, fields)

    def type_of(self, schema: Mapping[str, Any]) -> str:
        """The type of a field: a scalar, ``.k.Message``, ``*`` before repeated ones, ``%`` before map values;
        empty where it has no protobuf form."""
        reference = reference_of(schema)
        if reference:
            return self._message_of(reference)
        kind, form = schema.get("type"), schema.get("format", "")
        if kind == "array":
            return f"*{self.type_of(schema['items'])}"
        if isinstance(schema.get("additionalProperties"), Mapping):
            value = self.type_of(schema["additionalProperties"])
            return "%.k.Strings" if value == "*string" else f"%{value}"
        if kind == "integer":
            return "int64" if form == "int64" else "int32"
        if kind == "string" and form == "int-or-string":
            return ".k.IntOrString"
        if kind == "string" and form in ("date-time", "micro-time"):
            return ".k.Instant"
        return {"string": "bytes" if form == "byte" else "string", "boolean": "bool", "number": "double"}.get(
            str(kind), ".k.Raw" if kind == "object" or kind is None else ""
        )

    def _message_of(self, name: str) -> str:
        if name in _RAW:
            return ".k.Raw"
        if name in TIMES:
            return ".k.Instant"
        if name == _QUANTITY:
            return ".k.Text"
        if name == _DURATION:
            return ".k.Duration"
        if name == _INT_OR_STRING:
            return ".k.IntOrString"
        if name == VERBS:
            return ".k.Strings"
        if name in self.numbers or name in self.schema_alternatives:
            return f".k.{message_name(name)}"
        return self.type_of(self.definitions.get(name, {}))

    # -------------------------------------------------------------- values

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The definition that ``schema`` refers to, or ``schema``."""
        reference = reference_of(schema)
        return self.definitions.get(reference, {}) if reference else schema

    def fields_of(self, name: str) -> tuple[str, dict[int, Expected]]:
        """What faults say of a message: a definition's, or one of those below that stand for none."""
        if name in _ENVELOPE:
            return name, _ENVELOPE[name]
        if name not in self.numbers or name not in self.definitions:
            return name, {}
        # Kept: a message that holds itself asks once a level.
        described = self._expected.get(name)
        if described is not None:
            return described
        fields: dict[int, Expected] = {}
        properties = self.definitions[name].get("properties") or {}
        for wire_name, entry in self.numbers[name].items():
            if isinstance(entry, tuple) or wire_name not in properties:
                continue
            schema = properties[wire_name]
            kind = self.type_of(schema)
            items = self.resolved(schema).get("items")
            held = reference_of(items if kind.startswith("*") and items else schema)
            wire_type = {"int32": VARINT, "int64": VARINT, "bool": VARINT, "double": FIXED64}
            wanted = wire_type.get(kind.removeprefix("*"), LENGTH)
            called = "ListMeta" if held == f"{META}ListMeta" else go_name(wire_name)
            fields[entry] = (wanted, called, held if held in self.numbers else "")
        described = self._expected[name] = name.rpartition(".")[2], fields
        return described


def _add(file: Any, name: str, fields: Mapping[str, tuple[int, str]]) -> None:
    """Adds a message; types as ``MessageTypes.type_of`` gives them."""
    message = file.message_type.add(name=name)
    for attribute, (number, kind) in fields.items():
        field = message.field.add(name=attribute, number=number, label=_FIELD.LABEL_OPTIONAL)
        if kind.startswith("*"):
            field.label = _FIELD.LABEL_REPEATED
        if kind.startswith("%"):
            field.label = _FIELD.LABEL_REPEATED
            entry = message.nested_type.add(name=f"{attribute.capitalize()}Entry")
            entry.options.map_entry = True
            key = entry.field.add(name="key", number=1, label=_FIELD.LABEL_OPTIONAL)
            key.type = _FIELD.TYPE_STRING
            value = entry.field.add(name="value", number=2, label=_FIELD.LABEL_OPTIONAL)
            _set_type(value, kind[1:])
            field.type, field.type_name = _FIELD.TYPE_MESSAGE, f".k.{name}.{entry.name}"
        else:
            _set_type(field, kind.removeprefix("*"))


def _set_type(field: Any, kind: str) -> None:
    if kind.startswith("."):
        field.type, field.type_name = _FIELD.TYPE_MESSAGE, kind
    else:
        field.type = getattr(_FIELD, f"TYPE_{kind.upper()}")


def reference_of(schema: Mapping[str, Any]) -> str:
    """The definition that ``schema`` refers to, by name; empty where it refers to none."""
    return str(schema.get("$ref", "")).rpartition("/")[2]


def message_name(definition: str) -> str:
    """The name of a definition's message: dots would make packages of it."""
    return definition.replace(".", "_").replace("-", "_")


_ENVELOPE: Final[dict[str, dict[int, Expected]]] = {
    "Unknown": {
        1: (LENGTH, "TypeMeta", "TypeMeta"),
        2: (LENGTH, "Raw", ""),
        3: (LENGTH, "ContentEncoding", ""),
        4: (LENGTH, "ContentType", ""),
    },
    "TypeMeta": {1: (LENGTH, "APIVersion", ""), 2: (LENGTH, "Kind", "")},
}
_INITIALISMS: Final = re.compile(
    r"(api|cidr|csi|fc|fqdn|http|https|id|ip|ips|iscsi|json|nfs|os|rbd|tcp|tls|uid|url)(?=$|[A-Z])"
)


def go_name(name: str) -> str:
    """The name of a field in Go, as its decoder's messages have it."""
    if name == "metadata":
        return "ObjectMeta"
    if found := _INITIALISMS.match(name):
        return found[1].upper() + name[found.end() :]
    return name[:1].upper() + name[1:]
