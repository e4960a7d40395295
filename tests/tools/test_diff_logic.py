"""What the logical keywords of schemas mean for ``diff``: what is refused now, with an example, and in words."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.diagnostics import Diagnostics
from kubewright.ir.types import Value
from kubewright.location import Document
from kubewright.source.schema import OPENAPI_V3, SchemaReader
from kubewright.tools.diff.logic import LogicVerdict, described, judge


def value(schema: dict[str, Any], *fields: str, required: tuple[str, ...] = (), **more: Any) -> Value:
    inner = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    known = {name: inner if name == "sub" else {"type": "string"} for name in fields or "abc"}
    said = {"type": "object", "properties": known | more, "required": [*required], **schema}
    return SchemaReader(Document("spec.yaml", said), OPENAPI_V3, Diagnostics()).read(said, "")


def needs(*names: str) -> dict[str, Any]:
    return {"required": [*names]}


A, B, C = needs("a"), needs("b"), needs("c")
NONE = {"not": {"anyOf": [A, B]}}


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ({}, {"anyOf": [A, B]}, LogicVerdict(True, "without a and b")),
        ({}, {"oneOf": [A, B, NONE]}, LogicVerdict(True, "with a and b")),
        ({}, {"allOf": [A, B]}, LogicVerdict(True, "without a and b")),
        ({}, {"not": A}, LogicVerdict(True, "with a")),
        ({"oneOf": [A, B]}, {"anyOf": [A, B]}, LogicVerdict(False)),
        ({"anyOf": [A, B]}, {"oneOf": [A, B]}, LogicVerdict(True, "with a and b")),
        ({"oneOf": [A, B]}, {"oneOf": [B, A]}, LogicVerdict(False)),
        ({"oneOf": [A, B]}, {"oneOf": [A, B, NONE]}, LogicVerdict(False)),
        ({"oneOf": [A, B, NONE]}, {"oneOf": [A, B]}, LogicVerdict(True, "without a and b")),
        ({"anyOf": [A, B, C]}, {"anyOf": [A, B]}, LogicVerdict(True, "with c, without a and b")),
        ({"allOf": [A, B]}, {"allOf": [A]}, LogicVerdict(False)),
        ({"not": {"anyOf": [A, B]}}, {"not": A}, LogicVerdict(False)),
        (
            {},
            {"anyOf": [{"properties": {"a": {"minLength": 1}}}, B]},
            LogicVerdict(True, 'with a, without b, where not a is {"minLength": 1}'),
        ),
        ({"anyOf": [False, A]}, {"anyOf": [A]}, LogicVerdict(False)),
        ({"anyOf": [True, A]}, {"anyOf": [A]}, LogicVerdict(True, "without a")),
        ({}, {"anyOf": [needs("gone"), A]}, LogicVerdict(True, "without gone and a")),
    ],
)
def test_what_is_refused_now(old: dict[str, Any], new: dict[str, Any], verdict: LogicVerdict) -> None:
    assert judge(value(old), value(new), lambda each: each) == verdict


def test_what_every_object_has_is_there() -> None:
    new = value({"anyOf": [A, B]})
    assert judge(value({}, required=("a",)), new, lambda each: each) == LogicVerdict(False)
    assert judge(value({}, a={"type": "string", "default": "x"}), new, lambda each: each) == LogicVerdict(
        False
    )
    # What an optional object requires is there only with it, and then always.
    below = {"properties": {"sub": {"required": ["x"]}}}
    assert judge(
        value({}, "sub"), value({"anyOf": [below, needs("sub")]}, "sub"), lambda each: each
    ) == LogicVerdict(False)
    asked = value({"anyOf": [{"properties": {"sub": needs("x")}, "required": ["sub"]}]}, "sub")
    assert judge(value({}, "sub"), asked, lambda each: each).refuses is True


def test_too_many_facts_are_not_decided() -> None:
    names = [f"f{number}" for number in range(15)]
    old, new = value({}, *names), value({"anyOf": [needs(name) for name in names]}, *names)
    assert judge(old, new, lambda each: each) == LogicVerdict(None)
    few = value({"anyOf": [needs(name) for name in names[:7]]}, *names)
    assert judge(old, few, lambda each: each) == LogicVerdict(True, "without f0, f1, f2, f3 and 3 more")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ({}, {"oneOf": [A, B]}, "exactly one of a, b is needed now"),
        ({}, {"anyOf": [needs("a", "b"), C]}, "at least one of a+b, c is needed now"),
        ({}, {"oneOf": [A, B, NONE]}, "at most one of a, b is allowed now"),
        ({"oneOf": [A, B]}, {}, "no longer exactly one of a, b"),
        ({"oneOf": [A, B]}, {"anyOf": [A, B]}, "at least one of a, b; it was exactly one of a, b"),
        (
            {"oneOf": [A, B]},
            {"oneOf": [A, {"not": C}]},
            'oneOf changed: removed {"required": ["b"]}; added {"not": {"required": ["c"]}}',
        ),
        (
            {"anyOf": [A], "oneOf": [B]},
            {"anyOf": [B], "oneOf": [B]},
            'anyOf changed: removed {"required": ["a"]}; added {"required": ["b"]}',
        ),
        ({"allOf": [A, B]}, {"allOf": [B, A]}, "allOf changed: the order"),
        (
            {},
            {"allOf": [A, B, C, needs("d")]},
            'allOf changed: added {"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]} and 1 more',
        ),
        ({"not": A}, {}, 'not changed: removed {"required": ["a"]}'),
        ({}, {"not": needs("n" * 200)}, 'not changed: added {"required": ["' + "n" * 102 + "..."),
    ],
)
def test_changes_in_words(old: dict[str, Any], new: dict[str, Any], text: str) -> None:
    assert described(value(old).constraints, value(new).constraints) == text
