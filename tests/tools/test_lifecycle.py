"""``kubewright lifecycle``: plans that keep the deprecation policy, and each way to break it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.command import kubewright

CASES: list[tuple[str, list[str]]] = [
    (
        "{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.4', removed: '1.7', replacement: x/v1/A}",
        [],
    ),
    ("{api_version: x/v1alpha1, kind: A, introduced: '1.1', removed: '1.2'}", []),
    ("{api_version: x/v1, kind: A, introduced: '1.1', deprecated: '1.9'}", []),
    (
        "{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.4', removed: '1.6', replacement: x/v1/A}",
        ["P002: A of x/v1beta1 is beta: deprecated in 1.4, may go with 1.7 at the earliest, not 1.6"],
    ),
    (
        "{api_version: x/v1beta1, kind: A, introduced: '1.1', removed: '1.6', replacement: x/v1/A}",
        ["P002: A of x/v1beta1 is removed without having been deprecated"],
    ),
    (
        "{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.2', removed: '1.6'}",
        ["P005: A of x/v1beta1 is removed without a successor"],
    ),
    (
        "{api_version: x/v1, kind: A, introduced: '1.1', deprecated: '1.4', removed: '1.30'}",
        ["P004: A of x/v1 is stable: it stays for all of 1.x"],
    ),
    ("{api_version: x/v1, kind: A, introduced: '1.1', deprecated: '1.4', removed: '2.0'}", []),
    (
        "{api_version: x/v1, kind: A, introduced: '1.1', deprecated: '1.4', replacement: x/v2beta1/A}",
        ["P003: A of x/v1 is stable, its successor x/v2beta1 only beta"],
    ),
    (
        "{api_version: x/v1, kind: A, introduced: '1.5', deprecated: '1.4'}",
        ["P001: A of x/v1: introduced, deprecated and removed must follow each other"],
    ),
    (
        "{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.4', replacement: x/v1/A}\n"
        "- {api_version: x/v1, kind: A, introduced: '1.5'}",
        ["P003: A of x/v1beta1 is deprecated in 1.4, before x/v1 comes in 1.5"],
    ),
]


@pytest.mark.parametrize(("entry", "said"), CASES)
def test_each_rule_of_the_policy(entry: str, said: list[str], tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"resources:\n- {entry}\n")
    code, out, err = kubewright("lifecycle", path)
    assert [line.partition("error ")[2] for line in out.splitlines()] == said, err
    assert code == (1 if said else 0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a plan has a list called resources"),
        ("resources: [x]", "an entry has api_version and kind"),
        ("resources: [{api_version: x/v1, kind: A, introduced: 1.30}]", "introduced: 1.3 is no release"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    code, _, err = kubewright("lifecycle", path)
    assert code == 2
    assert said in err


def test_the_table_tells_when_a_deprecated_beta_may_go(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("resources: [{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.4'}]")
    out = kubewright("lifecycle", path, "--table")[1]
    assert out.splitlines()[-1] == "| A | x/v1beta1 | 1.1 | 1.4 | 1.7 at the earliest |  |"
    assert "| CronJob | batch/v1beta1 | 1.8 | 1.21 | 1.25 | batch/v1/CronJob |" in kubewright("lifecycle")[1]
