"""Conditions as meta.SetStatusCondition sets them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from apimachinery.controller.conditions import find_condition, has_condition, set_condition
from kubernetes_api.autoscaling_v2 import HorizontalPodAutoscalerCondition as Loose
from kubernetes_api.core_v1 import ConfigMap
from kubernetes_api.meta_v1 import Condition, ObjectMeta

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def ready(status: str, minutes: int = 0, reason: str = "R", **more: int) -> Condition:
    at = T0 + timedelta(minutes=minutes)
    return Condition(type="Ready", status=status, reason=reason, message="", last_transition_time=at, **more)


def test_the_time_is_that_of_the_last_change_of_status() -> None:
    first = set_condition(None, ready("False"))
    second = set_condition(first, ready("False", 5, reason="Other"))
    third = set_condition(second, ready("True", 9))
    assert [c[0].last_transition_time for c in (first, second, third)] == [T0, T0, T0 + timedelta(minutes=9)]
    assert second[0].reason == "Other"
    assert first[0].reason == "R"  # nothing is changed in place


def test_others_stay_where_they_are() -> None:
    other = Condition(type="Other", status="True", reason="R", message="", last_transition_time=T0)
    both = set_condition([ready("False"), other], ready("True"))
    assert [(c.type, c.status) for c in both] == [("Ready", "True"), ("Other", "True")]
    assert find_condition(both, "Other") is other
    assert find_condition(None, "Other") is None
    assert has_condition(both, "Ready")
    assert not has_condition(both, "Ready", "False")
    assert not has_condition([], "Ready")


def test_the_generation_is_that_of_the_object() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="a", generation=7))
    assert set_condition(None, ready("True"), of=owner)[0].observed_generation == 7
    assert set_condition(None, ready("True", observed_generation=3), of=owner)[0].observed_generation == 3


def test_a_class_that_needs_no_time_gets_one() -> None:
    (made,) = set_condition(None, Loose(type="Ready", status="True"))
    assert made.last_transition_time is not None
    (again,) = set_condition([made], Loose(type="Ready", status="True"))
    assert again.last_transition_time == made.last_transition_time


conditions = st.builds(
    ready, st.sampled_from(["True", "False", "Unknown"]), st.integers(0, 99), st.sampled_from("AB")
)


@given(st.lists(conditions, min_size=1))
def test_setting_twice_is_setting_once(steps: list[Condition]) -> None:
    made: list[Condition] = []
    for step in steps:
        made = set_condition(made, step)
    assert set_condition(made, steps[-1]) == made
    assert len(made) == 1
    changed = [n for n, step in enumerate(steps) if n == 0 or step.status != steps[n - 1].status][-1]
    assert made[0].last_transition_time == steps[changed].last_transition_time
