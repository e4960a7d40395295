"""JSON patch and JSON merge patch."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.merge import json_patch, merge_patch
from apimachinery.merge.errors import MergeError

CASES = yaml.load((Path(__file__).parent / "stories/json_patch.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_json_patch(case: dict[str, Any]) -> None:
    given = copy.deepcopy(case)
    if "result" in case:
        assert json_patch.apply(case["document"], case["patch"]) == case["result"]
    else:
        with pytest.raises(MergeError) as refused:
            json_patch.apply(case["document"], case["patch"])
        error = refused.value
        if "detail" in case:
            assert isinstance(error, json_patch.JsonPatchFailed)
            assert error.detail == case["detail"]
            assert (error.code, error.reason) == (422, "Invalid")
            assert error.message == "the server rejected our request due to an error in our request"
        else:
            assert (error.code, error.message) == (case["code"], case["message"])
    assert case == given, "an argument was changed"


def test_ten_thousand_operations_and_no_more() -> None:
    operations = [{"op": "test", "path": "/a", "value": 1}] * 10_000
    assert json_patch.apply({"a": 1}, operations) == {"a": 1}
    with pytest.raises(MergeError) as refused:
        json_patch.apply({"a": 1}, [*operations, operations[0]])
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
    assert refused.value.message == (
        "Request entity is too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_cannot_double_a_document_without_end() -> None:
    double = [{"op": "copy", "from": "/a", "path": f"/a/{i}"} for i in range(64)]
    with pytest.raises(json_patch.JsonPatchFailed, match="rejected") as refused:
        json_patch.apply({"a": {}}, double)
    assert "copies of more than" in refused.value.detail


def test_copies_are_counted_in_bytes() -> None:
    """10,000 copies of a 900 KB string were 9 GB; kube-apiserver copies 3 MiB at most."""
    document = {"s": "x" * 900_000}
    copies = [{"op": "copy", "from": "/s", "path": f"/s{i}"} for i in range(10_000)]
    assert json_patch.apply(document, copies[:3]) == {
        **document,
        **{f"s{i}": document["s"] for i in range(3)},
    }
    with pytest.raises(json_patch.JsonPatchFailed) as refused:
        json_patch.apply(document, copies)
    assert refused.value.detail == "operation 3: copies of more than 3145728 bytes"


def test_shifts_of_long_lists_are_bounded() -> None:
    document = {"l": [0] * 100_000}
    with pytest.raises(json_patch.JsonPatchFailed, match="rejected") as refused:
        json_patch.apply(document, [{"op": "add", "path": "/l/0", "value": 1}] * 10_000)
    assert "shift more than 50000000 items" in refused.value.detail


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
        # Not of the RFC: what is new, or takes the place of no object, is rid of nulls in lists too.
        ({}, {"a": [{"b": None, "c": 1}, None]}, {"a": [{"c": 1}, None]}),
        ({"a": [1]}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": {"b": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}),
    ],
)
def test_merge_patch(document: Any, patch: Any, result: Any) -> None:
    """After the examples of RFC 7386, and kube-apiserver's answers."""
    assert merge_patch.apply(document, patch) == result


@pytest.mark.parametrize("patch", [[], "text", 1, True])
def test_a_merge_patch_is_an_object(patch: Any) -> None:
    with pytest.raises(MergeError, match="cannot unmarshal") as refused:
        merge_patch.apply({}, patch)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("original", "modified", "current", "patch"),
    [
        ({}, {"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {}, {"a": 1, "b": 2}, {"a": None}),
        ({"a": 1}, {"a": 2}, {"a": 3}, {"a": 2}),
        ({"o": {"a": 1}}, {"o": {"b": 1}}, {"o": {"a": 1, "c": 1}}, {"o": {"a": None, "b": 1}}),
        ({"a": 1}, {"a": 1}, {"a": 1, "theirs": 1}, {}),
        ({"a": 1}, {"a": 1}, {}, {"a": 1}),
    ],
)
def test_three_way_merge_patch(original: Any, modified: Any, current: Any, patch: Any) -> None:
    assert merge_patch.create_three_way(original, modified, current) == patch
