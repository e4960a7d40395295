"""Google's C++ implementation beside ours: the same expression, the same variables, value or failure compared."""

from __future__ import annotations

import math
from typing import Any

from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError, CompileError
from tests.cel.expressions import VARIABLES

TYPES = {
    "i": t.INT,
    "f": t.DOUBLE,
    "s": t.STRING,
    "b": t.BOOL,
    "l": t.list_of(t.INT),
    "m": t.map_of(t.STRING, t.INT),
}
OURS = Environment.standard().extend(variables=TYPES)
FAILED = "failed"


def theirs() -> Any:
    """An environment of cel_expr_python with the same variables."""
    from cel_expr_python import cel  # type: ignore[import-untyped]

    kinds = {
        "i": cel.Type.INT,
        "f": cel.Type.DOUBLE,
        "s": cel.Type.STRING,
        "b": cel.Type.BOOL,
        "l": cel.Type.List(cel.Type.INT),
        "m": cel.Type.Map(cel.Type.STRING, cel.Type.INT),
    }
    return cel.NewEnv(variables=kinds)


def our_answer(source: str) -> Any:
    try:
        program = OURS.compile(source)
    except CompileError:
        return "does not compile"
    try:
        return program.evaluate(VARIABLES)
    except CelError:
        return FAILED


def their_answer(env: Any, source: str) -> Any:
    try:
        expression = env.compile(source)
    except Exception:
        return "does not compile"
    try:
        result = expression.eval(data=VARIABLES)
        value = result.plain_value() if hasattr(result, "plain_value") else result.value()
    except Exception:
        return FAILED
    kind = str(result.type()).lower()
    return FAILED if "error" in kind else _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(k): _plain(item) for k, item in value.items()}
    return _plain(value.plain_value()) if hasattr(value, "plain_value") else value


def agree(a: Any, b: Any) -> bool:
    """Equal, in type too."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, list):
        return len(a) == len(b) and all(agree(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(agree(a[k], b[k]) for k in a)
    return bool(a == b)
