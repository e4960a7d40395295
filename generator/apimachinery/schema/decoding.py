"""Typed decoding: why a body does not fit a built-in kind, and which of its fields the kind does not have.

Theory. kube-apiserver decodes a built-in kind into Go structs. A value of a wrong type fails the request
with the words of Go's JSON decoder, which name the innermost struct, the path of field names (no indices,
no map keys) and the Go type: ``json: cannot unmarshal string into Go struct field
DeploymentSpec.spec.replicas of type int32``. The first such value of the document is named. Null fits
everything. A few types decode themselves (times, quantities, integers or strings, schemas within schemas):
what fails in them fails at once, and no unknown field within them is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.meta.printing import json_float
from apimachinery.meta.quantity import QUANTITY, parse_quantity
from apimachinery.meta.times import FORMS, MICROS_LAYOUT, SECONDS_LAYOUT, parse_fault
from apimachinery.schema.mismatch import Mismatch
from apimachinery.schema.node import SchemaNode
from apimachinery.schema.numbers import fits_range

Fits = Callable[[Any], bool]
Names = Mapping[str, Mapping[str, str]]
"""Definition → field → the name of its Go type: ``v1.Protocol``, ``[]v1.KeyUsage``, ``map[string]v1.ExtraValue``."""

_FREE = frozenset({"RawExtension", "FieldsV1", "JSON"})
_INNER_SCHEMA = frozenset({"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"})
_TIMES = {"Time": SECONDS_LAYOUT, "MicroTime": MICROS_LAYOUT}
SELF_DECODING = _FREE | _INNER_SCHEMA | {*_TIMES, "Quantity"}
"""Types whose values are read by themselves."""
_STRUCT = re.compile(r"(Go struct field )\w+\.")
_QUANTITY = re.compile(QUANTITY)
_BASE64_LETTER = re.compile(r"[A-Za-z0-9+/]")
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Types with names of their own, by definition and field: those that every package has.
_META_NAMES: Names = {
    f"{_META}DeleteOptions": {"propagationPolicy": "v1.DeletionPropagation"},
    f"{_META}LabelSelectorRequirement": {"operator": "v1.LabelSelectorOperator"},
    f"{_META}ManagedFieldsEntry": {"operation": "v1.ManagedFieldsOperationType"},
    f"{_META}ObjectMeta": {"uid": "types.UID"},
    f"{_META}OwnerReference": {"uid": "types.UID"},
    f"{_META}Preconditions": {"uid": "types.UID"},
}
_SCALARS = {"string": "string", "boolean": "bool", "number": "float64", "integer": "int64"}


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value is: the innermost struct, the names of fields, and the name of the type if it has one."""

    struct: str
    path: tuple[str, ...]
    type_name: str

    def field(self, struct: str, name: str, fact: str) -> _Place:
        """A field; ``fact`` is the name of its type, and before it in ``<>`` the embedded struct that has it."""
        # Embedded structs are part of the path in Go's message, though not of the JSON.
        embedded, _, type_name = fact[1:].partition(">") if fact[:1] == "<" else ("", "", fact)
        path = (*self.path, embedded, name) if embedded else (*self.path, name)
        return _Place(struct or self.struct, path, type_name.lstrip())

    def within(self, opening: str) -> _Place:
        """An item of the list or an entry of the map that is here."""
        inner = self.type_name.removeprefix(opening) if self.type_name.startswith(opening) else ""
        return self if inner == self.type_name else _Place(self.struct, self.path, inner)


class DecodeError(Exception):
    """A value that ends the decoding: its text is that of the type that decodes itself."""


