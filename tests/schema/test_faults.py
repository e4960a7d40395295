"""The wording of faults: values as Go prints them, one fault and several, faults that stand twice."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from tests.crd.recorded import SCENARIOS, SUFFIX

from apimachinery.cel.patterns import PatternError, compile_pattern, match_test
from apimachinery.meta.field_errors import (
    FieldError,
    Reason,
    duplicate,
    forbidden,
    invalid,
    invalid_value,
    not_supported,
    required,
    too_long,
    too_many,
)
from apimachinery.meta.names import (
    dns1035_label_faults,
    dns1123_label_faults,
    dns1123_subdomain_faults,
    dns_label_name,
    label_value_faults,
    qualified_name_faults,
)
from apimachinery.meta.object_meta import validate_object_meta, validate_object_meta_update
from apimachinery.meta.printing import go_float, go_json, go_quote
from apimachinery.schema.custom import compile_custom


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (required("spec.x"), "spec.x: Required value"),
        (required("spec.x", "give one"), "spec.x: Required value: give one"),
        (invalid_value("a", "x\ny", "no"), 'a: Invalid value: "x\\ny": no'),
        (invalid_value("a", None, "no"), "a: Invalid value: null: no"),
        (invalid_value("a", True, "no"), "a: Invalid value: true: no"),
        (invalid_value("a", 2.5, "no"), "a: Invalid value: 2.5: no"),
        (
            invalid_value("a", {"b": "<", "a": [1, 2.0]}, "no"),
            'a: Invalid value: {"a":[1,2],"b":"\\u003c"}: no',
        ),
        (forbidden("a", "not here"), "a: Forbidden: not here"),
        (duplicate("a[1]", "x"), 'a[1]: Duplicate value: "x"'),
        (not_supported("a", 4, ["1", "2"]), 'a: Unsupported value: 4: supported values: "1", "2"'),
        (too_long("a", 4), "a: Too long: may not be more than 4 bytes"),
        (too_many("a", 3, 1), "a: Too many: 3: must have at most 1 item"),
        (too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
        (FieldError(Reason.INTERNAL, "a", "oops"), "a: Internal error: oops"),
    ],
)
def test_a_fault_in_words(fault: FieldError, text: str) -> None:
    assert str(fault) == text


def test_one_fault_stands_alone_and_several_in_brackets() -> None:
    one, other = required("a"), forbidden("b", "no")
    assert invalid("Box", "x.io", "n", [one]).message == 'Box.x.io "n" is invalid: a: Required value'
    assert (
        invalid("Pod", "", "n", [one, other]).message
        == 'Pod "n" is invalid: [a: Required value, b: Forbidden: no]'
    )
    assert invalid("Pod", "", "n", []).message == 'Pod "n" is invalid'


def test_a_fault_that_stands_twice_is_said_once_and_causes_twice() -> None:
    error = invalid("Pod", "", "n", [required("a"), required("a")])
    assert error.message == 'Pod "n" is invalid: a: Required value'
    assert [cause.field for cause in error.causes] == ["a", "a"]
    assert (error.code, error.reason, error.kind, error.name) == (422, "Invalid", "Pod", "n")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (999999.5, "999999.5"),
        (1e6, "1e+06"),
        (123456789.5, "1.234567895e+08"),
        (1e21, "1e+21"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (123456.789, "123456.789"),
        (-2.5, "-2.5"),
        (math.inf, "+Inf"),
        (5e-324, "5e-324"),
    ],
)
def test_floats_as_go_prints_them(number: float, text: str) -> None:
    assert go_float(number) == text


def test_json_floats_and_quotes() -> None:
    assert go_json([1e21, 1e-7, 1e-6, 2.0]) == "[1e+21,1e-7,0.000001,2]"
    assert go_quote("Über \x07\x00\u200b\U0001f600") == '"Über \\a\\x00\\u200b\U0001f600"'


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (
            dns1123_subdomain_faults,
            ["a", "a.b-c", "1.2", "x" * 253],
            ["", "A", "a_b", "-a", "a-", "a..b", "x" * 254, "a\n"],
        ),
        (dns1123_label_faults, ["a", "1-b"], ["a.b", "", "x" * 64, "ä"]),
        (dns1035_label_faults, ["a", "a-1"], ["1a", "a.b", "A"]),
        (
            qualified_name_faults,
            ["a", "A_b.c", "x.io/N"],
            ["", "/a", "a/", "a/b/c", "X.io/n", "a b", "x" * 64],
        ),
        (label_value_faults, ["", "a", "A.b_c"], ["-a", "a b", "x" * 64, "a\n"]),
    ],
)
def test_names(check: Any, good: list[str], bad: list[str]) -> None:
    assert {each: check(each) for each in good if check(each)} == {}
    assert [each for each in bad if not check(each)] == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("([a-z", "missing closing ]: `[a-z`"),
        ("^(?!x)$", "invalid or unsupported Perl syntax: `(?!`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\", "trailing backslash at end of expression: ``"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\C", r"invalid escape sequence: `\C`"),
    ],
)
def test_patterns_that_go_refuses(pattern: str, text: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern)
    assert str(caught.value) == f"error parsing regexp: {text}"


def test_a_hostile_pattern_takes_linear_time() -> None:
    assert compile_pattern("^(a+)+$").search("a" * 20_000 + "b") is None
    assert not match_test("^(a+)+$")("a" * 20_000 + "b")
    assert match_test("^a$")("a")
    assert not match_test("^a$")("a\n")


def test_metadata_on_update_keeps_what_is_fixed() -> None:
    old = {"name": "a", "uid": "u", "resourceVersion": "1", "generation": 3, "finalizers": ["x.io/a"]}
    old["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new = {**old, "uid": "v", "generation": 2, "finalizers": ["x.io/a", "x.io/b"], "resourceVersion": ""}
    assert [str(each) for each in validate_object_meta_update(new, old)] == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"x.io/b"}',
        'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        "metadata.generation: Invalid value: 2: must not be decremented",
        'metadata.uid: Invalid value: "v": field is immutable',
    ]


def test_metadata_on_create() -> None:
    faults = validate_object_meta({"name": "a", "namespace": "b"}, namespaced=False)
    assert [str(each) for each in faults] == ["metadata.namespace: Forbidden: not allowed on this type"]
    faults = validate_object_meta(
        {"name": "a", "finalizers": ["hold"]}, namespaced=False, plain_finalizers=True
    )
    assert [each.field for each in faults] == ["metadata.finalizers[0]"]
    huge = {"name": "a", "annotations": {"a": "x" * 300_000}}
    assert [each.reason for each in validate_object_meta(huge, namespaced=False)] == [Reason.TOO_LONG]


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.exists(), reason="needs the ../shared folder of recordings")
def test_recorded_faults_of_metadata() -> None:
    """Creates of rest/metadata-invalid: message and causes."""
    scenario = yaml.load((SCENARIOS / "rest/metadata-invalid.yaml").read_text(), Loader=yaml.CSafeLoader)
    compared = 0
    for raw in scenario["steps"]:
        if raw["method"] != "POST" or raw.get("quiet"):
            continue
        step = json.loads(json.dumps(raw, default=str).replace("{run}", SUFFIX).replace("RUN", SUFFIX))
        body, expect = step["body"], step["expect"]
        is_namespace = body["kind"] == "Namespace"
        meta = body["metadata"] if is_namespace else {**body["metadata"], "namespace": "ns"}
        rule = dns_label_name if is_namespace else None
        faults = validate_object_meta(
            meta, namespaced=not is_namespace, name_rule=rule, plain_finalizers=True
        )
        assert bool(faults) == (expect["status"] == 422), step["id"]
        if faults:
            status = invalid(body["kind"], "", meta.get("name", ""), faults).status()
            assert status["message"] == expect["body"]["message"], step["id"]
            assert status["details"] == expect["body"]["details"], step["id"]
        compared += 1
    assert compared >= 24


@pytest.mark.parametrize(
    ("kind", "wanted", "number", "refused"),
    [
        ("integer", "int32", 2**31, True),
        ("integer", "uint32", -1, False),
        ("integer", "uint64", -1, False),
        ("integer", "float", 2**40, False),
        ("number", "float", 1e300, True),
        ("number", "float32", 1e300, False),
    ],
)
def test_formats_of_numbers_that_a_custom_resource_is_held_against(
    kind: str, wanted: str, number: float, refused: bool
) -> None:
    schema = compile_custom({"type": "object", "properties": {"a": {"type": kind, "format": wanted}}})
    assert bool(schema.validate({"a": number})) is refused
