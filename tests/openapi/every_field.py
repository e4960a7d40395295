"""Holds the models of an OpenAPI document against its schemas: what may be null, what one side does not give, and what
tells the members of unions apart.

    python -m tests.openapi.every_field train-travel.yaml box.json

Prints a line a document: fields that may be null, required fields of one side, discriminators, what was wrong.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import types
import typing
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from tests.openapi.drawing import METHODS, Described

from kubewright.cli import main
from kubewright.diagnostics import Diagnostics
from kubewright.emit.code.names import class_name
from kubewright.source.reading import read_input

Json = Any


def fields_of(described: Described, schema: Json) -> Iterator[tuple[str, Json, bool]]:
    """Name, schema and whether it is required, of each field that an object schema declares."""
    schema = described.follow(schema)
    parts = [*(described.follow(part) for part in schema.get("allOf", ())), schema]
    required = {name for part in parts for name in part.get("required", ())}
    declared = {name: given for part in parts for name, given in (part.get("properties") or {}).items()}
    for name, given in declared.items():
        yield name, given, name in required


def may_be_null(described: Described, schema: Json) -> bool:
    schema = described.follow(schema)
    if not isinstance(schema, dict):
        return False
    words = schema.get("type")
    parts = [*schema.get("oneOf", ()), *schema.get("anyOf", ())]
    return bool(
        schema.get("nullable")
        or words == "null"
        or (isinstance(words, list) and "null" in words)
        or any(may_be_null(described, part) for part in parts)
    )


def sent(described: Described) -> set[str]:
    """The schemas that are sent, by name."""
    found: set[str] = set()
    pending = [
        item[method].get("requestBody", {})
        for item in described.value.get("paths", {}).values()
        for method in METHODS
        if isinstance(item.get(method), dict)
    ]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            target = node.get("$ref")
            if isinstance(target, str) and target not in found:
                found.add(target)
                pending.append(described.follow(node))
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return {target.rpartition("/")[2] for target in found}


def check_models(described: Described, models: types.ModuleType) -> tuple[Counter[str], list[str]]:
    """How many fields of each sort there are, and what is wrong with their models."""
    counts, wrong = Counter[str](), []
    outgoing = sent(described)
    for name, schema in described.value.get("components", {}).get("schemas", {}).items():
        cls = getattr(models, class_name(name), None)
        if not isinstance(cls, type) or not issubclass(cls, msgspec.Struct):
            continue
        known = {field.encode_name: field for field in msgspec.structs.fields(cls)}
        hints = typing.get_type_hints(cls)
        fields = list(fields_of(described, schema))
        if not {wire_name for wire_name, _, _ in fields} <= known.keys():
            continue  # two schemas whose names make one name of a class
        for wire_name, given, required in fields:
            field, place = known[wire_name], f"{name}.{wire_name}"
            said = described.follow(given)
            if may_be_null(described, given):
                counts["null"] += 1
                members = typing.get_args(hints[field.name]) or (hints[field.name],)
                if not {Any, type(None)} & {*members}:
                    wrong.append(f"{place} cannot be null: {hints[field.name]}")
                if not field.required and field.default is None and Any not in members:
                    wrong.append(f"{place}: null is not sent")
            if required and name in outgoing and isinstance(said, dict) and said.get("readOnly") is True:
                counts["readOnly"] += 1
                if field.required:
                    wrong.append(f"{place} is readOnly, and asked of who sends")
    for schema in unions(described.value):
        wrong += _discriminator_faults(described, schema, models, counts)
    return counts, wrong


def unions(node: Json) -> Iterator[Json]:
    """Every schema with a discriminator and alternatives."""
    if isinstance(node, dict):
        if isinstance(node.get("discriminator"), dict) and ("oneOf" in node or "anyOf" in node):
            yield node
        for item in node.values():
            yield from unions(item)
    elif isinstance(node, list):
        for item in node:
            yield from unions(item)


def _discriminator_faults(
    described: Described, schema: Json, models: types.ModuleType, counts: Counter[str]
) -> Iterator[str]:
    about = schema["discriminator"]
    for part in schema.get("oneOf") or schema["anyOf"]:
        name = str(part.get("$ref", "")).rpartition("/")[2]
        cls = getattr(models, class_name(name), None)
        if not name or not isinstance(cls, type) or not issubclass(cls, msgspec.Struct):
            continue
        words = [word for word, to in about.get("mapping", {}).items() if str(to).rpartition("/")[2] == name]
        field = next((f for f in msgspec.structs.fields(cls) if f.encode_name == about["propertyName"]), None)
        if field is None or not words:
            continue
        counts["discriminator"] += 1
        others = {f.name: None for f in msgspec.structs.fields(cls) if f.required}
        for word in words:
            made = cls(**{**others, field.name: word})
            if json.loads(msgspec.json.encode(made)).get(field.encode_name) != word:
                yield f"{name}.{field.encode_name}: {word!r} is not sent"
        if len(words) == 1 and field.required and described.follow(part):
            yield f"{name}.{field.encode_name}: {words[0]!r} is asked for"


def run(paths: list[str]) -> int:
    """Checks each document; returns how many things were wrong."""
    total = 0
    for number, path in enumerate(paths):
        with tempfile.TemporaryDirectory() as folder:
            package = f"fields{number}_api"
            if main(["generate", path, "--package", package, "--output", folder, "-q", "-j1"]):
                return 1
            (document,) = read_input([Path(path)], Diagnostics()).openapi
            sys.path.insert(0, folder)
            models = importlib.import_module(f"{package}.models.models")
            counts, wrong = check_models(Described(document.value), models)
            sys.path.remove(folder)
        total += len(wrong)
        print(f"{Path(path).name}: {dict(counts)}, {len(wrong)} wrong")
        for line in wrong[:40]:
            print(f"  {line}")
    return total


if __name__ == "__main__":
    sys.exit(bool(run(sys.argv[1:])))
