"""FieldsV1: path elements and field sets on the wire, read strictly and written canonically.

A set read here is in the normal form that ``field_set`` needs. Elements are checked once for each spelling
and then remembered, so that reading the sets of an object is one subset test of its keys a node.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from apimachinery.merge import value
from apimachinery.merge.elements import in_order
from apimachinery.merge.errors import quote
from apimachinery.merge.field_set import LEAF, FieldSet

_MAX_KNOWN = 50_000
_MAX_KNOWN_LENGTH = 200
_MAX_DEPTH = 200
_known: set[str] = {"."}


class FieldsError(ValueError):
    """A text that is not FieldsV1."""


def key_element(keys: dict[str, Any]) -> str:
    """The element of a map list's item: ``k:{"name":"a"}``."""
    return f"k:{value.encode(keys)}"


def value_element(item: Any) -> str:
    """The element of a set's item: ``v:"a"``."""
    return f"v:{value.encode(item)}"


def _canonical(element: str) -> str | None:
    """The canonical spelling of an element, None for kinds that a later version may know."""
    if len(element) < 2 or element[1] != ":":
        if element == ".":
            return element
        raise FieldsError(f"path element {quote(element)} has no kind: f:, k:, v: or i: must come first")
    kind, rest = element[0], element[2:]
    if kind == "f":
        return element
    # As the Go library: elements of an unknown kind are dropped, so that a newer server's entries can be read.
    if kind not in "kvi":
        return None
    try:
        parsed = json.loads(rest)
    except (ValueError, RecursionError) as error:
        raise FieldsError(f"path element {quote(element)} is not JSON after its kind: {error}") from None
    if kind == "k" and not (isinstance(parsed, dict) and parsed):
        raise FieldsError(f"path element {quote(element)} must hold an object of at least one key")
    if kind == "i" and not (isinstance(parsed, int) and not isinstance(parsed, bool)):
        raise FieldsError(f"path element {quote(element)} must hold an index")
    return f"{kind}:{value.encode(parsed)}"


def parse(fields: Any, depth: int = 0) -> FieldSet:
    """The set that a FieldsV1 object (already read from JSON) stands for.

    Shares what is canonical with the argument. Raises ``FieldsError`` with the offending element.
    """
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise FieldsError(f"a field set must be an object, not {value.go_type(fields)}")
    if depth > _MAX_DEPTH:
        raise FieldsError(f"a field set may not nest deeper than {_MAX_DEPTH}")
    # One set operation for all keys: nearly always all of them are known.
    if not fields.keys() <= _known:
        fields = _spelled(fields)
    changed: FieldSet | None = None
    for element, node in fields.items():
        if not node and type(node) is dict:
            continue
        read = parse(node, depth + 1)
        if read is not node:
            if changed is None:
                changed = dict(fields)
            changed[element] = read
    if changed is not None:
        fields = changed
    # Normal form: a node that holds only itself is a leaf.
    return LEAF if depth and len(fields) == 1 and "." in fields else fields


def _spelled(fields: dict[str, Any]) -> FieldSet:
    """``fields`` with canonical keys; what no version knows is left out."""
    out: FieldSet = {}
    for element, node in fields.items():
        if element not in _known:
            spelling = _canonical(element)
            if spelling is None:
                continue
            # Long elements come from clients' values; remembering them would fill the memory.
            if spelling == element and len(element) <= _MAX_KNOWN_LENGTH:
                if len(_known) >= _MAX_KNOWN:
                    _known.clear()
                    _known.add(".")
                _known.add(element)
            out[spelling] = node
        else:
            out[element] = node
    return out if len(out) != len(fields) or out.keys() != fields.keys() else fields


def sort_around(fields: FieldSet, in_place: Mapping[str, FieldSet]) -> FieldSet:
    """``sort`` of a set some of whose first elements are in order: ``in_place`` has them."""
    return {
        element: in_place[element] if element in in_place else sort(fields[element])
        for element in in_order(fields)
    }


def sort(fields: FieldSet) -> FieldSet:
    """The set with its elements in wire order, everywhere. A new object, fit to be stored."""
    if len(fields) == 1:
        # Most nodes have one element, which needs no sorting.
        for element, node in fields.items():
            return {element: sort(node) if node else {}}
    return {element: sort(fields[element]) if fields[element] else {} for element in in_order(fields)}


def path_text(path: Sequence[str]) -> str:
    """A path for people: ``.spec.ports[port=80,protocol="TCP"].name``."""
    return "".join(map(element_text, path))


def element_text(element: str) -> str:
    """One element for people: ``.name``, ``[name="a"]``, ``[="a"]``, ``[0]``."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    parsed = json.loads(rest)
    if kind == "v":
        return f"[={_operand(parsed)}]"
    return "[" + ",".join(f"{name}={_operand(parsed[name])}" for name in sorted(parsed)) + "]"


def _operand(item: Any) -> str:
    if isinstance(item, str):
        return quote(item)
    if isinstance(item, list):
        return "[" + ",".join(map(_operand, item)) + "]"
    if isinstance(item, dict):
        return "".join(f"{key}={_operand(item[key])}" for key in sorted(item))
    return "null" if item is None else value.go_text(item)
