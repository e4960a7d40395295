"""How reference pages put a value into words: its type, what it may be, how it merges, and the fields below it.

It speaks of the IR, so of any source; ``explain`` answers in kubectl's words, which say less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from kubewright.ir.merge import ListType, MapType, PatchStrategy
from kubewright.ir.types import (
    ABSENT,
    Constraints,
    Definition,
    EmbeddedObject,
    Field,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.tools.crd.inlining import INT_OR_STRING, overlay

Table = Mapping[str, Definition]
_DEPRECATED = re.compile(r"(?:^|\s)(?:Deprecated[:.]|DEPRECATED)|^Deprecated\b")


def resolve(value: Value, table: Table) -> Value:
    """``value`` with what it refers to, under all that its own place says."""
    seen: set[str] = set()
    while isinstance(value.type, Ref) and value.type.name in table and value.type.name not in seen:
        seen.add(value.type.name)
        value = overlay(value, table[value.type.name].value)
    return value


def fields_of(value: Value, table: Table) -> tuple[Field, ...]:
    """The fields of an object, of a list's items, of a map's values."""
    for _ in range(len(table) + 100):
        node = resolve(value, table).type
        if isinstance(node, EmbeddedObject):
            return node.body.fields
        if isinstance(node, Struct):
            return node.fields
        if isinstance(node, ListOf):
            value = node.items
        elif isinstance(node, MapOf):
            value = node.values
        else:
            break
    return ()


def type_words(value: Value) -> tuple[tuple[str, str], ...]:
    """The type in words, in parts: text, and the name of the definition that it names, or nothing."""
    node: Type = value.type
    if isinstance(node, ListOf):
        return (("[]", ""), *type_words(node.items))
    if isinstance(node, MapOf):
        return (("map[string]", ""), *type_words(node.values))
    if isinstance(node, Ref):
        return ((node.name.rpartition(".")[2], node.name),)
    if isinstance(node, Scalar):
        return ((node.primitive.value, ""),)
    if isinstance(node, RawJson):
        return (("Object" if node.object_only else "any", ""),)
    words = {Struct: "Object", EmbeddedObject: "Kubernetes object"}
    return ((words.get(type(node), type(node).__name__), ""),)


def is_deprecated(value: Value) -> bool:
    """Whether the description says so, as Go's convention words it, or the schema's ``deprecated``."""
    return bool(_DEPRECATED.search(value.doc)) or dict(value.extensions).get("deprecated") is True


def plain(item: Json) -> str:
    """A JSON value in words: strings as they are where nobody could mistake them, all else as JSON."""
    if (
        isinstance(item, str)
        and re.fullmatch(r"[A-Za-z][\w./:-]*", item)
        and item not in ("true", "false", "null")
    ):
        return item
    return json.dumps(item, ensure_ascii=False)


def facts(value: Value) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the schema says of a resolved value besides its type: a label, and literal words of the schema or ours."""
    given, node = value.constraints, value.type
    if value.default is not ABSENT:
        yield "default", (plain(value.default),)
    if given.enum:
        yield "one of", tuple(map(plain, given.enum))
    if isinstance(node, Scalar) and node.format:
        yield "format", (node.format,)
    yield from _bounds(given)
    if given.pattern:
        yield "pattern", (given.pattern,)
    if value.nullable:
        yield "may be", ("null",)
    body = node.body if isinstance(node, EmbeddedObject) else node
    if isinstance(body, Struct) and (body.preserve_unknown or body.extra is not None):
        yield "further fields", ("kept",)
    yield from _merging(value)
    for label, schemas in (
        ("all of", given.all_of),
        ("any of", given.any_of),
        ("exactly one of", given.one_of),
    ):
        if schemas and not (isinstance(node, IntOrString) and schemas == INT_OR_STRING):
            yield label, tuple(map(_condition, schemas))
    if given.negated is not None:
        yield "not", (_condition(given.negated),)


def _condition(schema: Json) -> str:
    """A schema that only validates; the commonest one, required fields, without the brackets."""
    if isinstance(schema, dict) and schema.keys() == {"required"} and isinstance(schema["required"], list):
        return " and ".join(map(str, schema["required"]))
    return json.dumps(schema, ensure_ascii=False)


def _bounds(given: Constraints) -> Iterator[tuple[str, tuple[str, ...]]]:
    if given.minimum is not None:
        yield ("more than" if given.exclusive_minimum else "at least"), (plain(given.minimum),)
    if given.maximum is not None:
        yield ("less than" if given.exclusive_maximum else "at most"), (plain(given.maximum),)
    if given.multiple_of is not None:
        yield "multiple of", (plain(given.multiple_of),)
    for least, most, what in (
        (given.min_length, given.max_length, "characters"),
        (given.min_items, given.max_items, "items"),
        (given.min_properties, given.max_properties, "entries"),
    ):
        if least is not None or most is not None:
            low = "" if least is None else str(least)
            yield what, (f"{low}…{'' if most is None else most}" if least != most else low,)
    if given.unique_items:
        yield "items", ("unique",)


def _merging(value: Value) -> Iterator[tuple[str, tuple[str, ...]]]:
    merge = value.merge
    if isinstance(value.type, ListOf):
        if merge.list_type is ListType.MAP:
            yield "list keyed by", merge.list_map_keys
        elif merge.list_type is ListType.SET:
            yield "list type", ("set",)
        elif merge.list_type_declared:
            yield "list type", ("atomic",)
        if PatchStrategy.MERGE in merge.patch_strategy:
            yield "patch merges", (f"by {merge.patch_merge_key}" if merge.patch_merge_key else "as a set",)
    elif merge.map_type is MapType.ATOMIC:
        yield "map type", ("atomic",)
    if PatchStrategy.RETAIN_KEYS in merge.patch_strategy:
        yield "patch strategy", ("retainKeys",)
    if PatchStrategy.REPLACE in merge.patch_strategy:
        yield "patch strategy", ("replace",)
