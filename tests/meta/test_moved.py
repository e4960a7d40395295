"""Modules that moved still answer to their old names: packages generated before the move import them."""

from __future__ import annotations

from importlib import import_module

import pytest

MOVED = {
    "apimachinery.meta.object": "apimachinery.typed.object",
    "apimachinery.meta.scheme": "apimachinery.typed.scheme",
    "apimachinery.meta.lossless": "apimachinery.typed.lossless",
    "apimachinery.meta.lenient": "apimachinery.typed.lenient",
    "apimachinery.meta.dataclass_form": "apimachinery.typed.dataclass_form",
    "apimachinery.rules.fields": "apimachinery.kinds.fields",
    "apimachinery.rules.checks": "apimachinery.kinds.checks",
    "apimachinery.rules.predicates": "apimachinery.kinds.predicates",
    "apimachinery.rules.defaulters": "apimachinery.kinds.defaulters",
    "apimachinery.rules.conditions": "apimachinery.kinds.conditions",
    "apimachinery.rules.gates": "apimachinery.kinds.gates",
    "apimachinery.server.catalog.hooks": "apimachinery.kinds.hooks",
}


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_name_gives_the_same_objects(old: str, new: str) -> None:
    before, now = import_module(old), import_module(new)
    public = {name for name in vars(now) if not name.startswith("_") and name != "annotations"}
    assert {name for name in public if getattr(before, name, None) is not getattr(now, name)} == set()
