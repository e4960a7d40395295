"""Outcomes of what is compiled on drawn inputs, a line each: the same lines from both builds (``make test-compiled``).

    python -m tests.packaging.outcomes FILE

draws the inputs into FILE where there is none.

A line has the input's number and what came out: value and cost, or the error with its words.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apimachinery.cel.environment import Environment
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError
from apimachinery.merge import json_patch, merge_patch, strategic, strategic_diff
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.compile import MergeTypes
from apimachinery.merge.errors import MergeError
from apimachinery.merge.from_openapi import builtin_table, custom_resource
from tests.cel.expressions import ANY, VARIABLES
from tests.cel.oracle import TYPES
from tests.merge.values import SCHEMA, json_values, specs

EXPRESSIONS, OBJECTS, PATCHES = 2000, 500, 500
TYPED = Environment.everything().extend(variables=TYPES, limit=100_000)
UNTYPED = Environment.kubernetes("1.36").extend(variables=dict.fromkeys(VARIABLES, t.DYN))
OWN = FieldOwnership(api_version="e.com/v1", kind="Thing", type=custom_resource(SCHEMA))
PATCH_TYPE = MergeTypes(builtin_table({"Thing": SCHEMA})).patch_type("Thing")


def drawn(count: int, strategy: st.SearchStrategy[Any]) -> list[Any]:
    """``count`` values, or fewer where there are no more."""
    values: list[Any] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def one(value: Any) -> None:
        values.append(value)

    one()
    return values


def tell(show: Callable[[Any], object], values: Sequence[Any]) -> None:
    """Prints what ``show`` says of each value."""
    for number, value in enumerate(values):
        try:
            outcome = repr(show(value))
        except (CelError, MergeError) as error:
            outcome = f"{type(error).__name__}: {error}"
        print(show.__name__, number, outcome.replace("\n", " "))


def typed(source: str) -> object:
    """Value and cost under declared types."""
    outcome = TYPED.compile(source).run(VARIABLES)
    return outcome.value, str(outcome.error), outcome.cost


def untyped(source: str) -> object:
    """The same without types, and of half of the expression: mostly a syntax error."""
    try:
        UNTYPED.compile(source[: len(source) // 2])
    except CelError as error:
        return str(error)
    outcome = UNTYPED.compile(source).run(VARIABLES)
    return outcome.value, str(outcome.error), outcome.cost


def writes(values: tuple[Any, Any, Any, bool]) -> object:
    """Three writes by three managers, the last by apply: with force, or refused with its conflicts."""
    first, second, third, force = (copy.deepcopy(value) for value in values)
    thing = {"apiVersion": "e.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    live = OWN.apply(None, {**thing, "spec": first}, "a", force=False, now="2026-01-01T00:00:00Z")
    live = OWN.update(live, {**live, "spec": second}, "b", now="2026-01-01T00:00:01Z")
    return OWN.apply(live, {**thing, "spec": third}, "c", force=force, now="2026-01-01T00:00:02Z")


def patches(values: tuple[Any, Any, Any]) -> object:
    """Patches made of two objects, and applied to a third."""
    before, after, live = ({"spec": value} for value in copy.deepcopy(values))
    patch = strategic_diff.create_two_way(before, after, PATCH_TYPE)
    return patch, strategic.apply(live, patch, PATCH_TYPE), merge_patch.create_three_way(before, after, live)


def json_patches(values: tuple[Any, Any, str, str]) -> object:
    """JSON patches at places that are there and others."""
    document, value, op, path = values
    return json_patch.apply({"a": document, "b": [document]}, [{"op": op, "path": path, "value": value}])


_OPERATIONS = st.sampled_from(["add", "replace", "remove", "test", "move"])
_PLACES = st.sampled_from(["", "/a", "/a/0", "/b/0", "/b/-", "/b/1", "/a/b", "/c/d", "b"])
CASES: list[tuple[Callable[[Any], object], int, st.SearchStrategy[Any]]] = [
    (typed, EXPRESSIONS, ANY),
    (untyped, EXPRESSIONS, ANY),
    (writes, OBJECTS, st.tuples(specs, specs, specs, st.booleans())),
    (patches, PATCHES, st.tuples(specs, specs, specs)),
    (json_patches, PATCHES, st.tuples(json_values, json_values, _OPERATIONS, _PLACES)),
]

if __name__ == "__main__":
    inputs = Path(sys.argv[1])
    # Hypothesis also draws constants that it reads in sources, which compiled modules do not have: whoever is first
    # draws for both.
    if not inputs.exists():
        inputs.write_bytes(pickle.dumps([drawn(count, strategy) for _, count, strategy in CASES]))
    for case, values in zip(CASES, pickle.loads(inputs.read_bytes()), strict=True):
        tell(case[0], values)
