"""OpenAPI documents of what is served: paths and schemas, in version 3 for one group-version and in version 2 for all.

Both are made from one description of operations, so they agree. Schemas come from the definitions of generated
packages and from the schemas of CustomResourceDefinitions; the latter get the three fields every object has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from apimachinery.meta.json import Json
from apimachinery.server.catalog.served import Served
from apimachinery.server.request.codecs import MEDIA_TYPES
from apimachinery.server.request.media_types import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

_V1 = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META, LIST_META, STATUS = f"{_V1}ObjectMeta", f"{_V1}ListMeta", f"{_V1}Status"
_DELETE_OPTIONS = f"{_V1}DeleteOptions"
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "timeoutSeconds",
    "watch",
)
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_QUERY_TYPES = {
    "allowWatchBookmarks": "boolean",
    "force": "boolean",
    "gracePeriodSeconds": "integer",
    "limit": "integer",
    "orphanDependents": "boolean",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_METHODS = {
    "get": "get",
    "list": "get",
    "create": "post",
    "update": "put",
    "patch": "patch",
    "delete": "delete",
    "deletecollection": "delete",
}
_WORDS = {"get": "read", "update": "replace", "deletecollection": "delete"}


def definition_name(served: Served) -> str:
    """The schema's name of a resource's kind: a group's names reversed, for custom ones."""
    if served.resource.definition:
        return served.resource.definition
    return f"{'.'.join(reversed(served.group.split('.')))}.{served.version}.{served.kind}"


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


def custom_definitions(served: Served, schema: Mapping[str, Any] | None) -> Iterator[tuple[str, Json]]:
    """The schemas of a custom resource and of its list."""
    name = definition_name(served)
    gvk = {"group": served.group, "kind": served.kind, "version": served.version}
    base: Json = {**schema} if schema else {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    base.setdefault("type", "object")
    properties = {
        **base.get("properties", {}),
        "apiVersion": {"type": "string", "description": _API_VERSION},
        "kind": {"type": "string", "description": _KIND},
        "metadata": {"$ref": f"#/definitions/{OBJECT_META}", "description": _METADATA},
    }
    yield name, {**base, "properties": properties, "x-kubernetes-group-version-kind": [gvk]}
    listed = {
        "description": f"{served.list_kind} is a list of {served.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": _API_VERSION},
            "kind": {"type": "string", "description": _KIND},
            "metadata": {"$ref": f"#/definitions/{LIST_META}"},
            "items": {"type": "array", "items": {"$ref": f"#/definitions/{name}"}},
        },
        "x-kubernetes-group-version-kind": [{**gvk, "kind": served.list_kind}],
    }
    yield f"{name.rpartition('.')[0]}.{served.list_kind}", listed


_NOT_IN_V2 = frozenset({"allOf", "anyOf", "oneOf", "not", "nullable", "default"})
_OPENED_IN_V2 = _NOT_IN_V2 | {"type", "items", "properties"}


