"""Audit policies: which rule matches, and what is said of a file that is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.access.authorization import Attributes
from apimachinery.http.messages import User
from apimachinery.server.operate.audit.policy import (
    LEVELS,
    AuditLevel,
    AuditPolicy,
    PolicyError,
    parse_policy,
)

TABLE: list[Any] = yaml.load((Path(__file__).parent / "audit_policies.yaml").read_text(), yaml.CSafeLoader)
HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def made(policy: dict[str, Any]) -> AuditPolicy:
    text = yaml.safe_dump({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", **policy})
    return parse_policy(text, "policy.yaml")


@pytest.mark.parametrize(
    ("policy", "ask"),
    [(entry["policy"], ask) for entry in TABLE for ask in entry["asks"]],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, list) else "",
)
def test_levels(policy, ask):
    name, groups, verb, what, namespace, called, level = ask
    user = User(name, groups=tuple(groups))
    if namespace == "path":
        attributes = Attributes(user, verb, path=what, is_resource=False)
    else:
        group, _, rest = what.partition("/")
        resource, _, subresource = rest.partition("/")
        attributes = Attributes(user, verb, namespace, group, "v1", resource, subresource, called)
    assert made(policy).kept(user, attributes).level is LEVELS.get(level or "None", AuditLevel.NONE)


def test_stages_and_managed_fields_of_the_policy_hold_for_every_rule_that_says_nothing_else():
    policy = made(
        {
            "omitStages": ["RequestReceived"],
            "omitManagedFields": True,
            "rules": [
                {"level": "Metadata", "users": ["ann"], "omitStages": ["Panic"], "omitManagedFields": False},
                {"level": "Metadata"},
            ],
        }
    )
    asked = Attributes(User("ann"), "get", path="/x", is_resource=False)
    kept = policy.kept(User("ann"), asked)
    assert kept.omitted_stages == {"RequestReceived", "Panic"} and not kept.omit_managed_fields
    kept = policy.kept(User("bob"), asked)
    assert kept.omitted_stages == {"RequestReceived"} and kept.omit_managed_fields


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a: [", ["policy.yaml:2: not YAML"]),
        ("[]", ["policy.yaml:1: an audit policy is an object"]),
        ("kind: Policy\n", ["policy.yaml:1: kind: is None, 'Policy'", "policy.yaml:1: rules: there is no rule"]),
        (HEAD + "rules:\n- level: Loud\n", ["policy.yaml:4: rules[0].level: 'Loud' is no level; use None, Metadata"]),
        (HEAD + "rules:\n- level: None\n- levle: None\n", [
            "policy.yaml:5: rules[1].levle: no such field; there are level",
            "policy.yaml:5: rules[1].level: None is no level",
        ]),
        (HEAD + "rules:\n- level: None\n  omitStages: [Never]\n", [
            "policy.yaml:5: rules[0].omitStages[0]: 'Never' is no stage; use RequestReceived",
        ]),
        (HEAD + "rules:\n- level: None\n  nonResourceURLs:\n  - /a*b\n  - x\n", [
            "policy.yaml:6: rules[0].nonResourceURLs[0]: '/a*b'",
            "policy.yaml:7: rules[0].nonResourceURLs[1]: 'x'",
        ]),
        (HEAD + "rules:\n- level: None\n  nonResourceURLs: [/a]\n  namespaces: [b]\n", [
            "policy.yaml:5: rules[0].nonResourceURLs: a rule is about paths or about resources, not both",
        ]),
        (HEAD + "rules:\n- level: None\n  resources:\n  - group: apps/v1\n", [
            "policy.yaml:6: rules[0].resources[0].group: 'apps/v1' is no group; leave out the version",
        ]),
        (HEAD + "rules:\n- level: None\n  resources:\n  - resourceNames: [a]\n", [
            "policy.yaml:6: rules[0].resources[0].resourceNames: names are of resources",
        ]),
        (HEAD + "rules: {}\n", ["policy.yaml:3: rules: is no list", "policy.yaml:3: rules: there is no rule"]),
        (HEAD + "rules: [1]\n", ["policy.yaml:3: rules[0]: a rule is an object"]),
        (HEAD + "rules: [{level: None, users: [1]}]\n", ["policy.yaml:3: rules[0].users[0]: 1 is no text"]),
        (HEAD + "omitManagedFields: maybe\nrules: [{level: None}]\n", ["policy.yaml:3: omitManagedFields: 'maybe'"]),
    ],
)  # fmt: skip
def test_what_is_no_policy_is_said_with_its_place(text, faults):
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "policy.yaml")
    lines = str(caught.value).splitlines()
    assert len(lines) == len(faults)
    for line, fault in zip(lines, faults, strict=True):
        assert line.startswith(fault)


def test_a_policy_that_keeps_secrets_is_said():
    shown = list(made({"rules": [{"level": "RequestResponse"}]}).exposures())
    assert [text.split(" of ")[1] for text in shown] == ["secrets", "serviceaccounts/token", "tokenreviews"]
    assert all(text.startswith("rules[0] ") for text in shown)
    guarded = {
        "rules": [
            {"level": "Metadata", "resources": [{"resources": ["secrets", "serviceaccounts/token"]},
                                                 {"group": "authentication.k8s.io"}]},
            {"level": "RequestResponse"},
        ]
    }  # fmt: skip
    assert list(made(guarded).exposures()) == []
