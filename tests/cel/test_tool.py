"""``kubewright cel``: what it prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.cli import main

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              start: {type: string, format: date-time}
              l: {type: array, maxItems: 10, items: {type: integer}}
            x-kubernetes-validations:
            - rule: self.l.all(x, x > 0)
            - rule: self.nothing
"""


@pytest.fixture
def crd(tmp_path: Path) -> str:
    path = tmp_path / "crd.yaml"
    path.write_text(CRD)
    return str(path)


def run(*arguments: str) -> int:
    return main(["cel", *arguments])


EVALUATIONS: list[tuple[list[str], str]] = [
    (["1 + 2"], "3"),
    (["'text'"], "text"),
    (["[{'a': b'x'}]"], '[{"a": "eA=="}]'),
    (["duration('90s')"], "90s"),
    (["a.b + 1", "--var", 'a={"b": 2}'], "3"),
]


@pytest.mark.parametrize(("arguments", "printed"), EVALUATIONS)
def test_eval_prints_the_value(
    arguments: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("eval", *arguments) == 0
    assert capsys.readouterr().out == printed + "\n"


def test_eval_types_self_by_a_crd(crd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = tmp_path / "self.yaml"
    value.write_text("spec: {start: 2021-03-04T05:06:07Z, l: [1]}\n")
    assert (
        run(
            "eval", "self.spec.start.getFullYear()", "--schema", crd, "--self", str(value), "--format", "json"
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out) == {"type": "int", "value": 2021, "cost": 4}
    assert run("eval", "self.spec.nope", "--schema", crd) == 1
    assert "ERROR: <input>:1:10: undefined field 'nope'" in capsys.readouterr().err


FAILURES: list[tuple[list[str], int, str]] = [
    (["eval", "1 +"], 1, "Syntax error: mismatched input '<EOF>'"),
    (["eval", "1 / 0"], 1, "ERROR: division by zero"),
    (["eval", "1", "--var", "x"], 2, "--var x: not NAME=JSON"),
    (["eval", "1", "--var", "x=y"], 2, "--var x: not JSON: y"),
    (["eval", "1", "--self", "/nonexistent"], 2, "/nonexistent: error K001: cannot read: No such file"),
    (["eval", "1", "--kubernetes", "new"], 2, "--kubernetes new: not a version such as 1.36"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), FAILURES, ids=[" ".join(f[0]) for f in FAILURES])
def test_failures(arguments: list[str], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == code
    assert text in capsys.readouterr().err


def test_check_lists_rules_and_faults(crd: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check", crd) == 1
    out, err = capsys.readouterr()
    head, file, row, rule, *rest = out.splitlines()
    assert head.split() == ["COST", "OF", "LIMIT", "SELF", "VERSION", "PATH"]
    assert file == f"{crd}:"
    assert row.split() == ["53", "0.0%", "object", "v1", ".properties[spec].x-kubernetes-validations[0]"]
    assert rule.startswith("    ") and rule.strip()
    assert max(map(len, (head, row, rule))) <= 100
    assert rest == ["1 rules, 1 faults"]
    assert "x-kubernetes-validations[1].rule: Invalid value: " in err and "undefined field 'nothing'" in err


def test_check_as_json(crd: str, capsys: pytest.CaptureFixture[str]) -> None:
    run("check", crd, "--format", "json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [r["cost"] for r in found["rules"]] == [53] and len(found["faults"]) == 1


def test_check_of_what_is_no_crd(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("[1]")
    assert run("check", str(path)) == 2
    path.write_text("a: [")
    assert run("check", str(path)) == 2
    assert "x.yaml:2:1: error K011: broken YAML" in capsys.readouterr().err
