"""The protobuf form of two states, where facts give the numbers of fields.

A reader of bytes knows a field by its number and the form of its value, not by its name. So a field keeps its number, a
number keeps its field, and the form on the wire (varint, fixed, text, message, one or many) stays what it is.
What form a type has follows ``apimachinery.wire.protobuf``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubewright.ir.api import Api
from kubewright.ir.rules import FieldNumber
from kubewright.ir.types import Definition, ListOf, MapOf, Primitive, Ref, Scalar, Struct, Type
from kubewright.location import Location
from kubewright.tools.diff.change import KINDS, ApiChange

Found = tuple[str, str, str]
"""Code, field, message."""


def compare_wire(old: Api, new: Api) -> Iterator[ApiChange]:
    """What the numbers and types of both states change in the protobuf form."""
    before = {entry.definition: entry.fields for entry in old.fact("protobuf") or ()}
    after = {entry.definition: entry.fields for entry in new.fact("protobuf") or ()}
    tables = [{d.name: d for d in api.definitions} for api in (old, new)]
    for name in sorted(before.keys() & after.keys() & tables[0].keys() & tables[1].keys()):
        was, now = tables[0][name], tables[1][name]
        found = [
            *_numbers("", before[name], after[name], _fields(now)),
            *_types(before[name], after[name], was, now, tables),
        ]
        for code, field, message in found:
            place = _fields(now).get(field.partition(".")[0], now.value.location)
            yield ApiChange(KINDS[code], f"{name}: {field}", now.version, message, place)


def _fields(definition: Definition) -> dict[str, Location]:
    body = definition.value.type
    return {f.wire_name: f.value.location for f in body.fields} if isinstance(body, Struct) else {}


def _numbers(
    above: str, old: tuple[FieldNumber, ...], new: tuple[FieldNumber, ...], present: Mapping[str, Location]
) -> Iterator[Found]:
    before, after = {f.name: f for f in old}, {f.name: f for f in new}
    holders = {f.number: f.name for f in new}
    for name, was in before.items():
        now = after.get(name)
        holder = holders.get(was.number)
        if now is not None and now.number != was.number:
            yield "D311", f"{above}{name}", f"protobuf number changed from {was.number} to {now.number}"
        elif now is None and (name in present or was.inline):
            yield "D314", f"{above}{name}", f"has no protobuf number any more (it was {was.number})"
        if holder is not None and holder != name:
            yield (
                "D312",
                f"{above}{holder}",
                f"has the protobuf number {was.number}, which was that of {name}",
            )
        if now is not None:
            yield from _numbers(f"{above}{name}.", was.inline, now.inline, present)


def _types(
    old: tuple[FieldNumber, ...],
    new: tuple[FieldNumber, ...],
    was: Definition,
    now: Definition,
    tables: list[dict[str, Definition]],
) -> Iterator[Found]:
    before, after = was.value.type, now.value.type
    if not isinstance(before, Struct) or not isinstance(after, Struct):
        return
    numbered = set(_names(old)) & set(_names(new))
    types = {f.wire_name: f.value.type for f in before.fields}
    for field in after.fields:
        if field.wire_name in numbered and field.wire_name in types:
            forms = (form_of(types[field.wire_name], tables[0]), form_of(field.value.type, tables[1]))
            if forms[0] != forms[1]:
                yield "D313", field.wire_name, f"is {forms[1]} in the protobuf form and was {forms[0]}"


def _names(fields: tuple[FieldNumber, ...]) -> Iterator[str]:
    for field in fields:
        if field.inline:
            yield from _names(field.inline)
        else:
            yield field.name


def form_of(kind: Type, table: Mapping[str, Definition]) -> str:
    """How a value of a type stands on the wire."""
    seen: set[str] = set()
    while isinstance(kind, Ref) and kind.name in table and kind.name not in seen:
        seen.add(kind.name)
        kind = table[kind.name].value.type
    if isinstance(kind, ListOf):
        return f"repeated {form_of(kind.items.type, table)}"
    if isinstance(kind, MapOf):
        return f"a map of {form_of(kind.values.type, table)}"
    if not isinstance(kind, Scalar):
        return "a message"
    if kind.primitive is Primitive.NUMBER:
        return "fixed32" if kind.format == "float" else "fixed64"
    return "length-delimited" if kind.primitive is Primitive.STRING else "varint"
