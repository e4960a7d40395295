"""OpenAPI documents of operations and of the schemas that they need: version 3 of one part, version 2 of everything."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.json import Json
from apimachinery.server.describe.openapi_operations import META, Operation
from apimachinery.server.describe.openapi_parameters import Parameter
from apimachinery.server.describe.openapi_schemas import reachable, references, v3_definition
from apimachinery.wire.json import encode

_DESCRIBED = {200: "OK", 201: "Created", 202: "Accepted"}
_UNAUTHORIZED: Json = {"description": "Unauthorized"}
_SECURITY: Json = {
    "BearerToken": {
        "description": "Bearer Token authentication",
        "type": "apiKey",
        "name": "authorization",
        "in": "header",
    }
}
# What version 2 says in full at every use: kubectl up to 1.27 looks there for what a server can do.
_NEVER_SHARED = frozenset({"name", "fieldValidation", "dryRun"})


def _by_path(
    operations: Iterable[Operation],
) -> Iterator[tuple[str, list[tuple[Operation, list[Parameter]]], list[Parameter]]]:
    """Each path with its operations, the parameters of each alone, and those that all of them have."""
    paths: dict[str, list[Operation]] = {}
    for operation in operations:
        paths.setdefault(operation.path, []).append(operation)
    for path, found in sorted(paths.items()):
        common = set.intersection(*(set(operation.parameters) for operation in found))
        alone = [(each, sorted(set(each.parameters) - common)) for each in found]
        yield path, alone, sorted(common)


def _described(operation: Operation) -> Json:
    made: Json = {"tags": [operation.tag]}
    if operation.description:
        made["description"] = operation.description
    return {**made, "operationId": operation.id}


def _kind(operation: Operation) -> Json:
    if operation.gvk is None:
        return {}
    return {
        "x-kubernetes-action": operation.action,
        "x-kubernetes-group-version-kind": operation.gvk._asdict(),
    }


def _used(operations: Iterable[Operation]) -> set[str]:
    return {name for each in operations for name in (each.answer, each.body) if name}


def document_v3(
    operations: Iterable[Operation],
    definitions: Mapping[str, Any],
    info: Json,
    extra: Iterable[str] = (),
    *,
    secured: bool = True,
) -> Json:
    """The OpenAPI v3 document of a part; ``extra`` names definitions that no operation shows."""
    operations = list(operations)
    paths: Json = {}
    for path, found, common in _by_path(operations):
        item: Json = {each.method: _v3(each, parameters) for each, parameters in found}
        if common:
            item["parameters"] = [_v3_parameter(parameter) for parameter in common]
        paths[path] = item
    shown = reachable({*_used(operations), *extra}, definitions)
    components: Json = {}
    if shown:
        components["schemas"] = {name: v3_definition(name, schema) for name, schema in shown.items()}
    if secured:
        components["securitySchemes"] = _SECURITY
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": components}


def _v3_parameter(parameter: Parameter) -> Json:
    made: Json = {"name": parameter.name, "in": parameter.place, "description": parameter.description}
    if parameter.place == "path":
        made["required"] = True
    return {**made, "schema": {"type": parameter.type, "uniqueItems": True}}


def _v3(operation: Operation, parameters: list[Parameter]) -> Json:
    made = _described(operation)
    if parameters:
        made["parameters"] = [_v3_parameter(parameter) for parameter in parameters]
    if operation.body:
        made["requestBody"] = {"content": _content(operation.consumes, operation.body)}
        if operation.body_required:
            made["requestBody"]["required"] = True
    answers = {
        str(code): {
            "description": _DESCRIBED[code],
            "content": _content(operation.produces, operation.answer),
        }
        for code in operation.codes
    }
    made["responses"] = {**answers, "401": _UNAUTHORIZED}
    return {**made, **_kind(operation)}


def _content(types: Iterable[str], name: str) -> Json:
    schema = {"$ref": f"#/components/schemas/{name}"} if name else {"type": "string"}
    return {media_type: {"schema": schema} for media_type in sorted(types)}


@dataclass(frozen=True, slots=True)
class DocumentPart:
    """What one origin (a resource, a group, a package) adds to the version 2 document.

    It is encoded already, so that a change of one definition renders that definition alone.
    """

    paths: dict[str, bytes]
    parameters: dict[str, bytes]
    """Those that many operations share, by their names."""
    used: frozenset[str]
    """The definitions that its operations name."""
    definitions: dict[str, tuple[bytes, frozenset[str]]]
    """Its own, each with the names of those that it refers to."""


def fragment_v2(
    operations: Iterable[Operation], definitions: Mapping[str, Any] | None = None, extra: Iterable[str] = ()
) -> DocumentPart:
    """The fragment of operations, none of whose paths another origin has; ``extra`` names definitions that no operation
    shows."""
    operations = list(operations)
    shared: dict[str, Json] = {}
    paths = {}
    for path, found, common in _by_path(operations):
        item: Json = {each.method: _v2(each, parameters, shared) for each, parameters in found}
        if common:
            item["parameters"] = [_v2_parameter(parameter, shared) for parameter in common]
        paths[path] = encode(item)
    return DocumentPart(
        paths,
        {name: encode(parameter) for name, parameter in shared.items()},
        frozenset({*_used(operations), *extra}),
        {name: (encode(each), frozenset(references(each))) for name, each in (definitions or {}).items()},
    )


def document_v2(fragments: Iterable[DocumentPart], info: Json) -> bytes:
    """The OpenAPI v2 document of everything, as JSON; parameters that many operations have are there once."""
    paths: dict[str, bytes] = {}
    parameters: dict[str, bytes] = {}
    definitions: dict[str, tuple[bytes, frozenset[str]]] = {}
    waiting: set[str] = set()
    for each in fragments:
        paths |= each.paths
        parameters |= each.parameters
        definitions |= each.definitions
        waiting |= each.used
    shown: dict[str, bytes] = {}
    while waiting:
        name = waiting.pop()
        if name not in shown and name in definitions:
            shown[name], inner = definitions[name]
            waiting |= inner
    return _object(
        {
            "swagger": encode("2.0"),
            "info": encode(info),
            "paths": _object(dict(sorted(paths.items()))),
            "definitions": _object(dict(sorted(shown.items()))),
            "parameters": _object(dict(sorted(parameters.items()))),
            "securityDefinitions": encode(_SECURITY),
            "security": encode([{"BearerToken": []}]),
        }
    )


def _object(members: Mapping[str, bytes]) -> bytes:
    """A JSON object of members that are encoded."""
    return b"{%b}" % b",".join([b"%b:%b" % (encode(name), value) for name, value in members.items()])


def _v2_parameter(parameter: Parameter, shared: dict[str, Json]) -> Json:
    made: Json = {
        "uniqueItems": True,
        "type": parameter.type,
        "description": parameter.description,
        "name": parameter.name,
        "in": parameter.place,
    }
    if parameter.place == "path":
        made["required"] = True
    return made if parameter.name in _NEVER_SHARED else _shared(made, shared)


def _shared(parameter: Json, shared: dict[str, Json]) -> Json:
    digest = hashlib.sha224(encode(parameter)).digest()[:6]
    name = f"{parameter['name']}-{base64.urlsafe_b64encode(digest).decode()}"
    shared[name] = parameter
    return {"$ref": f"#/parameters/{name}"}


def _v2(operation: Operation, parameters: list[Parameter], shared: dict[str, Json]) -> Json:
    given = [_v2_parameter(parameter, shared) for parameter in parameters]
    if operation.body:
        body: Json = {"name": "body", "in": "body", "schema": {"$ref": f"#/definitions/{operation.body}"}}
        if operation.body_required:
            body["required"] = True
        given.insert(0, _shared(body, shared) if operation.body.startswith(META) else body)
    made: Json = {
        **_described(operation),
        "consumes": list(operation.consumes),
        "produces": list(operation.produces),
        "schemes": ["https"],
    }
    if not operation.consumes:
        del made["consumes"]
    if given:
        made["parameters"] = given
    schema = {"$ref": f"#/definitions/{operation.answer}"} if operation.answer else {"type": "string"}
    answers = {str(code): {"description": _DESCRIBED[code], "schema": schema} for code in operation.codes}
    made["responses"] = {**answers, "401": _UNAUTHORIZED}
    return {**made, **_kind(operation)}
