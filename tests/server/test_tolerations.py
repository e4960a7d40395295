"""PodTolerationRestriction: which toleration covers which, and what is left where a pod's and a namespace's meet."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from apimachinery.server.admission.builtin.pod_placement import _covers, _merged

AT_ONCE = "effect: NoExecute, tolerationSeconds"


@pytest.mark.parametrize(
    ("one", "other", "covers"),
    [
        ("{operator: Exists}", "{key: k, value: v, effect: NoSchedule}", True),
        ("{key: k, operator: Exists}", "{key: k, value: v, effect: NoSchedule}", True),
        ("{key: k, operator: Exists}", "{key: j, operator: Exists}", False),
        ("{}", "{key: k}", False),
        ("{key: k, value: v}", "{key: k, operator: Equal, value: v}", True),
        ("{key: k}", "{key: k, value: ''}", True),
        ("{key: k, value: v}", "{key: k, value: w}", False),
        ("{key: k, value: v}", "{key: k, operator: Exists, value: v}", False),
        (
            "{key: k, operator: Exists, effect: NoExecute}",
            "{key: k, operator: Exists, effect: NoSchedule}",
            False,
        ),
        ("{key: k, operator: Exists, effect: NoExecute}", "{key: k, operator: Exists}", False),
        ("{operator: Exists, effect: NoExecute}", "{key: k, effect: NoExecute, tolerationSeconds: 5}", True),
        (f"{{operator: Exists, {AT_ONCE}: 9}}", f"{{{AT_ONCE}: 9}}", True),
        (f"{{operator: Exists, {AT_ONCE}: 9}}", f"{{{AT_ONCE}: 10}}", False),
        (f"{{operator: Exists, {AT_ONCE}: 0}}", "{effect: NoExecute}", False),
        ("{operator: Lt, key: k, value: '1'}", "{operator: Lt, key: k, value: '1'}", True),
    ],
)
def test_one_covers_another(one: str, other: str, covers: bool) -> None:
    assert _covers(yaml.safe_load(one), yaml.safe_load(other)) is covers


def test_what_another_covers_goes_and_of_equal_ones_the_first_stays() -> None:
    given: list[Any] = [
        {"key": "a"},
        {"key": "b"},
        {"key": "a"},
        {"key": "a", "operator": "Exists"},
        {"key": "b"},
    ]
    assert _merged(given) == [{"key": "b"}, {"key": "a", "operator": "Exists"}]
