"""Patterns get the verdicts of Go's regexp, whatever RE2 would need for them: recorded from kube-apiserver 1.36."""

from __future__ import annotations

import pytest

from apimachinery.cel.libraries.regex import regex
from apimachinery.cel.libraries.standard import compile_search
from apimachinery.cel.patterns import LargePattern, PatternError, compile_pattern, match_test
from apimachinery.cel.values.errors import EvalError
from apimachinery.schema.custom import compile_custom

LARGE = r"^\p{L}{0,62}$"
IN_NO_SET = r"^(([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})?)$"  # noqa: E501
"""Of openshift's Ingress and HostedCluster: RE2 compiles it, and a set of it alone has too little memory."""
BEYOND = "^" + r"\p{L}{1000}" * 6 + "$"
"""Too large for RE2 in UTF-8 within what a pattern may take, small in Latin-1."""

TAKEN = [
    LARGE,
    r"^\p{L}{0,512}$",
    r"^\p{L}{0,1000}$",
    IN_NO_SET,
    BEYOND,
    "(?P<n>a)(?P<n>b)",
    r"\p{Letter}[\p{ASCII}]\p{^letter}\p{old-italic}\p{latin}\pl",
    r"\p{Cn}\P{Assigned}\p{LC}\p{Any}",
    "(" * 999 + "a" + ")" * 999,
    "(a" * 498 + ")" * 498,
    r"\Q[(*",
]
REFUSED = [
    ("a{1001}", "invalid repeat count: `{1001}`"),
    ("(a{30}){40}", "invalid repeat count: `{40}`"),
    ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
    ("a{1,99999999999}", "invalid repeat count: `{1,99999999999}`"),
    ("(" * 1000 + "a" + ")" * 1000, "expression nests too deeply: `((((("),
    ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
    (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
    (r"[a\p{Any}", r"missing closing ]: `[a\p{Any}`"),
    (r"\C", r"invalid escape sequence: `\C`"),
]


@pytest.mark.parametrize("pattern", TAKEN, ids=range(len(TAKEN)))
def test_what_go_takes_compiles_everywhere(pattern):
    schema = compile_custom({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})
    for text in ("abc", "é", "日本語", "", "a" * 70):
        holds = match_test(pattern)(text) if "{1000}\\p" not in pattern or text.isascii() else False
        assert bool(schema.validate({"a": text})) != holds


@pytest.mark.parametrize(("pattern", "why"), REFUSED, ids=range(len(REFUSED)))
def test_what_go_refuses_is_refused_in_its_words(pattern, why):
    with pytest.raises(PatternError) as refused:
        compile_pattern(pattern)
    assert str(refused.value).startswith(f"error parsing regexp: {why}")


def test_a_large_program_answers_for_every_text():
    assert isinstance(compile_pattern(LARGE), LargePattern)
    test = match_test(LARGE)
    assert [test(text) for text in ("", "é" * 62, "é" * 63, "日本", "1", "日" * 63)] == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]
    assert compile_search(LARGE)("日")
    find = regex().functions["find"].overloads[0].impl
    assert find("日本", LARGE) == "日本"


def test_a_text_that_needs_more_than_a_pattern_may_take_is_no_match_and_no_crash():
    with pytest.raises(PatternError, match="expression too large"):
        match_test(BEYOND)("日")
    with pytest.raises(EvalError, match="expression too large"):
        compile_search(BEYOND)("日")
    assert match_test(BEYOND)("a" * 6000)
    schema = compile_custom({"type": "object", "properties": {"a": {"type": "string", "pattern": BEYOND}}})
    (fault,) = schema.validate({"a": "日"})
    assert "pattern is invalid: error parsing regexp: expression too large" in fault.detail
