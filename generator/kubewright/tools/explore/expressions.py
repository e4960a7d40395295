"""CEL against an object: type, cost and the value of each part."""

from __future__ import annotations

import json
from typing import Any

from apimachinery.cel.environment import PER_CALL_LIMIT, Environment, Program
from apimachinery.cel.running.trace import TracedPart
from apimachinery.cel.schemas.schema_types import SchemaTypes
from apimachinery.cel.schemas.schema_values import converter
from apimachinery.cel.syntax.ast import ACCUMULATOR
from apimachinery.cel.syntax.written import written
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError, CompileError
from kubewright.tools.cel import plain_value

MOST_PARTS = 200
LONGEST_VALUE = 2_000
Json = dict[str, Any]


def evaluate(asked: Json) -> Json:
    """Evaluate ``expression`` with ``variables`` (name → JSON), and others that are the ``same`` (name → name).

    With ``schema`` (OpenAPI v3) ``self`` and ``oldSelf`` have its
    types, as in the rules of a CRD; else variables have any type."""
    environment = Environment.kubernetes(str(asked.get("version") or "1.36")).extend(limit=PER_CALL_LIMIT)
    variables = dict(asked.get("variables") or {})
    for name, other in (asked.get("same") or {}).items():
        variables[name] = variables.get(other)
    types: dict[str, t.Type] = dict.fromkeys(variables, t.DYN)
    provider = None
    if isinstance(asked.get("schema"), dict):
        declared = SchemaTypes(asked["schema"], is_root=bool(asked.get("root", True)))
        if declared.root is not None:
            convert = converter(asked["schema"], True)
            provider = declared
            for name in ("self", "oldSelf"):
                types[name] = declared.root.type
                if convert is not None and variables.get(name) is not None:
                    variables[name] = convert(variables[name])
    source = str(asked.get("expression") or "")
    try:
        environment = environment.extend(variables=types, provider=provider)
        program = environment.compile(source)
    except CompileError as fault:
        return {
            "fault": str(fault),
            "issues": [{"line": i.line, "column": i.column, "message": i.message} for i in fault.issues],
        }
    except CelError as fault:
        return {"fault": str(fault), "issues": []}
    outcome = program.run(variables)
    answer: Json = {"type": str(program.result_type), "cost": outcome.cost, "limit": PER_CALL_LIMIT}
    if outcome.error is not None:
        answer["error"] = str(outcome.error)
    else:
        answer["value"] = plain_value(outcome.value)
    traced, parts = environment.trace(source)
    answer["parts"] = [*_parts(traced, parts, variables)]
    return answer


def _parts(program: Program, parts: list[TracedPart], variables: Json) -> list[Json]:
    """What each part gave, outer parts first. What macros make for themselves is left out."""
    program.run(variables)
    shown: list[Json] = []
    for part in parts:
        text = written(part.node, program.source)
        if ACCUMULATOR in text or part.node is program.node or any(each["text"] == text for each in shown):
            continue
        shown.append(
            {
                "text": text,
                "type": str(part.node.type or t.DYN),
                "count": part.count,
                "values": [_value(value) for value in part.values],
            }
        )
        if len(shown) == MOST_PARTS:
            break
    return shown


def _value(value: Any) -> Json:
    if isinstance(value, CelError):
        return {"error": str(value)}
    text = json.dumps(plain_value(value), ensure_ascii=False)
    return {"value": text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"}
