"""``published.yaml``: words and defaults that OpenAPI documents state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from apimachinery.server.catalog.served_package import _with_words
from kubernetes_api import enums
from kubewright.diagnostics import Diagnostics
from kubewright.source.rules import read_rules


def read(text: str, tmp_path: Path) -> tuple[Any, list[str]]:
    (tmp_path / "published.yaml").write_text(text)
    diagnostics = Diagnostics()
    found = dict(read_rules(tmp_path, diagnostics, ("published",)))
    return found.get("published", ()), [each.code for each in diagnostics]


def test_words_and_defaults_are_read(tmp_path: Path) -> None:
    found, faults = read("a.Thing: {kind: {enum: [A, '']}, port: {default: TCP}, none: {enum: []}}", tmp_path)
    assert faults == []
    assert [(each.name, each.words, each.default) for each in found] == [
        ("kind", ("A", ""), ()),
        ("port", None, ("TCP",)),
        ("none", (), ()),
    ]


@pytest.mark.parametrize(
    ("text", "code"),
    [("a.Thing: []", "K161"), ("a.Thing: {a: {enum: x}}", "K161"), ("a.Thing: {a: {words: [x]}}", "K162")],
)
def test_what_is_no_fact_is_told(text: str, code: str, tmp_path: Path) -> None:
    assert code in read(text, tmp_path)[1]


def test_what_the_package_has_of_them() -> None:
    assert enums.ENUMS["io.k8s.api.batch.v1.JobSpec"]["completionMode"] == ("Indexed", "NonIndexed")
    assert enums.DEFAULTS["io.k8s.api.core.v1.ContainerPort"] == {"protocol": "TCP"}


def test_words_of_a_list_are_those_of_its_items() -> None:
    assert _with_words({"type": "string"}, ("a",)) == {"type": "string", "enum": ["a"]}
    listed = {"type": "array", "items": {"type": "string"}}
    assert _with_words(listed, ("a",))["items"] == {"type": "string", "enum": ["a"]}
