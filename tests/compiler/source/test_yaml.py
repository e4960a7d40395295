"""Specs are read by the YAML rules of request bodies, but for OpenAPI documents, which are YAML 1.2."""

from __future__ import annotations

import time
from typing import Any

import pytest
from tests.wire.test_yaml import DOCUMENTS, SCALARS

from apimachinery.wire import yaml as wire_yaml
from kubewright.diagnostics import Diagnostics
from kubewright.source.text import parse_documents


def read(text: str) -> tuple[Any, list[str]]:
    diagnostics = Diagnostics()
    documents = parse_documents(text.encode(), "spec.yaml", diagnostics)
    return (documents[0].value if documents else None), [str(item) for item in diagnostics]


@pytest.mark.parametrize("text", [*SCALARS, "=", "<<", "1e400", "'1'", "!!value x"])
def test_scalars_are_those_of_bodies(text: str) -> None:
    value, said = read(f"a: [{text}]" if not text.startswith("-") else f"a:\n  {text}")
    assert said == []
    wanted = wire_yaml.decode(text.encode())
    assert value["a"] == ([wanted] if not text.startswith("-") else wanted)


@pytest.mark.parametrize("text", [text for text in DOCUMENTS if "1.5:" not in text])
def test_documents_are_those_of_bodies(text: str) -> None:
    assert read(text) == (DOCUMENTS[text], [])


def test_an_escaped_slash_is_refused_with_its_place() -> None:
    value, said = read('b: 1\na: "x\\/y"\n')
    assert value is None and said[0].startswith(
        "spec.yaml:2:4: error K011: broken YAML: found unknown escape character"
    )
    assert read('{"a": "x\\/y"}') == ({"a": "x/y"}, [])  # JSON knows it


def test_openapi_documents_are_yaml_1_2() -> None:
    value, said = read("openapi: 3.0.0\ny: [y, n, on, OFF, true]\n")
    assert (value, said) == ({"openapi": "3.0.0", "y": ["y", "n", "on", "OFF", True]}, [])
    assert read("y: [y]")[0] == {"true": [True]}


def test_many_documents_cost_no_more_each() -> None:
    def cost(count: int) -> float:
        before = time.process_time()
        assert parse_documents(b"---\n" * count, "a.yaml", Diagnostics()) == []
        return time.process_time() - before

    assert cost(64_000) < 80 * cost(4_000)  # 16 times as much; 256 where each looks at the whole file
