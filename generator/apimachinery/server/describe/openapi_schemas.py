"""Schemas as OpenAPI documents show them: of built-in kinds from the definitions of generated packages, of custom
resources from their CustomResourceDefinitions, which get the three fields that every object has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apimachinery.meta.gvk import GVK
from apimachinery.meta.json import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.describe.openapi_operations import META, definition_name

OBJECT_META, LIST_META = f"{META}ObjectMeta", f"{META}ListMeta"
_OPEN = "x-kubernetes-preserve-unknown-fields"

# What `kubectl explain` says of the fields that no CRD describes.
_API_VERSION = "APIVersion defines the version of the schema that the object is written in."
_KIND = "Kind names the resource that the object represents."
_METADATA = "Standard object's metadata."
_OF_METADATA = {
    "annotations": "Annotations are texts that tools keep with the object; nothing is selected by them.",
    "creationTimestamp": "CreationTimestamp is a timestamp: when the server created the object. Clients do not set it.",
    "deletionGracePeriodSeconds": "DeletionGracePeriodSeconds is how long the object may take to end, once deleted.",
    "deletionTimestamp": "DeletionTimestamp is when the object will be gone, or was asked to go.",
    "finalizers": "Finalizers must be empty before the object goes; each is taken off by whoever put it there.",
    "generateName": "GenerateName is what a name begins with that the server makes up.",
    "generation": "Generation counts the changes of what is wanted of the object.",
    "labels": "Labels are what objects are selected by.",
    "managedFields": "ManagedFields say who set which field.",
    "name": "Name is unique among the objects of a kind in a namespace.",
    "namespace": "Namespace is where the object's name is unique; empty for what is in no namespace.",
    "ownerReferences": "OwnerReferences name the objects without which this one is garbage.",
    "resourceVersion": "ResourceVersion changes with every write; clients compare it for equality alone.",
    "selfLink": "SelfLink is not set any more.",
    "uid": "UID tells the object from others that had its name before.",
}


def with_described_metadata(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions, with words for the fields of metadata, which every kind shares."""
    found = dict(definitions)
    if OBJECT_META in found:
        fields = found[OBJECT_META].get("properties", {})
        said = {name: {**field, "description": _OF_METADATA.get(name, "")} for name, field in fields.items()}
        found[OBJECT_META] = {**found[OBJECT_META], "properties": said}
    return found


