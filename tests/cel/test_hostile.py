"""Hostile expressions and inputs end in a declared error, in bounded time and memory."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apimachinery.cel.cost.estimate import estimate_cost
from apimachinery.cel.environment import Environment, Program
from apimachinery.cel.libraries import string_format
from apimachinery.cel.values import types as t
from apimachinery.cel.values import values
from apimachinery.cel.values.errors import CelError, CompileError

ENV = Environment.everything().extend(variables={"self": t.DYN}, limit=1_000_000)
KUBERNETES = Environment.kubernetes("1.36").extend(variables={"self": t.DYN})


def nested(opening: str, closing: str, depth: int, core: str = "1") -> str:
    return opening * depth + core + closing * depth


DEEP = {
    "parentheses": nested("(", ")", 249),
    "lists": nested("[", "]", 249),
    "maps": nested("{1:", "}", 249),
    "sums": "+".join(["1"] * 249),
    "selects": "self" + ".a" * 249,
    "indices": "self" + "[0]" * 249,
    "calls": nested("size([", "])", 120),
    "conditionals": "true?1:" * 249 + "1",
    "negations": "!" * 5000 + "true",
    "conjunctions": "&&".join(["true"] * 10_000),
    "macros": nested("[1].map(x,", ")", 110),
    "quantifiers": nested("[1].all(x,", ")", 110, "true"),
    "sums in parentheses": "(" * 120 + "1" + ")" * 120 + "+1" * 120,
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("env", [ENV, KUBERNETES], ids=["everything", "kubernetes"])
def test_all_that_the_grammar_allows_runs_however_deep_the_caller(name: str, env: Environment) -> None:
    def below(frames: int) -> None:
        if frames:
            below(frames - 1)
            return
        program = env.compile(DEEP[name])
        estimate_cost(program.node, lambda path, of: None)
        program.run({"self": {}})

    below(500 if sys.getrecursionlimit() > 1500 else 300)


TOO_DEEP = [
    nested("(", ")", 250),
    nested("[", "]", 5000),
    "+".join(["1"] * 20_000),
    "self" + ".a" * 251,
    "[" * 5000,
]


@pytest.mark.parametrize("source", TOO_DEEP, ids=[s[:10] for s in TOO_DEEP])
def test_deeper_is_refused(source: str) -> None:
    with pytest.raises(
        CompileError, match=r"(expression|max) recursion (limit exceeded: 250|depth exceeded)"
    ):
        ENV.compile(source)


STOPPED = {
    "a product of loops": "[1,2,3,4,5,6,7,8,9,10].all(a," * 12 + "true" + ")" * 12,
    "a doubled list": "optional.of([0])" + "".join(f".optMap(a{i}, a{i}+a{i})" for i in range(80)),
    "a doubled text": "optional.of('aaaaaaaaaa')" + "".join(f".optMap(a{i}, a{i}+a{i})" for i in range(80)),
    "lists doubled by map": "[[0]]" + ".map(a, a + a)" * 60,
    "dynamic texts doubled by map": "[dyn('ab')]" + ".map(a, a + a)" * 60,
    "shared parts compared": f"[0]{'.map(a, [a, a])' * 60} == [0]{'.map(b, [b, b])' * 60}",
    "shared parts printed": f"'%s'.format([[0]{'.map(a, [a, a])' * 60}])",
    "a long range": "lists.range(1000000000).size()",
    "a repeated replacement": "'" + "a" * 5000 + "'" + (".replace('', '" + "b" * 5000 + "')") * 4,
    "a deep flatten": "[[1]].flatten(1000000000)",
    "a doubled bound name": "cel.bind(b0, [1], "
    + "".join(f"cel.bind(b{i + 1}, b{i}.map(x, x) + b{i}, " for i in range(40))
    + "b40.size()"
    + ")" * 41,
}


@pytest.mark.parametrize("name", STOPPED)
def test_dear_expressions_are_stopped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Walks over values that share parts end at bounds of their own; how far these are is seconds of walking, no more.
    monkeypatch.setattr(values, "MAX_STEPS", 40_000)
    monkeypatch.setattr(string_format, "MAX_SHOWN", 40_000)
    outcome = ENV.compile(STOPPED[name]).run({})
    assert str(outcome.error) == "operation cancelled: actual cost limit exceeded"


def test_long_sources_are_refused() -> None:
    with pytest.raises(
        CompileError, match="expression code point size exceeds limit: size: 100002, limit 100000"
    ):
        ENV.compile('"' + "a" * 100_000 + '"')


def run(program: Program) -> None:
    program.run({"self": {"a": [1, "x", None, 2.5, {"b": True}], "s": "text", "n": 3}})


PIECES = [
    "self", ".a", ".s", "[0]", "(", ")", "[", "]", "{", "}", ",", ":", "?", "+", "-", "*", "/", "%", "==", "<", "in",
    "&&", "||", "!", " ", "1", "2u", "3.5", "'x'", "b'y'", "null", "true", ".all(x,", ".map(x,", "x", "has(", "size(",
    ".?b", "[?1]", "duration('1s')", "timestamp(", "'2020-01-01T00:00:00Z'", ".format(", "'%d %s'", "type(", "dyn(",
    "quantity('1')", ".optMap(v,", "optional.of(", "\\", "\n", "é", "😀", "\ud800", "`a`", "//", "0x", "r'", "'''",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_source_raises_what_is_not_declared(source: str) -> None:
    for env in (ENV, KUBERNETES):
        try:
            program = env.compile(source)
        except CompileError as error:
            assert error.issues and str(error).startswith("ERROR: <input>:")
            continue
        estimate_cost(program.node, lambda path, of: None)
        run(program)


@given(st.text(max_size=40))
def test_no_text_raises_what_is_not_declared(source: str) -> None:
    with suppress(CompileError):
        run(ENV.compile(source))


ODD = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.integers(), max_size=3)
)
EXPRESSIONS = [
    "self + 1",
    "self < 2",
    "self.size() > 1",
    "self[0]",
    "self.a",
    "self.matches('a')",
    "self in [1]",
    "'%d'.format([self])",
    "int(self) + 1",
    "double(self)",
    "string(self)",
    "timestamp(self)",
    "duration(self)",
    "url(self)",
    "ip(self)",
    "cidr(self)",
    "quantity(self)",
    "semver(self, true)",
    "self.split(',')",
    "self.all(x, x > 0)",
    "bytes(self)",
    "self.sum()",
    "self.min()",
    "self.find('a*')",
    "format.dns1123Label().validate(self)",
    "format.uri().validate(self)",
    "-self",
    "!self",
    "self ? 1 : 2",
    "timestamp('2020-01-01T00:00:00Z').getHours(self)",
    "lists.range(self)",
    "self.sort()",
    "self.replace('a', 'b', 3)",
]


@pytest.mark.parametrize("source", EXPRESSIONS)
@given(ODD)
@settings(max_examples=30)
def test_no_value_raises_what_is_not_declared(source: str, value: object) -> None:
    with suppress(CelError):
        KUBERNETES.compile(source).evaluate({"self": value})
