"""The example groups: valid in their own form, complete in markers and words, with samples that fit."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import openapi_spec_validator
import pytest
import yaml

SPECS = Path(__file__).parents[3] / "specs"
CRDS = sorted((SPECS / "backup" / "crds").glob("*.yaml"))
SAMPLES = sorted(SPECS.glob("*/samples/*.yaml"))

MARKERS = {
    "list-type": {"atomic", "set", "map"},
    "map-type": {"atomic"},
    "patch-strategy": {"merge", "retainKeys", "merge,retainKeys"},
    "action": {"get", "list", "post", "put", "patch", "delete", "deletecollection"},
    "list-map-keys": None,
    "patch-merge-key": None,
    "group-version-kind": None,
    "int-or-string": None,
    "embedded-resource": None,
    "preserve-unknown-fields": None,
    "validations": None,
    "unions": None,
}
RESERVED = {"continue", "from", "class", "import", "in", "not", "and", "or", "$ref", "properties", "items"}


@cache
def load(path: Path) -> list[Any]:
    return list(yaml.load_all(path.read_text(), Loader=yaml.CSafeLoader))


def documents() -> Iterator[Any]:
    for path in [*CRDS, SPECS / "messaging" / "openapi.yaml", SPECS / "flags" / "openapi.yaml"]:
        yield from load(path)


def mappings(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from mappings(value)
    elif isinstance(node, list):
        for value in node:
            yield from mappings(value)


def fields(node: Any) -> Iterator[tuple[str, Any]]:
    """Every named schema below ``node``, by the grammar: a property may be called ``properties``."""
    if not isinstance(node, dict):
        return
    for name, schema in node.get("properties", {}).items():
        yield name, schema
        yield from fields(schema)
    for key in ("items", "additionalProperties"):
        yield from fields(node.get(key))


def schemas() -> Iterator[tuple[str, Any]]:
    for document in documents():
        if document.get("kind") == "CustomResourceDefinition":
            for version in document["spec"]["versions"]:
                yield (
                    f"{document['metadata']['name']} {version['name']}",
                    version["schema"]["openAPIV3Schema"],
                )
        else:
            yield from (document.get("definitions") or document["components"]["schemas"]).items()


def test_every_marker_is_used_with_every_value() -> None:
    found: dict[str, set[str]] = {}
    for document in documents():
        for mapping in mappings(document):
            for key, value in mapping.items():
                if isinstance(key, str) and key.startswith("x-kubernetes-"):
                    found.setdefault(key.removeprefix("x-kubernetes-"), set()).add(str(value))
    assert found.keys() == MARKERS.keys()
    for marker, values in MARKERS.items():
        assert values is None or found[marker] >= values, marker


def test_reserved_names_recursion_and_every_kind_of_place_occur() -> None:
    named = [field for _, schema in schemas() for field in fields(schema)]
    assert {name for name, _ in named} >= RESERVED
    assert any("nullable" in schema for _, schema in named)
    assert any(schema.get("default", 1) is None or "default" in schema for _, schema in named)
    formats = {schema["format"] for _, schema in named if isinstance(schema.get("format"), str)}
    assert formats >= {"int32", "int64", "double", "byte", "date-time", "duration", "email", "uri", "uuid"}
    keys = [s["x-kubernetes-list-map-keys"] for _, s in named if "x-kubernetes-list-map-keys" in s]
    assert any(len(several) > 1 for several in keys)
    recursive = [name for name, schema in schemas() if f"/{name}'" in str(schema)]
    assert sorted(name.rpartition(".")[2] for name in recursive) == ["Expression", "Expression", "Filter"]


def test_every_schema_and_field_is_described() -> None:
    silent = [name for name, schema in schemas() if not schema.get("description")]
    for owner, schema in schemas():
        for name, field in fields(schema):
            if name != "metadata" and not field.get("description"):
                silent.append(f"{owner}: {name}")
    assert silent == []


@pytest.mark.parametrize("group", ["messaging", "flags"])
def test_openapi_documents_are_valid(group: str) -> None:
    openapi_spec_validator.validate(load(SPECS / group / "openapi.yaml")[0])


def schema_of(api_version: str, kind: str) -> Any:
    group, version = api_version.split("/")
    for document in documents():
        if document.get("kind") == "CustomResourceDefinition":
            spec = document["spec"]
            if (spec["group"], spec["names"]["kind"]) == (group, kind):
                return next(v for v in spec["versions"] if v["name"] == version)["schema"]["openAPIV3Schema"]
            continue
        for schema in (document.get("definitions") or document["components"]["schemas"]).values():
            for gvk in schema.get("x-kubernetes-group-version-kind", ()):
                if (gvk["group"], gvk["version"], gvk["kind"]) == (group, version, kind):
                    return as_json_schema(schema, document)
    raise AssertionError(f"nothing defines {api_version} {kind}")


def as_json_schema(schema: Any, document: Any) -> Any:
    """OpenAPI as JSON Schema: ``nullable`` and ``format: int-or-string`` are words of OpenAPI alone."""

    def convert(node: Any) -> Any:
        if isinstance(node, list):
            return [convert(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("format") == "int-or-string":
            return {"type": ["integer", "string"]}
        node = {key: convert(value) for key, value in node.items()}
        if node.get("nullable") is True:
            return {"anyOf": [node, {"type": "null"}]}
        return node

    rest = {key: convert(document[key]) for key in ("definitions", "components") if key in document}
    return {**convert(schema), **rest}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parents[1].name}/{path.stem}")
def test_samples_fit_their_schemas(path: Path) -> None:
    for sample in load(path):
        schema = schema_of(sample["apiVersion"], sample["kind"])
        validator = jsonschema.Draft4Validator(as_json_schema(schema, {**schema, "definitions": {}}))
        if "definitions" in schema or "components" in schema:
            validator = jsonschema.Draft4Validator(schema)
        assert [error.message for error in validator.iter_errors(sample)] == []
        undeclared = sample.keys() - schema["properties"].keys()
        assert undeclared == set()


def test_every_served_kind_has_a_sample() -> None:
    have = {(s["apiVersion"], s["kind"]) for path in SAMPLES for s in load(path)}
    wanted = set()
    for document in documents():
        if document.get("kind") == "CustomResourceDefinition":
            spec = document["spec"]
            for version in spec["versions"]:
                if version["served"]:
                    wanted.add((f"{spec['group']}/{version['name']}", spec["names"]["kind"]))
    for name, schema in schemas():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            if name.startswith("dev.kubewright.") and not gvk["kind"].endswith("List"):
                wanted.add((f"{gvk['group']}/{gvk['version']}", gvk["kind"]))
    assert wanted - have == set()
