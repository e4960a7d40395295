"""Admission policies, bound to a conversation's own namespace, and writes that they judge or change."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw import words
from tests.differential.draw.expressions import one_at_a_time
from tests.differential.draw.kinds import BY_KIND, CUSTOM, Kind
from tests.differential.draw.rest import delete_options
from tests.differential.draw.words import Dice, damaged

_PATH = "/apis/admissionregistration.k8s.io/v1"
_EXPRESSIONS = [
    "true", "false", "object.metadata.name != 'b'", "request.operation != 'DELETE'", "!has(object.metadata.labels) || !('a' in object.metadata.labels)",
    "object == null || !has(object.metadata.labels) || object.metadata.labels.all(k, object.metadata.labels[k] != '2')", "oldObject == null || oldObject.metadata.name == object.metadata.name",
    "request.userInfo.username == 'admin'", "request.namespace == namespaceObject.metadata.name", "size(request.name) < 3", "request.dryRun", "!request.dryRun", "variables.first", "variables.first || variables.second == 'x'",
    "object.metadata.labels.a == '1'", "has(request.options)", "authorizer.group('').resource('pods').namespace('other').check('get').allowed()", "request.resource.resource.startsWith('c')", "object.spec.replicas < 3", "has(object.data) && size(object.data) > 1",
    "object.metadata.annotations.exists(k, k.startsWith('n'))", "string(object.metadata.generation) == '1'", "request.subResource == ''", "object.kind == request.kind.kind", "oldObject != null",
]  # fmt: skip
_WRONG = ["", "object.", "1", "'x'", "nothing", "object.metadata.name", "variables.none", "params.x", "object.metadata.name ==", "size(3)", "true &&", "request.nothing"]  # fmt: skip
_MESSAGES = ["no", "", "two\nlines", "x" * 300, " padded "]
_MESSAGE_EXPRESSIONS = ["'no ' + request.name", "string(size(request.name))", "1", "'a\\nb'", "object.metadata.none", "''", "nothing"]  # fmt: skip
_REASONS = ["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge", "Other", ""]
_KINDS = [BY_KIND["ConfigMap"], BY_KIND["ConfigMap"], BY_KIND["Secret"], BY_KIND["Deployment"], CUSTOM[0]]
_RENAMING = "Object{metadata: Object.metadata{name: 'z'}}"
_OWN_NAMESPACE = {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}}
_APPLIED = [
    "Object{metadata: Object.metadata{labels: {'m': 'x'}}}", "Object{metadata: Object.metadata{annotations: {'m': object.metadata.name}}}", "Object{}", _RENAMING,
    "Object{nothing: 1}", "{}", "Object{metadata: Object.metadata{finalizers: ['example.com/m']}}",
]  # fmt: skip
_PATCHES = [
    "[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'p': 'q'}}]", "[JSONPatch{op: 'test', path: '/metadata/name', value: 'a'}]", "[JSONPatch{op: 'remove', path: '/metadata/none'}]",
    "[]", "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]", "'x'",
]  # fmt: skip


def draw(dice: Dice, name: str) -> Conversation:
    """A policy or two with their bindings, then writes."""
    kind = dice.one(_KINDS)
    steps: list[Step] = []
    for number in range(dice.choices([1, 2], [0.7, 0.3])[0]):
        mutating = dice.chance(0.25)
        plural = "mutatingadmissionpolicies" if mutating else "validatingadmissionpolicies"
        policy = _mutating(dice, kind) if mutating else _validating(dice, kind)
        policy["metadata"] = {"name": f"p{number}-{{own}}"}
        if dice.chance(0.12):
            policy = _bound(damaged(dice, policy, 1, keep=("metadata",)))
        steps.append({"method": "POST", "path": f"{_PATH}/{plural}", "body": policy})
        bindings = plural.replace("policies", "policybindings")
        steps.append(
            {"method": "POST", "path": f"{_PATH}/{bindings}", "body": _binding(dice, number, mutating)}
        )
    one_at_a_time(steps)
    # An apply that a policy renames is stored under two names by kube-apiserver (docs/fidelity.md).
    renames = any(_RENAMING in json.dumps(step) for step in steps)
    steps.append({"sleep": 2.2})  # until a kube-apiserver has noticed
    steps += [_write(dice, kind, applies=not renames) for _ in range(dice.randint(6, 10))]
    return Conversation("policy", name, steps, [kind.crd] if kind.crd else [])


def _bound(policy: Any) -> Any:
    """A damaged policy, still about its conversation's namespace alone: the others must not meet it."""
    spec = policy.get("spec")
    constraints = spec.get("matchConstraints") if isinstance(spec, dict) else None
    if isinstance(constraints, dict):
        constraints["namespaceSelector"] = _OWN_NAMESPACE
    return policy