class Decoder:
    """The typed decoding of one definition. ``names`` are asked for with the first fault."""

    def __init__(
        self,
        node: SchemaNode,
        schema_node: SchemaNode | None = None,
        names: Callable[[], Names] = lambda: _META_NAMES,
    ):
        self._node = node
        self._names = names
        self._schema_node = schema_node
        self._fits = _Fitter(schema_node).fits(node)

    def fits(self, value: Any) -> bool:
        """The fast pass: no value of a wrong type and no unknown field. May err on the side of no."""
        return self._fits(value)

    def read(self, value: Any) -> tuple[str | None, list[str]]:
        """``fault``, and where there is none ``unknown``, dropping; in one pass for the usual value."""
        if self._fits(value):
            return None, []
        fault = self.fault(value)
        return (str(fault), []) if fault is not None else (None, self.unknown(value, drop=True))

    def fault(self, value: Any, *, first: bool = False) -> str | None:
        """Why ``value`` cannot be decoded, None where it can. ``first``: the first fault, even where a later one ends
        the decoding."""
        if self._fits(value):
            return None
        faults: list[str] = []
        try:
            self._decode(self._node, value, _Place("", (), ""), faults)
        except DecodeError as error:
            # A type that decodes itself ends the decoding at once, with its own text.
            return faults[0] if first and faults else str(error)
        return faults[0] if faults else None

    def unknown(self, value: Any, *, drop: bool, path: str = "") -> list[str]:
        """The paths of unknown fields in the order of the document; dropped too where ``drop`` says so."""
        if self._fits(value):
            return []
        paths: list[str] = []
        self._unknown(self._node, value, path, paths, drop)
        return paths

    def _unknown(self, node: SchemaNode, value: Any, path: str, paths: list[str] | None, drop: bool) -> None:
        if node.go_type in _FREE:
            return
        if node.go_type in _INNER_SCHEMA:
            # Unknown fields within a schema are dropped without a word, as its own decoder does.
            if drop and self._schema_node is not None:
                for each in value if isinstance(value, list) else [value]:
                    self._unknown(self._schema_node, each, path, None, drop)
            return
        if isinstance(value, dict):
            closed = isinstance(node.additional, SchemaNode)
            strangers = []
            for name, each in value.items():
                inner = f"{path}.{name}" if path else name
                child = (
                    node.additional if isinstance(node.additional, SchemaNode) else node.properties.get(name)
                )
                if child is not None:
                    self._unknown(child, each, inner, paths, drop)
                elif not closed:
                    strangers.append(name)
                    if paths is not None:
                        paths.append(inner)
            # Not while the members are iterated.
            if drop:
                for name in strangers:
                    del value[name]
        elif isinstance(value, list) and node.items is not None:
            for index, each in enumerate(value):
                self._unknown(node.items, each, f"{path}[{index}]", paths, drop)

    def _decode(self, node: SchemaNode, value: Any, place: _Place, faults: list[str]) -> None:
        if value is None or node.go_type in _FREE:
            return
        if node.go_type in _INNER_SCHEMA:
            self._decode_schema(node, value, place)
        elif node.go_type in _TIMES:
            _decode_time(node.go_type, value, place)
        elif node.go_type == "Quantity":
            _decode_quantity(value)
        elif node.int_or_string:
            _decode_int_or_string(value, place)
        elif isinstance(node.additional, SchemaNode):
            if not isinstance(value, dict):
                faults.append(_mismatch(value, place, place.type_name or go_type(node), form="map"))
                return
            inner = place.within("map[string]")
            for each in value.values():
                self._decode(node.additional, each, inner, faults)
        elif node.types == ("object",) or node.properties:
            if not isinstance(value, dict):
                faults.append(_mismatch(value, place, go_type(node), form="struct"))
                return
            names = self._names().get(node.definition, {})
            # In the order of the document: the first fault is the one that is answered.
            for name, each in value.items():
                child = node.properties.get(name)
                if child is not None:
                    self._decode(child, each, place.field(node.go_type, name, names.get(name, "")), faults)
        elif node.types == ("array",):
            if not isinstance(value, list):
                faults.append(_mismatch(value, place, place.type_name or go_type(node), form="slice"))
            elif node.items is not None:
                inner = place.within("[]")
                for each in value:
                    self._decode(node.items, each, inner, faults)
        elif node.types:
            _decode_scalar(node, value, place, faults)

    def _decode_schema(self, node: SchemaNode, value: Any, place: _Place) -> None:
        schema = self._schema_node
        if schema is None:
            return
        faults: list[str] = []
        if isinstance(value, dict):
            self._decode(schema, value, place, faults)
        elif isinstance(value, list) and node.go_type == "JSONSchemaPropsOrArray":
            for each in value:
                self._decode(schema, each, place, faults)
        elif isinstance(value, list) and node.go_type == "JSONSchemaPropsOrStringArray":
            faults += [_mismatch(each, place, "string") for each in value if not isinstance(each, str)]
        elif not (isinstance(value, bool) and node.go_type == "JSONSchemaPropsOrBool"):
            if node.go_type == "JSONSchemaPropsOrBool":
                # Only this one of the three types refuses other values.
                raise DecodeError("boolean or JSON schema expected")
            return
        if faults:  # the decoder around the one that failed names its own struct
            raise DecodeError(_STRUCT.sub(f"\\g<1>{place.struct}.", faults[0], count=1))


