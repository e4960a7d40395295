"""Strategic merge patch: stories/strategic.yaml says what comes out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.merge import strategic
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import BadPatch, MergeError
from apimachinery.merge.from_openapi import builtin_table
from apimachinery.merge.strategic_diff import (
    PatchConflict,
    PreconditionFailed,
    create_three_way,
    create_two_way,
)

STORIES = yaml.load((Path(__file__).parent / "stories/strategic.yaml").read_text(), yaml.CSafeLoader)
TYPE = MergeTypes(builtin_table({"Thing": STORIES["schema"]})).patch_type("Thing")


def named(kind: str) -> Any:
    return pytest.mark.parametrize("case", STORIES[kind], ids=lambda case: case["name"])


@named("apply")
def test_apply(case: dict[str, Any]) -> None:
    given = copy.deepcopy(case)
    if "error" in case:
        with pytest.raises(MergeError) as refused:
            strategic.apply(case["original"], case["patch"], TYPE)
        assert (refused.value.code, refused.value.message) == (case["code"], case["error"])
    else:
        assert strategic.apply(case["original"], case["patch"], TYPE) == case["result"]
    assert case == given, "an argument was changed"


@named("two-way")
def test_two_way(case: dict[str, Any]) -> None:
    given = copy.deepcopy(case)
    if "error" in case:
        with pytest.raises(MergeError, match="merge key") as refused:
            create_two_way(case["original"], case["modified"], TYPE)
        assert refused.value.message == case["error"]
        return
    patch = create_two_way(case["original"], case["modified"], TYPE)
    assert patch == case["patch"]
    assert strategic.apply(case["original"], patch, TYPE) == case["modified"]
    assert case == given, "an argument was changed"


@named("three-way")
def test_three_way(case: dict[str, Any]) -> None:
    given = copy.deepcopy(case)
    documents = (case["original"], case["modified"], case["current"])
    assert create_three_way(*documents, TYPE) == case["patch"]
    if "conflicts" in case:
        with pytest.raises(PatchConflict) as refused:
            create_three_way(*documents, TYPE, overwrite=False)
        assert list(refused.value.paths) == case["conflicts"]
    else:
        assert create_three_way(*documents, TYPE, overwrite=False) == case["patch"]
    assert case == given, "an argument was changed"


def test_a_precondition_names_what_the_patch_may_not_touch() -> None:
    with pytest.raises(PreconditionFailed, match=r"the patch changes \.nested\.name"):
        create_three_way(
            {}, {"nested": {"name": "b"}}, {"nested": {"name": "a"}}, TYPE, unchanged=(("nested", "name"),)
        )


@pytest.mark.parametrize("value", [{}, [], [{}]])
def test_a_merge_key_that_is_no_scalar_is_a_bad_patch(value: object) -> None:
    """kube-apiserver crashes on it."""
    with pytest.raises(BadPatch, match="a merge key must be a scalar"):
        strategic.identity_by("name")({"name": value})
