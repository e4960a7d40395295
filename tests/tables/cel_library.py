"""Expressions of Kubernetes' CEL libraries: values or errors, and costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from apimachinery.cel.cost.estimate import estimate_cost
from apimachinery.cel.environment import Environment
from apimachinery.cel.libraries.authorizer import AUTHORIZER, Authorizer, Decision
from apimachinery.cel.libraries.quantity import CelQuantity, parse_quantity
from apimachinery.cel.libraries.semver import Semver, parse_semver
from apimachinery.cel.values.errors import CompileError
from apimachinery.cel.values.ranges import Range
from apimachinery.cel.values.types import BYTES, STRING, Type
from apimachinery.cel.values.values import ABSENT, Optional, go_double, type_name

from .agreement import COST, TEXT, VALUE, VERDICT, Answer, Line, Suite

_VARIABLES = {"authorizer": Authorizer(lambda question: Decision(True, "", None))}


@cache
def _environment() -> Environment:
    return Environment.kubernetes("1.36").extend(variables={"authorizer": AUTHORIZER})


def expression(line: Line) -> Iterator[Answer]:
    """``issues``: what the checker says; ``err``: what running says; else a value and its type."""
    wanted = line.get("issues") or line.get("err")
    error, value = None, None
    try:
        outcome = _environment().compile(line["expr"]).run(_VARIABLES)
        error, value = (str(outcome.error) if outcome.error else None), outcome.value
    except CompileError as refused:
        error = str(refused)
    yield Answer(VERDICT, wanted is not None, error is not None)
    yield Answer(TEXT, wanted, error)
    if wanted is None and error is None:
        yield Answer(VALUE, [line["type"], line["val"]], [type_name(value), _shown(value, line["val"])])


def _shown(value: Any, wanted: str) -> str:
    """A value in Go's words. Quantities and versions have several; the wanted one will do where it is equal."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return go_double(value)
    if isinstance(value, Optional):
        return "<nil>" if value is ABSENT else f"[{' '.join(map(str, value.value))}]"
    if isinstance(value, CelQuantity):
        return wanted if parse_quantity(wanted).equals(value) else repr(value.amount)
    if isinstance(value, Semver):
        return wanted if parse_semver(wanted).equals(value) else repr(value)
    return str(value)


def _size(path: tuple[str, ...], of: Type) -> Range | None:
    """What the recorded tests take for texts whose size nothing tells."""
    return Range(0, 12) if of in (STRING, BYTES) else None


def cost(line: Line) -> Iterator[Answer]:
    """Lowest, highest and real cost. The tests' environment takes lists of several types."""
    program = replace(_environment(), check_literals=False, folds=False).compile(line["expr"])
    estimate = estimate_cost(program.node, _size)
    yield Answer(COST, [line["min"], line["max"]], [str(estimate.low), str(estimate.high)])
    yield Answer("run cost", line["run"], str(program.run(_VARIABLES).cost))


SUITE = Suite("cel-library", ("cel-library.jsonl",), {"celexpr": expression, "celcost": cost})
