"""Faults of built-in kinds as a table: one change of a good object, and what is said of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rules.built_in import create, default, generated

Json = dict[str, Any]
TABLE = yaml.load((Path(__file__).parent / "cases/validation.yaml").read_text(), yaml.CSafeLoader)


def changed(obj: Json, path: str, value: Any) -> Json:
    """A copy of ``obj`` with the value at ``path`` set, or taken away by null."""
    new = copy.deepcopy(obj)
    *way, last = path.split(".")
    owner = new
    for key in way:
        owner = owner.setdefault(key, {})
    if value is None:
        owner.pop(last, None)
    else:
        owner[last] = value
    return new


def said(obj: Json, old: Json | None = None) -> list[str]:
    module = generated(obj["apiVersion"], "validation")
    assert module is not None
    return [str(fault) for fault in module.VALIDATORS[obj["kind"]](obj, old)]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry["kind"])
def test_the_good_object_has_no_faults(entry: Json) -> None:
    good = create(copy.deepcopy(entry["object"]))
    assert said(good) == []
    assert said(good, copy.deepcopy(good)) == []


FAULTS = [(entry["object"], case) for entry in TABLE for case in entry["faults"]]
UPDATES = [(entry["object"], case) for entry in TABLE for case in entry.get("updates", ())]


SUBRESOURCES = [(entry["object"], case) for entry in TABLE for case in entry.get("subresources", ())]


def named(value: Any) -> str:
    return f"{value['at']}={value['to']}"[:60] if "at" in value else str(value["kind"])


@pytest.mark.parametrize(("good", "case"), FAULTS, ids=named)
def test_faults(good: Json, case: Json) -> None:
    assert said(create(changed(good, case["at"], case["to"]))) == case["says"]


@pytest.mark.parametrize(("good", "case"), UPDATES, ids=named)
def test_updates(good: Json, case: Json) -> None:
    old, new = copy.deepcopy(good), changed(good, case["at"], case["to"])
    for path, value in case.get("before", {}).items():
        old = changed(old, path, value)
    for path, value in case.get("with", {}).items():
        new = changed(new, path, value)
    assert said(default(new), default(old)) == case["says"]


@pytest.mark.parametrize(("good", "case"), SUBRESOURCES, ids=named)
def test_subresources(good: Json, case: Json) -> None:
    """``was`` is what the stored object has at the same place."""
    module = generated(good["apiVersion"], "validation")
    assert module is not None
    check = module.SUBRESOURCE_VALIDATORS[good["kind"], case["subresource"]]
    old, new = (changed(good, case["at"], case.get(key)) for key in ("was", "to"))
    assert [str(fault) for fault in check(new, old)] == case["says"]
