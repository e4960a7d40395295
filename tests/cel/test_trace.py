"""The value of each part of an expression, and an expression written out of its tree."""

from __future__ import annotations

import pytest

from apimachinery.cel.environment import Environment
from apimachinery.cel.syntax.written import written
from apimachinery.cel.values import types as t

ENVIRONMENT = Environment.kubernetes("1.36").extend(variables={"self": t.DYN})


@pytest.mark.parametrize(
    "source",
    [
        "self.a + 1 > 2 && !self.b",
        'self.list[0] == "x" ? 1 : 2',
        "has(self.x) || 1 in [1, 2]",
        '{"a": [1]}.a.size()',
        "self.list.all(x, x > 1 && x < (3))",
        "-self.a == self.?b.orValue(1)",
    ],
)
def test_a_tree_is_written_as_it_was(source: str) -> None:
    text = written(ENVIRONMENT.check(source), source)
    assert text.replace("(3)", "3") == source.replace("(3)", "3")


def test_parts_and_what_is_not_evaluated() -> None:
    program, parts = ENVIRONMENT.trace("self.a > 1 && self.b.c == 2 || self.list.exists(x, x == 3)")
    assert program.evaluate({"self": {"a": 1, "list": [1, 2, 3, 4]}}) is True
    values = {written(part.node, program.source): (part.count, part.values) for part in parts}
    assert values["self.a > 1"] == (1, [False])
    assert values["self.b.c"][0] == 0, "the other side of && is not evaluated"
    assert values["x == 3"] == (3, [False, False, True])


@pytest.mark.parametrize(
    "source", ["self.a + 1", "self.list.map(x, x * 2).size()", "self.a in [1, 2]", "self.none"]
)
def test_a_traced_program_gives_the_same(source: str) -> None:
    values = {"self": {"a": 1, "list": [1, 2]}}
    plain, (traced, _) = ENVIRONMENT.compile(source).run(values), ENVIRONMENT.trace(source)
    again = traced.run(values)
    assert (plain.value, str(plain.error)) == (again.value, str(again.error))
