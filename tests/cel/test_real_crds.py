"""Real CRDs: their rules are valid and cheap enough, and faults put into them are found as a server found them."""

from __future__ import annotations

from typing import Any

import pytest

from apimachinery.cel.environment import Environment
from apimachinery.cel.schemas.crd import check_schema
from apimachinery.cel.schemas.rule_checks import RULE_COST_LIMIT, rule_costs
from tests.cel.recordings import crd, crd_names, needs_shared, patched, verdicts

pytestmark = needs_shared


def schemas(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [v["schema"]["openAPIV3Schema"] for v in document["spec"]["versions"]]


def test_all_rules_of_real_crds_are_valid_and_within_their_costs() -> None:
    rules = 0
    for name in crd_names():
        for schema in schemas(crd(name)):
            assert check_schema(schema) == [], name
            costs = rule_costs(schema, Environment.kubernetes("1.36"))
            assert all(c.cost <= RULE_COST_LIMIT for c in costs), name
            rules += len(costs)
    assert rules > 300


# kube-apiserver also judges the default beside the faulty rule and then leaves the rule alone.
BESIDE_A_DEFAULT = {"crossplane/deploymentruntimeconfigs.pkg.crossplane.io.yaml"}
MUTATIONS = [v for v in verdicts() if (v["mutation"] or "").startswith("cel-")] if crd_names() else []


@pytest.mark.parametrize("verdict", MUTATIONS, ids=lambda v: f"{v['mutation']} in {v['file']}")
def test_a_faulty_rule_gets_the_recorded_causes(verdict: dict[str, Any]) -> None:
    if verdict["file"] in BESIDE_A_DEFAULT:
        pytest.skip("the recorded answer is about the default beside the rule")
    causes = verdict["causes"] or []
    prefixes = {c["field"].partition("openAPIV3Schema")[0] + "openAPIV3Schema" for c in causes}
    wanted = sorted((c["field"], c["reason"], c["message"][:400]) for c in causes)
    got = []
    for index, schema in enumerate(schemas(patched(crd(verdict["file"]), verdict["patch"]))):
        prefix = f"spec.versions[{index}].schema.openAPIV3Schema"
        if prefixes and prefix not in prefixes:
            if index or "spec.validation.openAPIV3Schema" not in prefixes:
                continue
            prefix = "spec.validation.openAPIV3Schema"
        got += [(prefix + f.path, f.reason, f.message[:400]) for f in check_schema(schema, field=prefix)]
    assert sorted(got) == wanted
