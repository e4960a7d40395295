"""Checks that remember right values: they say the same of a value as often as they are asked, wherever it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.kinds import remembered
from apimachinery.kinds.remembered import unless_known
from apimachinery.meta import digests
from apimachinery.meta.field_errors import FieldError, forbidden
from apimachinery.meta.release import current_release, rules_of
from kubernetes_api.core_v1 import validation

SPEC = {
    "containers": [
        {"name": "web", "image": "nginx", "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    ],
    "terminationGracePeriodSeconds": 30,
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "a", "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


def asked(value: dict[str, Any], prefix: str) -> Iterator[FieldError]:
    """Finds fault with every value but those whose ``a`` is one, of a release that the value names."""
    if not (value.get("a") is not True and type(value.get("a")) is int and value.get("a") == 1):
        yield forbidden(f"{prefix}a", json.dumps(value))
    if value.get("release", current_release()) != current_release():
        yield forbidden(f"{prefix}release", current_release())


@given(st.lists(st.dictionaries(st.sampled_from("ab"), VALUES, max_size=2), max_size=8))
def test_answers_are_those_of_the_check(values: list[dict[str, Any]]) -> None:
    check = unless_known(asked)
    for value in [*values, *values]:
        assert list(check(deepcopy(value), "x.")) == list(asked(value, "x."))


def test_a_right_value_is_looked_through_once() -> None:
    seen = []

    def counted(value: dict[str, Any], prefix: str) -> Iterator[FieldError]:
        seen.append(value)
        yield from asked(value, prefix)

    check = unless_known(counted)
    for value in ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}, {"a": 1.0}, {"a": True}, {"a": 1}):
        list(check(value, ""))
    assert seen == [{"a": 1}, {"a": 2}, {"a": 2}, {"a": 1.0}, {"a": True}]


def test_each_release_judges_for_itself() -> None:
    check = unless_known(asked)
    value = {"a": 1, "release": current_release()}
    assert not list(check(value, ""))
    with rules_of("1.30"):
        assert [fault.field for fault in check(value, "spec.")] == ["spec.release"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "MOST", 3)
    check = unless_known(asked)
    for number in range(20):
        assert not list(check({"a": 1, "b": number}, ""))
    assert not list(check({"a": 1, "b": "long" * (digests.LONGEST // 4)}, ""))


@pytest.mark.parametrize("spoilt", [{"restartPolicy": "Ever"}, {"dnsPolicy": 1}, {"hostname": "A_"}])
def test_a_spec_with_a_fault_is_refused_after_right_ones(spoilt: dict[str, Any]) -> None:
    right, wrong = deepcopy(SPEC), {**deepcopy(SPEC), **spoilt}
    first = [str(fault) for fault in validation.check_pod_spec(wrong, "spec.")]
    assert first
    for _ in range(2):
        assert not list(validation.check_pod_spec(right, "spec."))
        assert [str(fault) for fault in validation.check_pod_spec(wrong, "spec.")] == first
