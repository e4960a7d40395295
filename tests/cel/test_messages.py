"""Compile errors, word for word, with line and caret."""

from __future__ import annotations

import pytest

from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CompileError

ENV = Environment.kubernetes("1.36").extend(variables={"self": t.STRING, "l": t.list_of(t.INT)})
ANY = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"

# source → (line, column, message) of every issue
ISSUES: list[tuple[str, list[tuple[int, int, str]]]] = [
    ("self > ", [(1, 8, f"Syntax error: mismatched input '<EOF>' expecting {ANY}")]),
    ("(self", [(1, 6, "Syntax error: missing ')' at '<EOF>'")]),
    ("self ++ 1", [(1, 7, f"Syntax error: extraneous input '+' expecting {ANY}")]),
    (
        "self. ==",
        [
            (1, 7, "Syntax error: no viable alternative at input '. =='"),
            (1, 9, f"Syntax error: mismatched input '<EOF>' expecting {ANY}"),
        ],
    ),
    ("self self", [(1, 6, "Syntax error: extraneous input 'self' expecting <EOF>")]),
    ("size(self 2)", [(1, 11, "Syntax error: extraneous input '2' expecting ')'")]),
    ("[1 2]", [(1, 4, "Syntax error: extraneous input '2' expecting {']', ','}")]),
    (
        "*@self | l",
        [
            (1, 1, f"Syntax error: extraneous input '*' expecting {ANY}"),
            (1, 2, "Syntax error: token recognition error at: '@'"),
            (1, 8, "Syntax error: token recognition error at: '| '"),
            (1, 10, "Syntax error: extraneous input 'l' expecting <EOF>"),
        ],
    ),
    ("if", [(1, 1, "reserved identifier: if")]),
    ("has(self)", [(1, 5, "invalid argument to has() macro")]),
    ("l.all(1, true)", [(1, 7, "argument must be a simple name")]),
    ("nothing", [(1, 1, "undeclared reference to 'nothing' (in container '')")]),
    ("self.shout()", [(1, 11, "undeclared reference to 'shout' (in container '')")]),
    ("self > 1", [(1, 6, "found no matching overload for '_>_' applied to '(string, int)'")]),
    ("self.size('x')", [(1, 10, "found no matching overload for 'size' applied to 'string.(string)'")]),
    ("self.x == 1", [(1, 5, "type 'string' does not support field selection")]),
    ("self in [1, 'two']", [(1, 13, "expected type 'int' but found 'string'")]),
    (
        "self.all(x, true)",
        [
            (
                1,
                1,
                "expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        ],
    ),
    ("self.matches('[a-')", [(1, 14, "invalid matches argument")]),
    ("duration('soon') > duration('1s')", [(1, 10, "invalid duration argument")]),
    ("true &&\n  self", [(1, 6, "found no matching overload for '_&&_' applied to '(bool, string)'")]),
    ("true &&\n  nope", [(2, 3, "undeclared reference to 'nope' (in container '')")]),
    ("9223372036854775808", [(1, 1, "invalid int literal")]),
    ("(" * 300 + "1" + ")" * 300, [(-1, 0, "expression recursion limit exceeded: 250")]),
]


@pytest.mark.parametrize(("source", "issues"), ISSUES, ids=[source[:30] for source, _ in ISSUES])
def test_issues(source: str, issues: list[tuple[int, int, str]]) -> None:
    with pytest.raises(CompileError) as caught:
        ENV.compile(source)
    assert [(i.line, i.column + 1, i.message) for i in caught.value.issues] == issues


def test_the_whole_text_shows_line_and_caret() -> None:
    with pytest.raises(CompileError) as caught:
        ENV.compile("true &&\n\tnope")
    assert str(caught.value) == (
        "ERROR: <input>:2:2: undeclared reference to 'nope' (in container '')\n |  nope\n | .^"
    )


def test_the_caret_stands_below_wide_characters() -> None:
    with pytest.raises(CompileError) as caught:
        ENV.compile("'é' + 1")
    assert str(caught.value).splitlines()[1:] == [" | 'é' + 1", " | .．..^"]
