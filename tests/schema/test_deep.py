"""Objects and schemas as deep as a request can bring end in an answer or an error, and never end the process."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apimachinery.schema.builtin import compile_builtin
from apimachinery.schema.custom import compile_custom

DEPTH = 10_000
ROOT = Path(__file__).parents[2]
FREE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
TEXT = {"type": "string", "default": "x"}
SPEC = {"free": FREE, "text": TEXT, "map": {"type": "object", "additionalProperties": TEXT}}
SPEC |= {"list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}}}
THINGS = compile_custom({"type": "object", "properties": {"spec": {"type": "object", "properties": SPEC}}})
KIND = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
DEFINITIONS = compile_builtin(
    KIND, json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
)


def nested(kind: str, leaf: Any = 1, step: str = "a") -> Any:
    value: Any = leaf
    for _ in range(DEPTH):
        value = [value] if kind == "list" else {step: value}
    return value


def thing(field: str, kind: str) -> dict[str, Any]:
    metadata = {"name": "t", "labels": nested(kind)} if field == "labels" else {"name": "t"}
    return {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": metadata, "spec": {field: nested(kind)}}


def definition() -> dict[str, Any]:
    """A CRD whose schema refers to itself at each level, as the kind of CRDs does."""
    schema: dict[str, Any] = {"type": "string"}
    for number in range(DEPTH):
        schema = {"items": schema} if number % 2 else {"properties": {"a": schema}}
    return {
        "kind": "CustomResourceDefinition",
        "spec": {"versions": [{"schema": {"openAPIV3Schema": schema}}]},
    }


STEPS: dict[str, Callable[[dict[str, Any]], object]] = {
    "decoding": THINGS.decode_fault,
    "pruning": lambda obj: THINGS.prune(obj) if THINGS.decode_fault(obj) is None else None,
    "defaults": THINGS.default,
    "validation": THINGS.validate,
    "validation of a change": lambda obj: THINGS.validate(obj, {**obj, "spec": {}}),
}


def ends(call: Callable[[], object]) -> None:
    """Runs it here and in a thread, whose stack may be smaller."""
    outcomes = []

    def run() -> None:
        try:
            outcomes.append(call())
        except (RecursionError, ValueError) as error:
            outcomes.append(error)

    run()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert len(outcomes) == 2


@pytest.mark.parametrize("kind", ["list", "map"])
@pytest.mark.parametrize("field", ["free", "text", "map", "list", "unknown", "labels"])
@pytest.mark.parametrize("step", STEPS)
def test_a_deep_value(step: str, field: str, kind: str) -> None:
    ends(lambda: STEPS[step](thing(field, kind)))


@pytest.mark.parametrize("step", ["read", "unknown_fields", "decode_fault", "prune"])
def test_a_value_as_deep_as_its_recursive_kind(step: str) -> None:
    ends(lambda: getattr(DEFINITIONS, step)(definition()))


def test_a_deep_schema() -> None:
    schema = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    ends(lambda: compile_custom(schema))
