"""Costs: what evaluations are charged, and what they are estimated at."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.cel.cost.estimate import estimate_cost
from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.crd import check_schema
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CostLimitError
from apimachinery.cel.values.ranges import MAX

ENV = Environment.kubernetes("1.36").extend(
    variables={
        "n": t.INT,
        "s": t.STRING,
        "l": t.list_of(t.INT),
        "m": t.map_of(t.STRING, t.STRING),
        "d": t.DYN,
    }
)
VARIABLES: dict[str, Any] = {"n": 1, "s": "a" * 25, "l": [1, 2, 3], "m": {"k": "v"}, "d": {"x": {"y": 1}}}

# expression, run-time cost, highest estimate
COSTS = [
    ("5 < int(10.0)", 1, 2),
    ("n == 1", 2, 2),
    ("n + 1 > 1 && n < 5", 5, 5),
    ("n + 1 > 9 && n < 5", 3, 5),
    ("d.x.y == 1", 4, 2),
    ("n in [1, 2, 3]", 1, 14),
    ("[1, 2, 3] == l", 2, 12),
    ("[n, 2]", 11, 11),
    ("{'a': n}", 31, 31),
    ("l.all(x, x > 0)", 17, MAX),
    ("l.all(x, x > 1)", 9, MAX),
    ("l.exists(x, x > 2)", 20, MAX),
    ("l.exists_one(x, x == 1)", 11, MAX),
    ("l.map(x, x + 1)", 44, MAX),
    ("l.filter(x, x > 2)", 21, MAX),
    ("s.contains('abc')", 4, MAX),
    ("s.startsWith('abc')", 4, 2),
    ("s.matches('^a+$')", 4, MAX),
    ("s + s == s", 11, MAX),
    ("has(d.x.y)", 2, 1),
    ("n > 0 ? s : 'b'", 2, 3),
    ("quantity('100') == quantity('1')", 3, 3),
    ("sets.contains(l, [1])", 5, MAX),
    ("lists.range(5)", 16, 16),
    ("s.lowerAscii().size()", 5, MAX),
]


@pytest.mark.parametrize(("source", "spent", "estimated"), COSTS, ids=[c[0] for c in COSTS])
def test_costs(source: str, spent: int, estimated: int) -> None:
    program = ENV.compile(source)
    outcome = program.run(VARIABLES)
    assert outcome.error is None
    high = estimate_cost(program.node, lambda path, of: None).high
    assert (outcome.cost, min(high, MAX) if high < 2**60 else MAX) == (spent, estimated)


def test_an_evaluation_stops_at_its_limit() -> None:
    program = ENV.extend(limit=100).compile("l.all(x, l.all(y, l.all(z, x + y + z > 0)))")
    with pytest.raises(CostLimitError, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"l": list(range(1, 1000))})


def schema(rule: str, **bounds: Any) -> dict[str, Any]:
    """An object with a list of strings and a rule on it; maxItems and maxLength where given."""
    text: dict[str, Any] = {"type": "string"}
    if "maxLength" in bounds:
        text["maxLength"] = bounds.pop("maxLength")
    listed = {"type": "array", "items": text, "x-kubernetes-validations": [{"rule": rule}], **bounds}
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": listed}}}}


FACTORS = [
    ("self.all(x, self.exists_one(y, x == y))", {"maxItems": 10}, "3.1x"),
    ("self.all(x, self.exists_one(y, x == y))", {}, "more than 100x"),
    ("self.all(x, self.exists_one(y, x == y))", {"maxItems": 10, "maxLength": 10}, ""),
]


@pytest.mark.parametrize(("rule", "bounds", "factor"), FACTORS)
def test_a_rule_too_dear_is_told_by_how_much(rule: str, bounds: dict[str, int], factor: str) -> None:
    faults = check_schema(schema(rule, **bounds))
    if not factor:
        assert faults == []
        return
    assert faults[0].message == (
        f"Forbidden: estimated rule cost exceeds budget by factor of {factor} (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
    assert faults[0].path == ".properties[spec].properties[a].x-kubernetes-validations[0].rule"
