"""Objects and patches as deep as a request can bring end in an answer or a refusal, and never end the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from apimachinery.merge import field_set, fields_v1, json_patch, merge_patch, strategic, strategic_diff
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import MergeError
from apimachinery.merge.from_openapi import builtin_table, custom_resource
from apimachinery.merge.value import compare, same
from tests.merge.values import SCHEMA

DEPTH = 10_000
OWN = FieldOwnership(api_version="e.com/v1", kind="Thing", type=custom_resource(SCHEMA))
PATCH_TYPE = MergeTypes(builtin_table({"Thing": SCHEMA})).patch_type("Thing")
NOW = "2026-01-01T00:00:00Z"


def nested(kind: str, leaf: Any = 1, step: str = "a") -> Any:
    value: Any = leaf
    for _ in range(DEPTH):
        value = [value] if kind == "list" else {step: value}
    return value


def thing(kind: str, leaf: Any = 1) -> dict[str, Any]:
    spec = {"free": {"a": nested(kind, leaf)}}
    return {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


CALLS: dict[str, Callable[[str], object]] = {
    "apply": lambda kind: OWN.apply(None, thing(kind), "a", force=False, now=NOW),
    "update": lambda kind: OWN.update(thing(kind), thing(kind, 2), "a", now=NOW),
    "strategic merge patch": lambda kind: strategic.apply(thing(kind), thing(kind, 2), PATCH_TYPE),
    "strategic patch of two": lambda kind: strategic_diff.create_two_way(
        thing(kind), thing(kind, 2), PATCH_TYPE
    ),
    "merge patch": lambda kind: merge_patch.apply(thing(kind), thing(kind, None)),
    "merge patch of two": lambda kind: merge_patch.create(thing(kind), thing(kind, 2)),
    "json patch": lambda kind: json_patch.apply(
        thing(kind),
        [
            {"op": "copy", "from": "/spec", "path": "/more"},
            {"op": "test", "path": "/spec", "value": thing(kind)["spec"]},
        ],
    ),
    "json patch of a deep path": lambda kind: json_patch.apply(
        thing("map"), [{"op": "replace", "path": "/spec/free" + "/a" * DEPTH, "value": 1}]
    ),
    "same": lambda kind: same(nested(kind), nested(kind, True)),
    "compare": lambda kind: compare(nested(kind), nested(kind, 2)),
    "fields of an entry": lambda kind: fields_v1.parse(nested("map", {}, "f:a")),
    "union of fields": lambda kind: field_set.union(
        nested("map", {}, "f:a"), nested("map", {"f:b": {}}, "f:a")
    ),
}


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except (MergeError, RecursionError, fields_v1.FieldsError, ValueError) as error:
        return type(error).__name__
    return "answered"


SQUARE = {"merge patch of two", "strategic patch of two", "update"}
"""What compares at each level of a map: some seconds."""
CASES = [
    pytest.param(name, kind, marks=[pytest.mark.thorough] if kind == "map" and name in SQUARE else [])
    for name in CALLS
    for kind in ("list", "map")
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_depth_never_ends_the_process(name: str, kind: str) -> None:
    outcomes = [outcome(lambda: CALLS[name](kind))]
    thread = threading.Thread(target=lambda: outcomes.append(outcome(lambda: CALLS[name](kind))), daemon=True)
    thread.start()
    thread.join(300)
    assert len(outcomes) == 2
