"""Values as deep as a request can bring end in an answer or an error, compiled or not, and never end the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.crd import compile_rules
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError

DEPTH = 10_000
ENV = Environment.everything().extend(variables={"a": t.DYN, "b": t.DYN})


def nested(kind: str, depth: int = DEPTH) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except (RecursionError, CelError) as error:
        return type(error).__name__
    return "answered"


def ends(call: Callable[[], object]) -> None:
    """Runs it here and in a thread, whose stack may be smaller."""
    outcomes = [outcome(call)]
    thread = threading.Thread(target=lambda: outcomes.append(outcome(call)), daemon=True)
    thread.start()
    thread.join(60)
    assert len(outcomes) == 2


SOURCES = [
    "a == b",
    "a in [b]",
    "string(a)",
    "'%s'.format([a])",
    "[a, b].distinct()",
    "a.size() == 1",
    "{'x': a} == {'x': b}",
]


@pytest.mark.parametrize("kind", ["list", "map"])
@pytest.mark.parametrize("source", SOURCES)
def test_expressions_over_deep_values(source: str, kind: str) -> None:
    program = ENV.compile_unchecked(source)
    ends(lambda: program.evaluate({"a": nested(kind), "b": nested(kind)}))


@pytest.mark.parametrize("kind", ["list", "map"])
def test_rules_over_deep_values(kind: str) -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    rules = compile_rules(
        {**free, "properties": {"spec": free}, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    )
    value = {"spec": {"x": nested(kind)}}
    ends(lambda: rules.validate(value, {"spec": {"x": nested(kind)}}))


def test_schemas_that_are_deep() -> None:
    schema: dict[str, Any] = {"type": "string", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}
    for _ in range(DEPTH):
        schema = {"type": "object", "properties": {"a": schema}}
    assert outcome(lambda: compile_rules(schema)) == "RecursionError"
    ends(lambda: compile_rules(schema))
