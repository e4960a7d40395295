"""Manifests of API versions that are gone: what they become, and that every version gone has a way out."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.source.rules import read_rules
from tests.rules.built_in import ROOT
from tests.rules.test_conversion import CONVERTER

Json = dict[str, Any]
CASES = yaml.load((Path(__file__).parent / "cases/migrations.yaml").read_text(), yaml.CSafeLoader)
KUBERNETES = ROOT / "specs/kubernetes"
NO_OBJECTS = {
    "Scale",
    "DeploymentRollback",
    "Eviction",
    "AdmissionReview",
    "APIGroupDiscovery",
    "ConversionReview",
}
"""Kinds of requests and subresources: nothing to migrate in a manifest."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: Json) -> None:
    new = CONVERTER.convert(copy.deepcopy(case["from"]), case["to"]["apiVersion"])
    assert new == case["to"]
    if case.get("back"):
        assert CONVERTER.convert(new, case["from"]["apiVersion"]) == {"metadata": {}, **case["from"]} or (
            CONVERTER.convert(new, case["from"]["apiVersion"]) == case["from"]
        )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_migrated_manifest_is_not_migrated_further(case: Json) -> None:
    there = CONVERTER.convert(copy.deepcopy(case["from"]), case["to"]["apiVersion"])
    assert CONVERTER.convert(there, case["to"]["apiVersion"]) == there


def test_every_version_that_is_gone_and_has_a_successor_has_a_conversion() -> None:
    diagnostics = Diagnostics()
    facts = dict(read_rules(KUBERNETES, diagnostics))
    assert list(diagnostics) == []
    known = {(c.spoke_kind, c.spoke): c for c in facts["conversions"]}
    removed = yaml.safe_load((KUBERNETES / "removed.yaml").read_text())["resources"]
    missing, disagreeing = [], []
    for entry in removed:
        if entry["kind"] in NO_OBJECTS or not entry.get("replacement"):
            continue
        conversion = known.get((entry["kind"], entry["api_version"]))
        if conversion is None:
            missing.append((entry["api_version"], entry["kind"]))
        elif conversion.removed_in != entry["removed"]:
            disagreeing.append((entry["api_version"], entry["kind"], conversion.removed_in, entry["removed"]))
    assert missing == []
    assert disagreeing == []


def test_what_changes_meaning_is_told() -> None:
    facts = dict(read_rules(KUBERNETES, Diagnostics()))
    notes = {(c.spoke_kind, c.spoke): " ".join(c.notes) for c in facts["conversions"]}
    assert "An empty spec.selector ({}) selects every pod" in notes["PodDisruptionBudget", "policy/v1beta1"]
    assert "no successor" in notes["PodSecurityPolicy", "extensions/v1beta1"]
    assert (
        "sideEffects is required"
        in notes["MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1beta1"]
    )
