"""``kubewright lint --fix``: what is corrected in place, what is left alone, and that nothing else changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.tools.lint.fixing import FIXES
from kubewright.tools.lint.run import load_rules
from tests.tools.command import kubewright

FAULTY = """\
# of things
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thingy}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - name: Mode   # of it
      type: string
      jsonPath: .spec.mode
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [mode, size]
            x-kubernetes-validations:
            - rule: self.size > 0   # more than none
              message: size must be positive.
            properties:
              mode:
                type: string
                enum: [A, B, A]
                default: A  # the usual
              # how much
              size:
                type: integer
                maxLength: 10
              words:   # kubewright: ignore[L112, L308] once a phase
                type: array
                items: {type: string}
              more:   # kubewright: ignore[L112]
                type: string
          status:
            type: object
            required:
            - words   # seen
            properties:
              words: {type: array, items: {type: string}}
"""
FIXED = """\
# of things
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - name: Mode   # of it
      type: string
      jsonPath: .spec.mode
    - name: Age
      type: date
      jsonPath: .metadata.creationTimestamp
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - rule: self.size > 0   # more than none
              message: size must be positive
            properties:
              mode:
                type: string
                enum: [A, B]
                default: A  # the usual
              # how much
              size:
                type: integer
                format: int64
              words:
                type: array
                items: {type: string}
                x-kubernetes-list-type: atomic
              more:
                type: string
          status:
            type: object
            # seen
            properties:
              words: {type: array, items: {type: string}, x-kubernetes-list-type: atomic}
"""


def other(text: str) -> str:
    """The same for another kind, in which no shape is the first one's."""
    renamed = text.replace("thing", "gear").replace("Thing", "Gear")
    return renamed.replace("spec.mode", "spec.style").replace("mode", "style").replace("words", "terms")


def test_what_a_rule_can_correct_is_corrected_in_place(tmp_path: Path) -> None:
    path = tmp_path / "crds.yaml"
    path.write_text(FAULTY + "---\n" + other(FAULTY))
    chosen = ["--select", ",".join(FIXES), "--select", "L112,L308"]
    code, out, err = kubewright("lint", path, "--fix", *chosen)
    assert (code, out) == (0, ""), out
    assert "findings fixed in 1 file\n" in err
    assert path.read_text() == FIXED + "---\n" + other(FIXED)
    _, _, err = kubewright("lint", path, "--fix", *chosen)
    assert "0 findings fixed in 0 files" in err


def test_only_what_is_asked_for_is_fixed_and_the_rest_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "crd.yaml"
    path.write_text(FAULTY)
    known = ("--baseline", tmp_path / "known.json")
    kubewright("lint", path, "--select", "L209", *known, "--update-baseline")
    kubewright("lint", path, "--fix", "--select", "L209", *known)
    assert path.read_text() == FAULTY  # what is agreed to be mended later is not mended now
    code, out, _ = kubewright("lint", path, "--fix", "--select", "L218", "--select", "L401")
    assert code == 1 and "L401" in out
    assert path.read_text() == FAULTY.replace("[mode, size]", "[size]")


def test_comments_are_never_lost(tmp_path: Path) -> None:
    path = tmp_path / "crd.yaml"
    text = FAULTY.replace("enum: [A, B, A]", "enum: [A, # first\n                       B, A]")
    path.write_text(text)
    _, out, err = kubewright("lint", path, "--fix", "--select", "L228")
    assert path.read_text() == text and "L228" in out
    assert f"{path}: note: not fixed: its comments would be lost" in err


@pytest.mark.parametrize("code", sorted(FIXES))
def test_every_fix_belongs_to_a_rule_and_explains_itself(code: str) -> None:
    assert code in load_rules()
    said = FIXES[code].__doc__ or ""
    assert said and not said.endswith(".")
    assert "--fix " + said[:20] in " ".join(kubewright("lint", "--explain", code)[1].split())


def test_a_comment_in_another_version_is_not_idle(tmp_path: Path) -> None:
    """Versions that are alike are reported once; each may have its comment."""
    text = FAULTY.replace("size:\n", "isX:  # kubewright: ignore[L112]\n")
    text = text.replace("type: integer\n                maxLength: 10", "type: boolean")
    start = text.index("  - name: v1\n")
    older = text[start:].replace("name: v1\n", "name: v1beta1\n").replace("storage: true", "storage: false")
    path = tmp_path / "crd.yaml"
    path.write_text(text + older)
    chosen = ("--select", "L112", "--select", "L001")
    code, out, _ = kubewright("lint", path, *chosen)
    idle = [line for line in out.splitlines() if "L001" in line]
    assert code == 1 and len(idle) == 4, out  # the two idle comments of FAULTY, in either version
    before = path.read_text()
    kubewright("lint", path, "--fix", "--select", "L112")
    assert path.read_text().count("isX:  # kubewright: ignore[L112]") == 2 == before.count("isX:  # ")
