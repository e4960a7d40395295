"""Rules on objects: transitions, correlation, ratcheting, budget, paths; each case a schema, an old and a new value."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.cel.schemas.crd import ABSENT, check_schema, compile_rules

INT = {"type": "integer"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def ruled(schema: dict[str, Any], *rules: Any) -> dict[str, Any]:
    return {**schema, "x-kubernetes-validations": [r if isinstance(r, dict) else {"rule": r} for r in rules]}


PORT = ruled(obj(name={"type": "string"}, n=INT), {"rule": "self.n == oldSelf.n", "message": "n stays"})
PORTS = {
    "type": "array",
    "items": PORT,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
}

# name, schema, old, new, violations as (field, detail), warnings
CASES: list[tuple[str, dict[str, Any], Any, Any, list[tuple[str, str]], list[tuple[str, str]]]] = [
    ("holds", obj(a=ruled(INT, "self > 0")), ABSENT, {"a": 1}, [], []),
    ("broken", obj(a=ruled(INT, "self > 0")), ABSENT, {"a": 0}, [("a", "failed rule: self > 0")], []),
    ("null is not judged", obj(a=ruled({**INT, "nullable": True}, "self > 0")), ABSENT, {"a": None}, [], []),
    ("no transition on create", obj(a=ruled(INT, "self > oldSelf")), ABSENT, {"a": 1}, [], []),
    (
        "a transition",
        obj(a=ruled(INT, "self > oldSelf")),
        {"a": 2},
        {"a": 1},
        [("a", "failed rule: self > oldSelf")],
        [],
    ),
    ("a new field", obj(a=ruled(INT, "self > oldSelf")), {}, {"a": 1}, [], []),
    (
        "an optional old value",
        obj(a=ruled(INT, {"rule": "oldSelf.hasValue() || self == 1", "optionalOldSelf": True})),
        ABSENT,
        {"a": 2},
        [("a", "failed rule: oldSelf.hasValue() || self == 1")],
        [],
    ),
    (
        "list items correlate by key",
        obj(p=PORTS),
        {"p": [{"name": "a", "n": 1}, {"name": "b", "n": 2}]},
        {"p": [{"name": "b", "n": 3}, {"name": "c", "n": 9}, {"name": "a", "n": 1}]},
        [("p[0]", "n stays")],
        [],
    ),
    (
        "an unchanged value keeps its fault as a warning",
        obj(a=ruled(INT, "self > 0"), b=INT),
        {"a": 0, "b": 1},
        {"a": 0, "b": 2},
        [],
        [("a", "failed rule: self > 0")],
    ),
    (
        "a changed neighbour in a plain list does not ratchet",
        obj(l={"type": "array", "items": ruled(INT, "self > 0")}),
        {"l": [0]},
        {"l": [0, 1]},
        [("l[0]", "failed rule: self > 0")],
        [],
    ),
    (
        "fieldPath and reason",
        obj(s=ruled(obj(x=obj(y=INT)), {"rule": "self.x.y > 0", "fieldPath": ".x.y", "message": "m"})),
        ABSENT,
        {"s": {"x": {"y": 0}}},
        [("s.x.y", "m")],
        [],
    ),
    (
        "messageExpression, trimmed",
        obj(a=ruled(INT, {"rule": "self > 0", "messageExpression": "self < 0 ? '  below ' : 'null'"})),
        ABSENT,
        {"a": -1},
        [("a", "below")],
        [],
    ),
    (
        "a rule that cannot be computed",
        obj(a=ruled(obj(x=INT), {"rule": "self.x > 0", "message": "needs x"})),
        ABSENT,
        {"a": {}},
        [("a", "no such key: x evaluating rule: needs x")],
        [],
    ),
    (
        "maps and escaped names",
        obj(m={"type": "object", "additionalProperties": ruled(obj(**{"a-b": INT}), "self.a__dash__b > 0")}),
        ABSENT,
        {"m": {"k.1": {"a-b": 0}}},
        [("m[k.1]", "failed rule: self.a__dash__b > 0")],
        [],
    ),
    (
        "sets are equal in any order, doubles may be written as integers",
        ruled(
            obj(s={"type": "array", "items": INT, "x-kubernetes-list-type": "set"}, x={"type": "number"}),
            "self.s == [2, 1] && self.x / 2.0 == 0.5",
        ),
        ABSENT,
        {"s": [1, 2], "x": 1},
        [],
        [],
    ),
]


@pytest.mark.parametrize(
    ("name", "schema", "old", "new", "violations", "warnings"), CASES, ids=[c[0] for c in CASES]
)
def test_a_case(name: str, schema: Any, old: Any, new: Any, violations: Any, warnings: Any) -> None:
    assert check_schema(schema, is_root=False) == []
    outcome = compile_rules(schema, is_root=False).validate(new, old)
    assert [(v.field, v.detail) for v in outcome.violations] == violations
    assert [(v.field, v.detail) for v in outcome.warnings] == warnings


def test_a_budget_ends_the_run() -> None:
    schema = obj(
        a=ruled({"type": "array", "items": INT}, "self.all(x, x > 0)", "self.size() > 0"),
        b=ruled(INT, "self > 1"),
    )
    rules = compile_rules(schema, is_root=False)
    outcome = rules.validate({"a": [1] * 100, "b": 0}, budget=50)
    spent = "validation failed due to running out of cost budget, no further validation rules will be run"
    assert [(v.field, v.detail, v.value) for v in outcome.violations] == [("a", spent, "array")]


def test_one_evaluation_may_cost_a_million() -> None:
    schema = obj(
        a=ruled(
            {"type": "array", "items": INT}, {"rule": "self.all(x, self.all(y, x + y > 0))", "message": "m"}
        )
    )
    outcome = compile_rules(schema, is_root=False).validate({"a": list(range(1, 1000))})
    assert [v.detail for v in outcome.violations] == [
        "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost "
        "exceeds limit for rule: m"
    ]


def test_a_rule_that_does_not_compile_is_a_violation() -> None:
    outcome = compile_rules(obj(a=ruled(INT, "self > 'a'")), is_root=False).validate({"a": 1})
    assert outcome.violations[0].detail.startswith(
        "rule compile error: compilation failed: ERROR: <input>:1:6: "
    )


def test_faulty_nodes_are_not_compiled() -> None:
    schema = obj(a=ruled(INT, "self > 'a'"))
    assert len(check_schema(schema)) == 1
    assert check_schema(schema, faulty={".properties[a]"}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "p", "m", "name", "n", "l", "s"]), inner, max_size=4)
    ),
    max_leaves=12,
)
ALL = compile_rules(
    obj(
        a=ruled(INT, "self > 0 && self > oldSelf"),
        p=PORTS,
        m={
            "type": "object",
            "additionalProperties": ruled(
                {"type": "string", "format": "date-time"}, "self > timestamp('2020-01-01T00:00:00Z')"
            ),
        },
        l={"type": "array", "items": ruled({"type": "string"}, "self.matches('^a') || self.size() > 2")},
        s=ruled(obj(x={"x-kubernetes-int-or-string": True}), "self.x == 1 || self.x.startsWith('a')"),
    ),
    is_root=False,
)


@given(JSON, JSON)
def test_no_json_value_makes_a_run_raise(new: Any, old: Any) -> None:
    ALL.validate(new, old)
