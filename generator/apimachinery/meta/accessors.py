"""Values of unstructured objects at paths, and why one cannot be read: in the words of Go's ``unstructured``."""

from __future__ import annotations

from typing import Any


def nested(obj: Any, path: str) -> Any:
    """The value at a path such as ``.spec.replicas``; None where it leads nowhere."""
    for name in path.removeprefix(".").split("."):
        if not isinstance(obj, dict) or name not in obj:
            return None
        obj = obj[name]
    return obj


def accessor_error(obj: Any, path: str, wanted: type) -> str:
    """Why a value on the way or at the end of a path cannot be read, since it is of another type; empty if it can."""
    names = path.removeprefix(".").split(".")
    for index, name in enumerate(names):
        if obj is None:
            return ""
        if not isinstance(obj, dict):
            return _accessor_error(obj, names[: index + 1], "map[string]interface{}")
        if name not in obj:
            return ""
        obj = obj[name]
    if isinstance(obj, wanted) and not isinstance(obj, bool):
        return ""
    return _accessor_error(obj, names, "int64" if wanted is int else "string")


def _accessor_error(value: Any, names: list[str], wanted: str) -> str:
    at = ".".join(names)
    return f".{at} accessor error: {_go_value(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_value(value: Any) -> str:
    """A decoded JSON value as Go's ``%v`` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_value(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_go_value, value))}]"
    return str(value)


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    names: dict[type, str] = {
        bool: "bool",
        int: "int64",
        float: "float64",
        str: "string",
        list: "[]interface {}",
    }
    return names.get(type(value), "map[string]interface {}")
