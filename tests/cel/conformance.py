"""Runs one vector of the CEL specification: its bindings and types in text form to ours, and the comparison."""

from __future__ import annotations

import math
import re
from typing import Any

from apimachinery.cel.environment import Environment
from apimachinery.cel.libraries.declarations import Library
from apimachinery.cel.values import types as t
from apimachinery.cel.values import values as v
from apimachinery.cel.values.errors import CelError, CompileError

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([A-Za-z_][\w.]*|-?\d+)|([{}:]))')
_PRIMITIVES = {
    "BOOL": t.BOOL,
    "INT64": t.INT,
    "UINT64": t.UINT,
    "DOUBLE": t.DOUBLE,
    "STRING": t.STRING,
    "BYTES": t.BYTES,
}
_MESSAGES = {"google.protobuf.Timestamp": t.TIMESTAMP, "google.protobuf.Duration": t.DURATION}
_WRAPPED = {
    "BoolValue": t.BOOL,
    "Int32Value": t.INT,
    "Int64Value": t.INT,
    "UInt32Value": t.UINT,
    "UInt64Value": t.UINT,
    "FloatValue": t.DOUBLE,
    "DoubleValue": t.DOUBLE,
    "StringValue": t.STRING,
    "BytesValue": t.BYTES,
}


def read_text(text: str) -> list[tuple[str, Any]]:
    """A protobuf text message as a list of (field, scalar or message)."""
    tokens = [(m[1] if m[1] is not None else m[2] or m[3], m[1] is not None) for m in _TOKEN.finditer(text)]
    at = 0

    def fields() -> list[tuple[str, Any]]:
        nonlocal at
        found: list[tuple[str, Any]] = []
        while at < len(tokens) and tokens[at][0] != "}":
            name = tokens[at][0]
            at += 1
            if tokens[at] == (":", False):
                at += 1
            if tokens[at] == ("{", False):
                at += 1
                found.append((name, fields()))
                at += 1
            else:
                found.append((name, tokens[at][0]))
                at += 1
        return found

    return fields()


def read_type(fields: list[tuple[str, Any]]) -> t.Type:
    (name, value), *_ = fields or [("dyn", [])]
    inner = dict(value) if isinstance(value, list) else {}
    if name == "primitive":
        return _PRIMITIVES[value]
    if name == "list_type":
        return t.list_of(read_type(inner.get("elem_type", [])))
    if name == "map_type":
        return t.map_of(read_type(inner.get("key_type", [])), read_type(inner.get("value_type", [])))
    if name == "message_type":
        wrapped = _WRAPPED.get(value.removeprefix("google.protobuf."))
        if wrapped is not None:
            return t.wrapper_of(wrapped)
        return _MESSAGES.get(value) or t.object_type(value)
    if name == "wrapper":
        return t.wrapper_of(_PRIMITIVES[value])
    if name == "well_known":
        return {"TIMESTAMP": t.TIMESTAMP, "DURATION": t.DURATION}.get(value, t.DYN)
    if name == "null":
        return t.NULL
    if name == "type_param":
        return t.param(value)
    if name == "type":
        return t.type_of(read_type(value if isinstance(value, list) else []))
    if name == "abstract_type":
        params = tuple(read_type(f) for n, f in value if n == "parameter_types")
        return t.opaque(inner["name"], *params)
    return t.DYN


def environment(vector: dict[str, Any]) -> Environment:
    variables: dict[str, t.Type] = {}
    library = Library("declared")
    for text in vector["type_env"]:
        fields = read_text(text)
        name = dict(fields)["name"]
        for kind, value in fields:
            if kind == "ident":
                variables[name] = read_type(dict(value).get("type", []))
            elif kind == "function":
                _declare(library, name, value)
    for name in vector["bind"]:
        variables.setdefault(name, t.DYN)
    return Environment.everything().extend(
        variables=variables, functions=[library] if library.functions else (), container=vector["container"]
    )


def _declare(library: Library, name: str, value: list[tuple[str, Any]]) -> None:
    from apimachinery.cel.libraries.declarations import Function, Overload

    for kind, overload in value:
        assert kind == "overloads"
        params = tuple(read_type(f) for n, f in overload if n == "params")
        facts = dict(overload)
        member = facts.get("is_instance_function") == "true"
        result = read_type(facts.get("result_type", []))
        library.functions.setdefault(name, Function(name)).overloads.append(
            Overload(facts["overload_id"], params, result, member, lambda *args: None, (None,) * len(params))
        )


def read_value(data: list[Any]) -> Any:
    kind, *rest = data
    if kind == "null":
        return None
    if kind == "uint":
        return v.Uint(rest[0])
    if kind == "double":
        return float(rest[0])
    if kind == "bytes":
        return bytes.fromhex(rest[0]) if re.fullmatch("(?:[0-9a-f]{2})*", rest[0]) else rest[0].encode()
    if kind == "list":
        return [read_value(item) for item in rest[0]]
    if kind == "map":
        return {read_value(key): read_value(value) for key, value in rest[0]}
    if kind == "type":
        return v.TypeValue(rest[0])
    if kind == "duration":
        return v.Duration(rest[0] * 10**9 + rest[1])
    if kind == "timestamp":
        return v.Timestamp(rest[0], rest[1])
    return rest[0]


def same(got: Any, wanted: Any) -> bool:
    """Equal in value and in type, deep."""
    if v.type_name(got) != v.type_name(wanted):
        return False
    if isinstance(wanted, list):
        return len(got) == len(wanted) and all(same(a, b) for a, b in zip(got, wanted, strict=True))
    if isinstance(wanted, dict):
        return len(got) == len(wanted) and all(
            v.lookup(got, k, v.MISSING) is not v.MISSING and same(v.lookup(got, k, None), item)
            for k, item in wanted.items()
        )
    if isinstance(wanted, float) and math.isnan(wanted):
        return math.isnan(got)
    return bool(v.equal(got, wanted))


def run(vector: dict[str, Any]) -> str:
    """Nothing if the vector holds, else what was got."""
    env = environment(vector)
    wanted = vector["expect"]
    try:
        if vector["check_only"]:
            got_type = env.check(vector["expr"]).type
            return "" if got_type == read_type(read_text(wanted[1])) else f"type {got_type}"
        program = (
            env.compile_unchecked(vector["expr"]) if vector["disable_check"] else env.compile(vector["expr"])
        )
        bindings = {name: read_value(value) for name, value in vector["bind"].items()}
        got = program.evaluate(bindings)
    except CelError as error:
        if wanted[0] == "error":
            return ""
        kind = "compile" if isinstance(error, CompileError) else "run"
        return f"{kind} error: {error}"
    if wanted[0] == "error":
        return f"no error but {got!r}"
    return "" if same(got, read_value(wanted[1])) else f"value {got!r}"