def go_type(node: SchemaNode) -> str:
    """The Go type of a node as errors name it."""
    # Every map of quantities in the API is a ResourceList.
    if isinstance(node.additional, SchemaNode):
        if node.additional.go_type == "Quantity":
            return "v1.ResourceList"
        return f"map[string]{go_type(node.additional)}"
    if node.go_type:
        return f"{node.go_package}.{node.go_type}"
    if node.types == ("array",):
        return f"[]{go_type(node.items)}" if node.items is not None else "[]interface {}"
    if node.types == ("string",):
        return "[]uint8" if node.format == "byte" else "string"
    if node.types and node.types[0] == "integer":
        return node.format if node.format in ("int32", "uint32") else "int64"
    return _SCALARS.get(node.types[0], "interface {}") if node.types else "interface {}"


def json_kind(value: Any) -> str:
    """The kind of a JSON value as Go's decoder calls it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if value is None:
        return "null"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _mismatch(value: Any, place: _Place, wanted: str, *, shown: str = "", form: str = "") -> str:
    said = f"{json_kind(value)} {shown}" if shown else json_kind(value)
    into = f"struct field {'.'.join((place.struct, *place.path))}" if place.path else "value"
    made = Mismatch(f"json: cannot unmarshal {said} into Go {into} of type {wanted}")
    made.value, made.wanted, made.form = value, wanted, form or wanted
    return made


def _decode_scalar(node: SchemaNode, value: Any, place: _Place, faults: list[str]) -> None:
    kind = node.types[0]
    if kind == "string":
        if not isinstance(value, str):
            # Go takes a list of numbers for bytes.
            if node.format == "byte" and isinstance(value, list):
                _decode_bytes(value, place, faults)
                return
            form = "slice" if node.format == "byte" else "string"
            faults.append(_mismatch(value, place, place.type_name or go_type(node), form=form))
        elif node.format == "byte" and not _is_base64(value):
            faults.append(f"illegal base64 data at input byte {_first_bad_base64(value)}")
    elif kind == "boolean":
        if not isinstance(value, bool):
            faults.append(_mismatch(value, place, "bool"))
    # A bool is an int in Python.
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        faults.append(_mismatch(value, place, go_type(node)))
    elif kind == "integer" and (isinstance(value, float) or not fits_range(value, "integer", node.format)):
        # Go shows the number as it was sent, which is most often as repr has it.
        faults.append(_mismatch(value, place, go_type(node), shown=repr(value)))


def _decode_bytes(value: list[Any], place: _Place, faults: list[str]) -> None:
    """Bytes may be a list of numbers."""
    for item in value:
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            if item is not None:
                faults.append(_mismatch(item, place, "uint8"))
        elif isinstance(item, float) or not 0 <= item < 256:
            faults.append(_mismatch(item, place, "uint8", shown=repr(item)))


def _is_base64(text: str) -> bool:
    # Go's decoder passes over line breaks (encoding/base64), and PEM habits put them there.
    if "\n" in text or "\r" in text:
        text = text.replace("\r", "").replace("\n", "")
    return _BASE64.fullmatch(text) is not None


def _first_bad_base64(text: str) -> int:
    """Where encoding/base64 stops: it reads four letters at a time, passing over the ends of lines."""
    places = [index for index, letter in enumerate(text) if letter not in "\r\n"]
    for start in range(0, len(places), 4):
        group = places[start : start + 4]
        for number, index in enumerate(group):
            letter = text[index]
            if _BASE64_LETTER.fullmatch(letter):
                continue
            if letter != "=" or number < 2:
                return index
            if number == 2 and len(group) < 4:
                return len(text)
            if number == 2 and text[group[3]] != "=":
                return group[3] - 1
            return places[start + 4] if start + 4 < len(places) else len(text)
        if len(group) < 4:
            return len(text) - len(group)
    return len(text)


def _decode_time(kind: str, value: Any, place: _Place) -> None:
    if not isinstance(value, str):
        raise DecodeError(_mismatch(value, place, "string"))
    if (fault := parse_fault(value, _TIMES[kind])) is not None:
        raise DecodeError(fault)


def _decode_quantity(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        text = str(value)
    else:
        text = str(value) if not isinstance(value, float) else json_float(value)
    try:
        # Spaces around a quantity are tolerated, as by Kubernetes' decoder.
        parse_quantity(text.strip())
    except ValueError as e:
        raise DecodeError(str(e)) from None


def _decode_int_or_string(value: Any, place: _Place) -> None:
    if isinstance(value, str):
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DecodeError(_mismatch(value, place, "int32"))
    if isinstance(value, float) or not fits_range(value, "integer", "int32"):
        shown = json_float(value) if isinstance(value, float) else str(value)
        raise DecodeError(_mismatch(value, place, "int32", shown=shown))


class _Fitter:
    """Compiles nodes to closures of the fast pass; a recursive definition refers to itself by name."""

    def __init__(self, schema_node: SchemaNode | None) -> None:
        self._schema_node = schema_node
        self._made: dict[int, Fits] = {}
        self._nodes: list[SchemaNode] = []

    def fits(self, node: SchemaNode) -> Fits:
        known = self._made.get(id(node))
        if known is not None:
            return known
        if node.go_type:
            # Registered before it is compiled, so that a recursive type refers to itself.
            cell: list[Fits] = []
            self._made[id(node)] = lambda value: cell[0](value)
            self._nodes.append(node)
            cell.append(self._compile(node))
            # Later users skip the indirection.
            self._made[id(node)] = cell[0]
            return cell[0]
        return self._compile(node)

    def _compile(self, node: SchemaNode) -> Fits:
        if node.go_type in _FREE:
            return _anything
        if node.go_type in _INNER_SCHEMA:
            return self._inner_schema()
        if node.go_type in _TIMES:
            layout = _TIMES[node.go_type]
            is_time = FORMS[layout].fullmatch
            # Days up to the 28th exist in every month; the others need the calendar.
            return lambda value: (
                value is None
                or (
                    type(value) is str
                    and is_time(value) is not None
                    and (value[8:10] <= "28" or parse_fault(value, layout) is None)
                )
            )
        if node.go_type == "Quantity":
            return lambda value: (
                type(value) is int or (type(value) is str and _QUANTITY.fullmatch(value) is not None)
            )
        if node.int_or_string:
            return lambda value: type(value) is str or (type(value) is int and -(2**31) <= value < 2**31)
        if isinstance(node.additional, SchemaNode):
            return self._map(node.additional)
        if node.types == ("object",) or node.properties:
            return self._struct(node)
        if node.types == ("array",):
            return self._list(node)
        return _scalar(node)

    def _inner_schema(self) -> Fits:
        if self._schema_node is None:
            return _anything
        inner = self.fits(self._schema_node)
        return lambda value: value is None or type(value) is bool or (type(value) is dict and inner(value))

    def _map(self, values: SchemaNode) -> Fits:
        plain, inner = _plain(values), self.fits(values)
        # One set of types for the whole map, instead of a call for each value.
        only = {plain}

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return value is None
            if plain is not None and set(map(type, value.values())) <= only:
                return True
            return all(map(inner, value.values()))

        return fits

    def _list(self, node: SchemaNode) -> Fits:
        if node.items is None:
            return lambda value: value is None or type(value) is list
        plain, inner = _plain(node.items), self.fits(node.items)
        only = {plain}

        def fits(value: Any) -> bool:
            if type(value) is not list:
                return value is None
            if plain is not None and set(map(type, value)) <= only:
                return True
            return all(map(inner, value))

        return fits

    def _struct(self, node: SchemaNode) -> Fits:
        """A struct: fields of one type and integers are looked up, all others have a closure."""
        plain: dict[str, type] = {}
        limits: dict[str, int] = {}
        inner: dict[str, Fits] = {}
        for name, child in node.properties.items():
            # Most fields are texts and flags: a look-up is enough for them.
            if (kind := _plain(child)) is not None:
                plain[name] = kind
            elif child.types == ("integer",) or child.int_or_string:
                limits[name] = 2**31 if child.int_or_string or child.format == "int32" else 2**63
            inner[name] = self.fits(child)
        get_plain, get_limit, get_inner = plain.get, limits.get, inner.get

        def fits(value: Any) -> bool:
            if type(value) is not dict:
                return value is None
            for name, each in value.items():
                kind = type(each)
                # Exact types: a bool must not pass for an integer.
                if get_plain(name) is kind:
                    continue
                if kind is int:
                    limit = get_limit(name)
                    if limit is not None and -limit <= each < limit:
                        continue
                check = get_inner(name)
                if check is None or not check(each):
                    return False
            return True

        return fits


def _plain(node: SchemaNode) -> type | None:
    if node.go_type or node.int_or_string or len(node.types) != 1:
        return None
    if node.types == ("string",):
        return None if node.format == "byte" else str
    return bool if node.types == ("boolean",) else None


def _scalar(node: SchemaNode) -> Fits:
    kind = node.types[0] if node.types else ""
    if kind == "string":
        if node.format == "byte":
            return lambda value: value is None or (type(value) is str and _is_base64(value))
        return lambda value: value is None or type(value) is str
    if kind == "boolean":
        return lambda value: value is None or type(value) is bool
    if kind == "integer":
        high = 2**31 if node.format == "int32" else 2**63
        return lambda value: value is None or (type(value) is int and -high <= value < high)
    if kind == "number":
        return lambda value: value is None or type(value) in (int, float)
    return _anything


def _anything(value: Any) -> bool:
    return True
