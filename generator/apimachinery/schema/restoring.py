"""Faults of decoding as the converter from untyped values says them, which reads strategic patches.

Source: the converter of unstructured content in k8s.io/apimachinery. It names what it was given by the kind
of its Go value and says neither where that is nor, mostly, which type it was for.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from apimachinery.meta.printing import INT64_MIN, as_go
from apimachinery.schema.decoding import SELF_DECODING
from apimachinery.schema.mismatch import Mismatch
from apimachinery.schema.node import SchemaNode

_BITS = {"int32": 32, "uint32": 32}
_ALONE = re.compile(r"Go struct field \S+ of type (int32|string)$")
_RESTORED = {"struct": "struct from:", "map": "map from", "slice": "slice from"}


def restored(fault: str) -> str:
    """A decoder's fault as the converter from untyped values says it, which reads strategic patches."""
    if fault.startswith("illegal base64"):
        return f"error decoding from json: {fault}"
    if not isinstance(fault, Mismatch):
        return _ALONE.sub(r"Go value of type \1", fault)  # a type that decodes itself is read by itself
    given = _go_kind(fault.value)
    if fault.form in _RESTORED:
        return f"cannot restore {_RESTORED[fault.form]} {given}"
    # Go can make a text of an integer and an integer of a fraction, which JSON then may not.
    if (given == "int64" and fault.form == "string") or (given == "float64" and "int" in fault.form):
        return f"cannot convert {given} to {fault.wanted}"
    return f"unrecognized type: {fault.form}"


def restore(node: SchemaNode, value: Any) -> Any:
    """The value as the converter leaves it, changed in place where it can be: an integer too large for its type keeps
    its low bits, a whole number is one however it is written, and bytes may be a list of numbers."""
    if value is None or node.go_type in SELF_DECODING or node.int_or_string:
        return value
    if isinstance(value, dict):
        for name, each in value.items():
            child = node.additional if isinstance(node.additional, SchemaNode) else node.properties.get(name)
            if child is not None:
                value[name] = restore(child, each)
    elif node.types == ("string",) and node.format == "byte":
        return _bytes(value)
    elif isinstance(value, list):
        if node.items is not None:
            items = node.items
            value[:] = [restore(items, each) for each in value]
    elif node.types == ("integer",) and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _cut(value, _BITS.get(node.format, 64), signed=node.format != "uint32")
    return value


def _cut(value: int | float, bits: int, *, signed: bool = True) -> int | float:
    number: int | float = as_go(value)
    if isinstance(number, float):
        if not number.is_integer():
            return value
        # What no int64 holds becomes its least, as the processor has it.
        number = int(number) if -(2.0**63) <= number < 2.0**63 else INT64_MIN
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


def _bytes(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    cut = [0 if each is None else _number(each) for each in value]
    if not all(type(each) is int for each in cut):
        return value
    return base64.b64encode(bytes(cut)).decode()


def _number(value: Any) -> Any:
    return value if isinstance(value, (bool, str, list, dict)) else _cut(value, 8, signed=False)


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64" if -(2**63) <= value < 2**63 else "float64"
    if isinstance(value, float):
        return "float64"
    return "map" if isinstance(value, dict) else "slice" if isinstance(value, list) else "string"
