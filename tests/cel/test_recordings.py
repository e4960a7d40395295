"""kube-apiserver's answers about rules, computed without a server: 100 % of causes, in order."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from apimachinery.cel.schemas.crd import CompiledRules, check_schema, compile_rules
from apimachinery.cel.schemas.findings import RuleViolation
from tests.cel.recordings import SHARED, needs_shared, scenario

pytestmark = needs_shared
FILES = [
    *sorted((SHARED / "parity/scenarios/policy").glob("cel-*.yaml")),
    SHARED / "parity/scenarios/crd/cel-basic.yaml",
]
PREFIX = "spec.validation.openAPIV3Schema"

# Steps whose answer hangs on what a server does before the rules: defaults, names; or that recorded no causes.
BEYOND_RULES = {
    "has: one of two, c by default",
    "has: both",
    "a rule on metadata.name sees a generated name",
    "two rules at two places (order may vary)",
}


def cause(violation: RuleViolation) -> tuple[str, str, str]:
    shown = (
        "" if isinstance(violation.value, (dict, list)) else json.dumps(violation.value, ensure_ascii=False)
    )
    text = {
        "FieldValueInvalid": "Invalid value: " + (shown + ": " if shown else "") + violation.detail,
        "FieldValueForbidden": f"Forbidden: {violation.detail}",
        "FieldValueRequired": f"Required value: {violation.detail}",
        "FieldValueDuplicate": "Duplicate value" + (": " + shown if shown else ""),
    }[violation.reason]
    return violation.field or "<nil>", violation.reason, text


def causes(step: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = (step["expect"].get("body") or {}).get("details") or {}
    return [(c["field"], c["reason"], c["message"]) for c in found.get("causes", [])]


def is_crd(body: Any) -> bool:
    return isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recorded_conversation(path: Path) -> None:
    rules: CompiledRules | None = None
    different: list[Any] = []
    for step in scenario(path):
        body: Any = step.get("body")
        expect = step.get("expect")
        if is_crd(body):
            schema = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
            faults = [(PREFIX + f.path, f.reason, f.message) for f in check_schema(schema, field=PREFIX)]
            if faults != (causes(step) if expect else []):
                different.append((step.get("id"), faults))
            rules = compile_rules(schema)
        elif rules is not None and expect and step["method"] == "POST" and expect["status"] in (201, 422):
            wanted = causes(step)
            if step.get("id") in BEYOND_RULES or any("hecked" in c[2] for c in wanted):
                continue
            got = [cause(v) for v in rules.validate(body).violations]
            if got != wanted:
                different.append((step.get("id"), got, wanted))
    assert different == []


def test_transitions_follow_the_recorded_object() -> None:
    """Merge patches of one conversation, replayed on the object as it was answered before."""
    rules: CompiledRules | None = None
    current: dict[str, dict[str, Any]] = {}
    compared = 0
    for step in scenario(SHARED / "parity/scenarios/policy/cel-transitions.yaml"):
        body: Any = step.get("body")
        expect = step.get("expect")
        if is_crd(body):
            rules = compile_rules(body["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
        if not expect or rules is None:
            continue
        if (
            expect["status"] in (200, 201)
            and isinstance(expect["body"], dict)
            and "metadata" in expect["body"]
        ):
            answered = expect["body"]
            key: str = (answered["metadata"] or {}).get("name", "")
            if step["method"] == "PATCH" and key in current and "apply" not in str(step.get("id")):
                compared += 1
                outcome = rules.validate(answered, current[key])
                assert outcome.violations == [], step.get("id")
            current[key] = answered
        elif expect["status"] == 422 and step["method"] == "PATCH" and isinstance(body, dict):
            key = step["path"].rsplit("/", 2)[-2 if step["path"].endswith("/status") else -1]
            old = current.get(key)
            if old is None or "apply" in str(step.get("id")):
                continue
            compared += 1
            got = [cause(v) for v in rules.validate(merged(old, body), old).violations]
            assert got == causes(step), step.get("id")
    assert compared >= 15


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