def with_defaults(
    definitions: Mapping[str, Any], defaults: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The definitions with the defaults of their fields: those that are stated, or the zero values that typed kinds
    always write. Where two types are possible no zero is right, and of lists and maps it is null, which is none."""
    made = dict(definitions)
    for name, values in defaults.items():
        properties = made.get(name, {}).get("properties", {})
        changed = {
            field: {**properties[field], "default": value}
            for field, value in values.items()
            if field in properties and value is not None and ("$ref" not in properties[field] or value == {})
        }
        if changed:
            made[name] = {**made[name], "properties": {**properties, **changed}}
    return made


def custom_definitions(served: Served, *, v2: bool = False) -> Iterator[tuple[str, Json]]:
    """The schemas of a custom resource and of its list, in the words of one of the versions."""
    name = definition_name(served)
    gvk = {"group": served.group, "kind": served.kind, "version": served.version}
    base: Json = {"type": "object", **(served.described or {_OPEN: True})}
    base["x-kubernetes-group-version-kind"] = [gvk]
    shut = not (v2 and base.get(_OPEN))
    base = _published(v2_definition(base) if v2 else base, v2=v2)
    if shut:
        base["properties"] = {**base.get("properties", {}), **_of_objects()}
    selected = [{"fieldPath": path.removeprefix(".")} for path in served.resource.selectable_fields]
    selectable: Json = {"x-kubernetes-selectable-fields": selected} if selected else {}
    yield name, {**base, **selectable}
    fields = _of_objects()
    listed = {
        "description": f"{served.list_kind} is a list of {served.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": fields["apiVersion"],
            "kind": fields["kind"],
            "metadata": {"$ref": f"#/definitions/{LIST_META}", "description": "Standard list's metadata."},
            "items": {
                "description": f"List of {served.plural}.",
                "type": "array",
                "items": {"$ref": f"#/definitions/{name}"},
            },
        },
        "x-kubernetes-group-version-kind": [{**gvk, "kind": served.list_kind}],
        **selectable,
    }
    yield f"{name.rpartition('.')[0]}.{served.list_kind}", listed


def _of_objects() -> Json:
    return {
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"$ref": f"#/definitions/{OBJECT_META}", "description": _METADATA},
    }


_EITHER = [{"type": "integer"}, {"type": "string"}]


def _published(schema: Any, *, v2: bool) -> Any:
    """A schema with what its markers mean: an embedded object has the three fields that every object has, and needs two
    of them, but in version 2, where an object with unknown fields has no fields at all; and version 3 says both
    types of a value that is a number or a text."""
    if not isinstance(schema, Mapping):
        return schema
    made = dict(schema)
    properties = made.get("properties")
    if isinstance(properties, Mapping):
        made["properties"] = {name: _published(each, v2=v2) for name, each in properties.items()}
    for key in ("items", "additionalProperties"):
        if key in made:
            made[key] = _published(made[key], v2=v2)
    if made.get("x-kubernetes-embedded-resource") and not (v2 and made.get(_OPEN)):
        made["properties"] = {**made.get("properties", {}), **_of_objects()}
        needed = made.get("required", [])
        made["required"] = [*needed, *(name for name in ("kind", "apiVersion") if name not in needed)]
    if made.get("x-kubernetes-int-or-string") and not v2:
        parts = made.get("allOf") or [{}]
        if "anyOf" not in made and parts[0].get("anyOf") != _EITHER:
            made["anyOf"] = _EITHER
        elif made.get("anyOf", _EITHER) != _EITHER:
            made["allOf"] = [{"anyOf": _EITHER}, *made.get("allOf", ())]
    return made


_NOT_IN_V2 = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default"})
_OPENED_IN_V2 = _NOT_IN_V2 | {"type", "items", "properties"}


def v2_definition(schema: Mapping[str, Any]) -> Any:
    """A whole definition: of one that allows unknown fields no field is published, as kubectl would refuse others."""
    if schema.get(_OPEN):
        kept = ("type", "x-kubernetes-group-version-kind")
        return {key: schema[key] for key in kept if key in schema}
    return v2_schema(schema)


def v2_schema(schema: Any) -> Any:
    """A custom resource's schema as OpenAPI v2 can say it, by the rules of kube-apiserver: what v2 has no words for is
    left out, and where null or unknown fields are allowed the type too, so that kubectl refuses nothing by it."""
    if isinstance(schema, list):
        return [v2_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_open = schema.get("nullable") or schema.get(_OPEN)
    left_out = _OPENED_IN_V2 if is_open else _NOT_IN_V2
    made = {}
    for key, value in schema.items():
        if key == "properties" and key not in left_out:
            made[key] = {name: v2_schema(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and key not in left_out:
            made[key] = v2_schema(value)
        elif key not in left_out:
            made[key] = value
    return made


# What version 2 can only call a string: version 3 says both types, and kubectl then shows the type's name.
_OF_TWO_TYPES: Mapping[str, Json] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
}


def v3_definition(name: str, schema: Any) -> Any:
    """A definition as version 3 has it."""
    return _OF_TWO_TYPES.get(name) or _v3_schema(schema)


def _v3_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_v3_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    target = schema.get("$ref")
    if isinstance(target, str):
        target = target.replace("#/definitions/", "#/components/schemas/")
        if len(schema) == 1:
            return {"$ref": target}
        rest = {key: _v3_schema(value) for key, value in schema.items() if key != "$ref"}
        return {**rest, "allOf": [{"$ref": target}]}
    made = {key: _v3_schema(value) for key, value in schema.items()}
    for name, field in made.get("properties", {}).items() if isinstance(made.get("properties"), dict) else ():
        if (
            isinstance(field, dict) and "$ref" in field
        ):  # beside which nothing may stand, as there is elsewhere
            made["properties"][name] = {"allOf": [field]}
    return made


_NOT_OF_CLIENTS = {"admission.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "imagepolicy.k8s.io"}


def of_part(definitions: Mapping[str, Any], place: tuple[str, str] | None) -> dict[str, Any]:
    """Definitions in which those that every group has (``DeleteOptions``) name the kinds of the core group and of one
    group and version; without one, those of the groups that clients know."""
    found = dict(definitions)
    shown = (("", "v1"), place)
    for name in (f"{META}DeleteOptions", f"{META}WatchEvent"):
        kinds = found.get(name, {}).get("x-kubernetes-group-version-kind")
        if kinds:
            kept = [
                kind
                for kind in kinds
                if (place is None and kind.get("group") not in _NOT_OF_CLIENTS)
                or (kind.get("group", ""), kind.get("version")) in shown
            ]
            found[name] = {**found[name], "x-kubernetes-group-version-kind": kept}
    return found


def names_by_kind(definitions: Mapping[str, Any]) -> dict[GVK, str]:
    """The names of the definitions that describe a kind."""
    found: dict[GVK, str] = {}
    for name, schema in definitions.items():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            found.setdefault(GVK(kind.get("group", ""), kind["version"], kind["kind"]), name)
    return found


def references(schema: Any) -> Iterator[str]:
    """The names of the definitions a schema refers to."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            target = value.get("$ref")
            if isinstance(target, str):
                yield target.rpartition("/")[2]
            waiting.extend(item for item in value.values() if isinstance(item, (Mapping, list)))
        elif isinstance(value, list):
            waiting.extend(value)


def reachable(names: Iterable[str], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """The definitions that the named ones need, themselves included, by name."""
    found: dict[str, Any] = {}
    waiting = [name for name in names if name in definitions]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting.extend(other for other in references(definitions[name]) if other in definitions)
    return dict(sorted(found.items()))