def _rules(dice: Dice, kind: Kind) -> dict[str, Any]:
    group = "" if kind.path == "/api/v1" else kind.path.split("/")[2]
    rule: dict[str, Any] = {
        "apiGroups": dice.one([[group], [group], ["*"]]),
        "apiVersions": dice.one([["*"], [kind.path.rpartition("/")[2]], ["v9"]]) if dice.chance(0.3) else ["*"],
        "operations": dice.one([["CREATE", "UPDATE", "DELETE"], ["*"], ["CREATE"], ["UPDATE", "DELETE"], ["CREATE", "UPDATE"]]),
        "resources": dice.one([[kind.plural], [kind.plural, f"{kind.plural}/status"], ["*"], ["*/*"], [f"{kind.plural}/*"]]),
    }  # fmt: skip
    # A selector of namespaces lets all objects of cluster scope pass, those of others too.
    rule["scope"] = "Namespaced"
    if dice.chance(0.15):
        rule["resourceNames"] = ["a"]
    found: dict[str, Any] = {
        "resourceRules": [rule],
        "namespaceSelector": _OWN_NAMESPACE,
    }
    if dice.chance(0.2):
        found["objectSelector"] = {"matchLabels": {"a": "1"}}
    if dice.chance(0.15):
        found["excludeResourceRules"] = [{**rule, "operations": ["DELETE"]}]
    return found


def _common(dice: Dice, kind: Kind) -> dict[str, Any]:
    spec: dict[str, Any] = {"matchConstraints": _rules(dice, kind)}
    if dice.chance(0.6):
        spec["variables"] = [
            {"name": "first", "expression": dice.one(_EXPRESSIONS[:8])},
            {"name": "second", "expression": dice.one(["'x'", "object.metadata.name", "variables.first ? 'x' : 'y'"])},
        ]  # fmt: skip
    if dice.chance(0.4):
        spec["failurePolicy"] = dice.one(["Fail", "Ignore"])
    if dice.chance(0.25):
        condition = _WRONG if dice.chance(0.1) else _EXPRESSIONS[:12]
        spec["matchConditions"] = [{"name": "c", "expression": dice.one(condition)}]
    return spec


def _validating(dice: Dice, kind: Kind) -> dict[str, Any]:
    spec = _common(dice, kind)
    spec["validations"] = []
    for _ in range(dice.randint(1, 3)):
        one: dict[str, Any] = {"expression": dice.one(_WRONG if dice.chance(0.06) else _EXPRESSIONS)}
        if dice.chance(0.5):
            one["message"] = dice.one(_MESSAGES)
        if dice.chance(0.35):
            one["messageExpression"] = dice.one(_MESSAGE_EXPRESSIONS)
        if dice.chance(0.35):
            one["reason"] = dice.one(_REASONS)
        spec["validations"].append(one)
    if dice.chance(0.2):
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": dice.one(["'v'", "null", "1"])}]
    return {
        "kind": "ValidatingAdmissionPolicy",
        "apiVersion": "admissionregistration.k8s.io/v1",
        "spec": spec,
    }


def _mutating(dice: Dice, kind: Kind) -> dict[str, Any]:
    spec = _common(dice, kind)
    spec["reinvocationPolicy"] = dice.one(["Never", "IfNeeded"])
    if dice.chance(0.6):
        spec["mutations"] = [
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": dice.one(_APPLIED)}}
        ]
    else:
        spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": dice.one(_PATCHES)}}]
    return {"kind": "MutatingAdmissionPolicy", "apiVersion": "admissionregistration.k8s.io/v1", "spec": spec}


def _binding(dice: Dice, number: int, mutating: bool) -> dict[str, Any]:
    spec: dict[str, Any] = {"policyName": f"p{number}-{{own}}" if dice.chance(0.95) else "none-{own}"}
    if not mutating:
        spec["validationActions"] = dice.one(
            [
                ["Deny"],
                ["Deny"],
                ["Warn"],
                ["Audit"],
                ["Deny", "Audit"],
                ["Warn", "Audit"],
                ["Deny", "Warn"],
                [],
            ]
        )
    if dice.chance(0.2):
        spec["matchResources"] = {"objectSelector": {"matchExpressions": [{"key": "b", "operator": dice.one(["Exists", "DoesNotExist"])}]}}  # fmt: skip
    kind = "MutatingAdmissionPolicyBinding" if mutating else "ValidatingAdmissionPolicyBinding"
    return {
        "kind": kind,
        "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": f"b{number}-{{own}}"},
        "spec": spec,
    }


def _write(dice: Dice, kind: Kind, *, applies: bool = True) -> Step:
    name = dice.one(["a", "a", "b", "long"])
    how = dice.choices(["post", "put", "merge", "apply", "delete", "status"], [34, 14, 18, 14, 16, 4])[0]
    how = "post" if how == "apply" and not applies else how
    body: Any = kind.make(dice, name)
    step: Step = {"method": "POST", "path": kind.collection(), "body": body}
    if how == "put":
        step = {"method": "PUT", "path": kind.item(name), "body": body}
    elif how in ("merge", "status"):
        body = {"metadata": {"labels": dice.one([{"a": "1"}, {"a": "2"}, {"b": "x"}])}}
        step = {
            "method": "PATCH",
            "path": kind.item(name) + ("/status" if how == "status" else ""),
            "body": body,
        }
        step["headers"] = {"Content-Type": words.PATCH_TYPES["merge"]}
    elif how == "apply":
        step = {"method": "PATCH", "path": kind.item(name), "body": body, "query": {"fieldManager": "m1"}}
        step["headers"] = {"Content-Type": words.PATCH_TYPES["apply"]}
    elif how == "delete":
        step = {"method": "DELETE", "path": kind.item(name)}
        if dice.chance(0.3):
            step["body"] = delete_options(dice)
    if dice.chance(0.15):
        step.setdefault("query", {})["dryRun"] = "All"
    return step
