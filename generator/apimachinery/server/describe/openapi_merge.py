"""Merges the OpenAPI v2 document of another server into this server's: its paths, and the definitions that they need.

Two definitions of one name that say the same are one. Where they differ the other server's gets a new name
(``…_v2``, ``…_v3``), and whatever refers to it follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PREFIX = "#/definitions/"
_PARAMETERS = "#/parameters/"
Json = dict[str, Any]


def part_of(document: Mapping[str, Any], paths: tuple[str, ...]) -> Json:
    """The paths of a v2 document that are one of ``paths`` or below it, and all definitions that they reach."""
    chosen = {
        path: item
        for path, item in (document.get("paths") or {}).items()
        if isinstance(path, str) and any(path.rstrip("/") == p or path.startswith(p + "/") for p in paths)
    }
    shared = document.get("parameters")
    if isinstance(shared, dict):
        chosen = _with_parameters(chosen, shared)
    definitions = document.get("definitions") or {}
    needed: Json = {}
    due = list(_references(chosen))
    # What is not reached by a path but names a kind of its own is kept too: clients look kinds up by it.
    due += [
        name
        for name, schema in definitions.items()
        if isinstance(schema, dict) and "x-kubernetes-group-version-kind" in schema and chosen
    ]
    while due:
        name = due.pop()
        if name in needed or name not in definitions:
            continue
        needed[name] = definitions[name]
        due += _references(definitions[name])
    return {"paths": chosen, "definitions": needed}


def merge_v2(document: Json, other: Mapping[str, Any]) -> None:
    """Puts a part of another document into ``document``, which keeps what it has."""
    definitions, names = document["definitions"], dict[str, str]()
    for name, schema in sorted(other.get("definitions", {}).items()):
        target, number = name, 1
        while target in definitions and not _same(definitions[target], schema):
            number += 1
            target = f"{name}_v{number}"
        names[name] = target
    for name, schema in sorted(other.get("definitions", {}).items()):
        definitions.setdefault(names[name], _renamed(schema, names))
    for path, item in sorted(other.get("paths", {}).items()):
        document["paths"].setdefault(path, _renamed(item, names))
    document["definitions"] = dict(sorted(definitions.items()))
    document["paths"] = dict(sorted(document["paths"].items()))


def _with_parameters(value: Any, shared: Mapping[str, Any]) -> Any:
    """Paths with the parameters that their document has once: what is merged has to do without them."""
    if isinstance(value, list):
        return [_with_parameters(entry, shared) for entry in value]
    if not isinstance(value, dict):
        return value
    target = value.get("$ref")
    if isinstance(target, str) and target.startswith(_PARAMETERS):
        return shared.get(target.removeprefix(_PARAMETERS), value)
    return {key: _with_parameters(entry, shared) for key, entry in value.items()}


def _same(one: Any, two: Any) -> bool:
    """Whether two schemas allow the same: prose may differ."""
    return bool(_silent(one) == _silent(two))


def _silent(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_silent(entry) for entry in schema]
    if isinstance(schema, dict):
        return {
            key: _silent(value)
            for key, value in schema.items()
            if not (key == "description" and isinstance(value, str))
            and key != "x-kubernetes-group-version-kind"
        }
    return schema


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for entry in schema:
            yield from _references(entry)
    elif isinstance(schema, dict):
        target = schema.get("$ref")
        if isinstance(target, str) and target.startswith(_PREFIX):
            yield target.removeprefix(_PREFIX)
        for value in schema.values():
            yield from _references(value)


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if isinstance(schema, list):
        return [_renamed(entry, names) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _renamed(value, names) for key, value in schema.items()}
    target = made.get("$ref")
    if isinstance(target, str) and target.startswith(_PREFIX):
        name = target.removeprefix(_PREFIX)
        made["$ref"] = _PREFIX + names.get(name, name)
    return made
