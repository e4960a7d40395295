"""Defaults that a server would refuse in a CustomResourceDefinition, taken out of a structural schema.

Descriptions of built-in kinds give zeros of Go types as defaults (``{}`` for an object that has required fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from apimachinery.crd.default_rules import default_faults
from kubewright.ir.types import Json

_STEP = re.compile(r"\.(items|default)|\.properties\[([^\]]*)\]")
_ROUNDS = 20


def drop_refused_defaults(schema: Json) -> Iterator[tuple[str, Json, str]]:
    """Takes the refused defaults out of ``schema``, in place: where each stood (``.spec.ports[]``), what it was, why.

    A default may be refused for one inside it: the innermost go first, and those around them are judged again.
    """
    for _ in range(_ROUNDS):
        found = {fault.field: fault for fault in default_faults(schema, "")}
        places = {}
        for path, fault in found.items():
            steps = _steps(path)
            if steps is not None:
                places[steps] = fault
        deepest = max(map(len, places), default=0)
        for steps, fault in places.items():
            if len(steps) == deepest:
                holder = _at(schema, steps)
                if holder is not None and "default" in holder:
                    yield _words(steps), holder.pop("default"), fault.body
        if not places:
            return


def _steps(path: str) -> tuple[str, ...] | None:
    """The way to the schema whose default a fault's field is in, as names and ``[]``; ``None`` for other fields."""
    steps: list[str] = []
    place = 0
    while match := _STEP.match(path, place):
        if match[1] == "default":
            return tuple(steps)
        steps.append("[]" if match[1] else match[2])
        place = match.end()
    return None


def _at(schema: Json, steps: tuple[str, ...]) -> Json | None:
    for step in steps:
        schema = schema.get("items") if step == "[]" else schema.get("properties", {}).get(step)
        if not isinstance(schema, dict):
            return None
    return schema


def _words(steps: tuple[str, ...]) -> str:
    return "".join(step if step == "[]" else f".{step}" for step in steps)