def v2_definition(schema: Mapping[str, Any]) -> Any:
    """A whole definition: of one that allows unknown fields no field is published, as kubectl would refuse others."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
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
    is_open = schema.get("nullable") or schema.get("x-kubernetes-preserve-unknown-fields")
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


def operations(served: Served) -> Iterator[tuple[str, str, Json]]:
    """Path, method and operation of everything that a resource answers to, in a form between the two versions."""
    root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
    scoped = f"{root}/namespaces/{{namespace}}" if served.namespaced else root
    item = f"{scoped}/{served.plural}/{{name}}"
    for verb in sorted(served.verbs - {"watch"}):
        path = item if verb in ("get", "update", "patch", "delete") else f"{scoped}/{served.plural}"
        yield path, _METHODS[verb], _operation(served, verb, served.kind, "", served.namespaced)
    if served.namespaced and "list" in served.verbs:
        yield f"{root}/{served.plural}", "get", _operation(served, "list", served.kind, "", False)
    for sub in served.resource.subresources:
        for verb in sub.verbs:
            if verb in _METHODS:
                # Named for the resource's kind, not for Scale: an operationId is unique in its document.
                operation = _operation(served, verb, served.kind, sub.name, served.namespaced)
                if sub.kind:
                    gvk = {"group": sub.group, "kind": sub.kind, "version": sub.version}
                    operation["x-kubernetes-group-version-kind"] = gvk
                yield f"{item}/{sub.name}", _METHODS[verb], operation


def _operation(served: Served, verb: str, kind: str, subresource: str, namespaced: bool) -> Json:
    group = "".join(part.capitalize() for part in (served.group.removesuffix(".k8s.io") or "core").split("."))
    word = _WORDS.get(verb, verb)
    name = f"{word}{group}{served.version.capitalize()}{'Collection' if verb == 'deletecollection' else ''}"
    if served.namespaced:
        name += "Namespaced" if namespaced else ""
    name += kind + subresource.capitalize()
    if served.namespaced and not namespaced:
        name += "ForAllNamespaces"
    query: tuple[str, ...] = ()
    if verb in ("list", "deletecollection"):
        query = _LIST if verb == "list" else (*_LIST, *_DELETE)
    elif verb in ("create", "update"):
        query = _WRITE
    elif verb == "patch":
        query = (*_WRITE, "force")
    elif verb == "delete":
        query = _DELETE
    shown = definition_name(served)
    if verb == "list":
        shown = f"{shown.rpartition('.')[0]}.{served.list_kind}"
    elif verb in ("delete", "deletecollection"):
        shown = STATUS
    body = {"create": shown, "update": shown, "patch": f"{_V1}Patch", "delete": _DELETE_OPTIONS}.get(verb, "")
    return {
        "operationId": name,
        "query": query,
        "body": body,
        "answer": shown,
        "patch_types": _patch_types(served) if verb == "patch" else (),
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": {
            "group": served.group,
            "kind": served.kind,
            "version": served.version,
        },
    }


def _patch_types(served: Served) -> tuple[str, ...]:
    if served.builtin:
        return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)


# What version 2 can only call a string: version 3 says both types, and kubectl then shows the type's name.
_OF_TWO_TYPES: Mapping[str, Json] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
}


def document_v3(resources: Iterable[Served], definitions: Mapping[str, Any], extra: Iterable[str]) -> Json:
    """The OpenAPI v3 document of a group-version; ``extra`` names definitions no operation shows."""
    paths: dict[str, Json] = {}
    used: set[str] = {STATUS, *extra}
    for served in resources:
        for path, method, operation in operations(served):
            used.update((operation["answer"], operation["body"]))
            paths.setdefault(path, {"parameters": _path_parameters(path)})[method] = _v3(operation)
    schemas = {
        name: _OF_TWO_TYPES.get(name) or _v3_schema(schema)
        for name, schema in reachable(used, definitions).items()
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas},
    }


def _path_parameters(path: str) -> list[Json]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    given = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}
        for name in sorted(names)
    ]
    return [*given, {"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": True}}]


def _v3(operation: Json) -> Json:
    types = MEDIA_TYPES
    made: Json = {
        "operationId": operation["operationId"],
        "parameters": [
            {"name": n, "in": "query", "schema": {"type": _QUERY_TYPES.get(n, "string"), "uniqueItems": True}}
            for n in operation["query"]
        ],
        "responses": {
            "200": {"description": "OK", "content": _content(types, operation["answer"])},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": operation["x-kubernetes-action"],
        "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
    }
    if operation["body"]:
        made["requestBody"] = {"content": _content(operation["patch_types"] or types, operation["body"])}
    return made


def _content(types: Iterable[str], name: str) -> Json:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {media_type: {"schema": schema} for media_type in types}


def _v3_schema(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_v3_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _v3_schema(value) for key, value in schema.items()}
    target = made.get("$ref")
    if isinstance(target, str):
        target = target.replace("#/definitions/", "#/components/schemas/")
        if len(made) == 1:
            return {"$ref": target}
        del made["$ref"]
        return {**made, "allOf": [{"$ref": target}]}
    return made


def document_v2(resources: Iterable[Served], definitions: Mapping[str, Any]) -> Json:
    """The OpenAPI v2 document of everything."""
    paths: dict[str, Json] = {}
    for served in resources:
        for path, method, operation in operations(served):
            given = [
                {"name": p["name"], "in": p["in"], "type": "string", "uniqueItems": True}
                | ({"required": True} if p["in"] == "path" else {})
                for p in _path_parameters(path)
            ]
            paths.setdefault(path, {"parameters": given})[method] = _v2(operation)
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _v2(operation: Json) -> Json:
    parameters: list[Json] = [
        {"name": name, "in": "query", "type": _QUERY_TYPES.get(name, "string"), "uniqueItems": True}
        for name in operation["query"]
    ]
    if operation["body"]:
        body = {"$ref": f"#/definitions/{operation['body']}"}
        required = operation["x-kubernetes-action"] != "delete"
        parameters.insert(
            0, {"name": "body", "in": "body", "schema": body} | ({"required": True} if required else {})
        )
    made: Json = {
        "operationId": operation["operationId"],
        "produces": list(MEDIA_TYPES),
        "parameters": parameters,
        "responses": {
            "200": {"description": "OK", "schema": {"$ref": f"#/definitions/{operation['answer']}"}},
            "401": {"description": "Unauthorized"},
        },
        "x-kubernetes-action": operation["x-kubernetes-action"],
        "x-kubernetes-group-version-kind": operation["x-kubernetes-group-version-kind"],
    }
    made["consumes"] = list(operation["patch_types"]) or ["*/*"]
    return made
