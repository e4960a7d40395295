"""What is one finding of ``diff``, and what is no error."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from kubewright.diagnostics import Severity
from kubewright.location import Location
from kubewright.tools.diff.change import KINDS, ApiChange
from kubewright.tools.diff.policy import Exceptions, diagnose, weigh
from kubewright.tools.diff.resources import compare
from tests.tools.test_diff import read
from tests.tools.test_lint import CLEAN


def change(code: str, place: str, message: str) -> ApiChange:
    return ApiChange(KINDS[code], f"widgets.example.com/v1: {place}", "v1", message, Location("crd.yaml"))


ONE_IDEA = {
    "D203": ['format changed from "" to "date"'] * 3,
    "D206": ["null is no longer accepted"] * 3,
    "D208": ["default changed from 1 to 2", "default changed from 'a' to 'b'", "default changed from 3 to 4"],
    "D209": [
        "has no default any more (it was 1)",
        "has no default any more (it was False)",
        "has no default any more (it was '')",
    ],
    "D215": ['pattern changed from "a" to "b": "a" is refused now'] * 3,
    "D219": ["map type changed from granular to atomic"] * 3,
    "D222": ["unknown fields were kept and are pruned now"] * 3,
    "D236": ['format changed from "" to "int32"'] * 3,
}


@pytest.mark.parametrize("code", ONE_IDEA)
def test_one_idea_at_fields_of_other_names_is_one_finding(code: str) -> None:
    said = zip(("spec.a", "spec.b.c", "spec.d[]"), ONE_IDEA[code], strict=True)
    changes = [change(code, place, message) for place, message in said]
    found, _ = diagnose(changes, Exceptions({}))
    assert [each.code for each in found] == [code]
    assert "(at 3 places: also spec.b.c" in found[0].message
    for each in changes:
        value = each.message.rpartition(" (it was ")[2].rstrip(")")
        assert value.removeprefix("default changed ") in found[0].message
    assert len(diagnose(changes, Exceptions({}), each=True)[0]) == 3


@pytest.mark.parametrize("code", ["D201", "D202", "D204", "D209", "D211", "D217"])
def test_nothing_in_a_status_is_an_error(code: str) -> None:
    for place in ("status", "status.replicas", "status.conditions[].reason"):
        assert weigh(change(code, place, "x")) is Severity.WARNING
    for place in ("spec.status", "statusOf", "spec"):
        assert weigh(change(code, place, "x")) is Severity.ERROR


def test_a_whole_number_of_32_bits_is_a_warning() -> None:
    assert weigh(change("D236", "spec.replicas", "x")) is Severity.WARNING


def test_metadata_that_becomes_required_breaks_nobody(tmp_path: Path) -> None:
    new = copy.deepcopy(CLEAN)
    schema = new["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["required"] = ["metadata", "spec"]
    assert compare(read(CLEAN, tmp_path / "old.yaml"), read(new, tmp_path / "new.yaml")) == []
    schema["required"] = ["spec", "status"]
    found = compare(read(CLEAN, tmp_path / "old.yaml"), read(new, tmp_path / "new.yaml"))
    assert [each.kind.code for each in found] == ["D204"]
