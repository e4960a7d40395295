"""Merge schemas as text: how a generated ``merge_schema.py`` holds its table.

The text is JSON, a field a line or more, so that importing it costs one parse and no type checker looks inside:

    {
     "io.k8s.api.core.v1.ServiceSpec": {"struct": {
      "ports": {"list": {"ref": "io.k8s.api.core.v1.ServicePort"}, "keys": ["port", "protocol"], "patch": ["merge"],
                "merge_key": "port"},
      "selector": {"map": "string", "atomic": true},
      "type": "string"}}
    }

A type is a word (``string``, ``number``, ``boolean``, ``any``, ``untyped``, ``deduced``) or an object with one of the
keys ``ref``, ``list`` (a map list with ``keys``, a set with ``set``), ``map``, ``struct`` (with ``rest`` for undeclared
fields) or ``word``; ``atomic`` is that of ``merge.schema``. ``default``, ``patch`` and ``merge_key`` make it a field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

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
    Field,
    ListOf,
    MapOf,
    Ref,
    Struct,
    Type,
)

WORDS: Final[Mapping[str, Type]] = {
    "string": STRING,
    "number": NUMBER,
    "boolean": BOOLEAN,
    "any": ANY,
    "untyped": UNTYPED,
    "deduced": DEDUCED,
}


def read_types(text: str) -> Mapping[str, Type]:
    """The types of a table, by definition name. Raises ``ValueError`` or ``KeyError`` for what is not a table."""
    return {name: _type(given) for name, given in json.loads(text).items()}


def _type(given: Any) -> Type:
    if isinstance(given, str):
        return WORDS[given]
    if "ref" in given:
        return Ref(given["ref"], given.get("atomic"))
    if "list" in given:
        keys = tuple(given.get("keys", ()))
        return ListOf(_type(given["list"]), MAP if keys else SET if given.get("set") else ATOMIC, keys)
    if "map" in given:
        return MapOf(_type(given["map"]), given.get("atomic", False))
    if "struct" in given:
        rest = _type(given["rest"]) if "rest" in given else None
        fields = {name: _field(inner) for name, inner in given["struct"].items()}
        return Struct(fields, given.get("atomic", False), rest)
    return WORDS[given["word"]]


def _field(given: Any) -> Field | Type:
    declared = _type(given)
    if isinstance(given, str) or not given.keys() & {"default", "patch", "merge_key"}:
        return declared
    return Field(
        declared, given.get("default", ABSENT), tuple(given.get("patch", ())), given.get("merge_key", "")
    )
