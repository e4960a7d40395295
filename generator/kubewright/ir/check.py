"""What must hold of a linked API before anything is emitted. Every fault found goes into the diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.ir.merge import ListType
from kubewright.ir.types import (
    ABSENT,
    Definition,
    EmbeddedObject,
    IntOrString,
    Json,
    ListOf,
    MapOf,
    Primitive,
    RawJson,
    Ref,
    Scalar,
    Struct,
    Type,
    Value,
)
from kubewright.ir.walk import children
from kubewright.location import Location

Report: TypeAlias = Callable[[str, str, Location, str], None]
"""Adds a diagnostic: code, message, place and hint."""


def check(api: Api, diagnostics: Diagnostics) -> None:
    """Checks merge markers against the types they stand on, and defaults against their types."""
    table = {definition.name: definition for definition in api.definitions}
    # Of an ordinary document no default is used: it is shown, and the server has its own.
    default_fault = diagnostics.error if api.has_kinds else diagnostics.warning
    for definition in api.definitions:
        _check_value(definition.value, definition.name.rpartition(".")[2], table, diagnostics, default_fault)


def resolve(node: Type, table: dict[str, Definition]) -> Type:
    """``node`` with references followed; a chain that does not end gives ``RawJson``."""
    seen: set[str] = set()
    while isinstance(node, Ref):
        if node.name in seen or node.name not in table:
            return RawJson()
        seen.add(node.name)
        node = table[node.name].value.type
    return node


def _check_value(
    value: Value, name: str, table: dict[str, Definition], diagnostics: Diagnostics, default_fault: Report
) -> None:
    stack = [(value, name)]
    while stack:
        current, owner = stack.pop()
        node = resolve(current.type, table)
        _check_merge(current, node, owner, table, diagnostics)
        if current.default is not ABSENT:
            fault = diagnostics.warning if _is_of_type(current.default, node) else default_fault
            _check_default(current, node, owner, fault)
        stack.extend((child, owner + step) for step, child in children(current))


def _check_merge(
    value: Value, node: Type, owner: str, table: dict[str, Definition], diagnostics: Diagnostics
) -> None:
    merge = value.merge
    # In Go a byte string is a list of bytes; its marker says nothing in JSON.
    is_bytes = isinstance(node, Scalar) and node.format == "byte"
    if merge.list_type_declared and isinstance(node, RawJson) and not node.object_only:
        return  # of a nullable list /openapi/v2 says no more than its markers
    if merge.list_type_declared and not isinstance(node, ListOf) and not is_bytes:
        diagnostics.error(
            "K110",
            f"{owner} has a list type, but is no list",
            value.location,
            "take x-kubernetes-list-type away",
        )
        return
    if merge.map_type_declared and not isinstance(node, Struct | MapOf | RawJson | EmbeddedObject):
        diagnostics.error(
            "K110",
            f"{owner} has a map type, but is no object",
            value.location,
            "take x-kubernetes-map-type away",
        )
        return
    if not isinstance(node, ListOf):
        return
    items = resolve(node.items.type, table)
    if isinstance(items, EmbeddedObject):
        items = items.body
    keys = merge.list_map_keys if merge.list_type is ListType.MAP else ()
    if keys and isinstance(items, RawJson):
        return
    if keys and not isinstance(items, Struct):
        diagnostics.error(
            "K105",
            f"{owner} is a map list, but its items are no objects",
            value.location,
            "use list type set",
        )
        return
    for key in keys:
        assert isinstance(items, Struct)
        field = next((f for f in items.fields if f.wire_name == key), None)
        if field is None:
            diagnostics.error(
                "K104",
                f'list-map key "{key}" is not a property of {_type_name(node.items.type, owner)}',
                value.location,
                f"its properties: {', '.join(sorted(f.wire_name for f in items.fields)) or 'none'}",
            )
        elif not isinstance(resolve(field.value.type, table), Scalar | IntOrString | RawJson):
            diagnostics.error(
                "K104",
                f'list-map key "{key}" of {_type_name(node.items.type, owner)} is no scalar',
                value.location,
                "keys are compared as strings, numbers or booleans",
            )


def _type_name(node: Type, owner: str) -> str:
    return node.name.rpartition(".")[2] if isinstance(node, Ref) else f"the items of {owner}"


_PYTHON_TYPES: dict[Primitive, tuple[type, ...]] = {
    Primitive.STRING: (str,),
    Primitive.INTEGER: (int,),
    Primitive.NUMBER: (int, float),
    Primitive.BOOLEAN: (bool,),
}


def _check_default(value: Value, node: Type, owner: str, fault: Report) -> None:
    given, members = value.default, value.constraints.enum
    # Empty text beside an enum is Go's zero value, as kube-apiserver publishes it: nothing is sent then.
    if not _is_of_type(given, node) or (members and given and given not in members):
        fault(
            "K111",
            f"the default of {owner} is {_shown(given)}, which its type does not allow",
            value.location,
            "write a default of the field's own type",
        )


def _is_of_type(given: Json, node: Type) -> bool:
    wanted: tuple[type, ...]
    if isinstance(node, Scalar):
        wanted = _PYTHON_TYPES[node.primitive]
    elif isinstance(node, ListOf):
        wanted = (list,)
    elif isinstance(node, Struct | MapOf | EmbeddedObject):
        wanted = (dict,)
    elif isinstance(node, IntOrString):
        wanted = (int, str)
    else:
        return True
    if given is None or (isinstance(given, float) and given.is_integer() and int in wanted):
        return True
    return isinstance(given, wanted) and (not isinstance(given, bool) or bool in wanted)


def _shown(given: Json) -> str:
    text = repr(given)
    return text if len(text) <= 60 else text[:57] + "..."
