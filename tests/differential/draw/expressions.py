"""Admission policies with random expressions, and writes that meet them: CEL over several kinds, parameters, matches.

A policy is about its conversation's namespace alone. The reference takes a second or so until one is in force.
"""

from __future__ import annotations

from typing import Any

from tests.differential.conversation import Conversation, Step
from tests.differential.draw.words import PATCH_TYPES, Dice

A = "/apis/admissionregistration.k8s.io/v1"
SECONDS, PARAM_SECONDS = 2.2, 6.0
"""How long the reference takes until a policy, and until its parameters, are in force, with some to spare."""
Json = dict[str, Any]

MAPS = ("", "v1", "configmaps", "/api/v1/namespaces/{ns}/configmaps")
DEPLOYMENTS = ("apps", "v1", "deployments", "/apis/apps/v1/namespaces/{ns}/deployments")
ACCOUNTS = ("", "v1", "serviceaccounts", "/api/v1/namespaces/{ns}/serviceaccounts")
KINDS = [MAPS, MAPS, DEPLOYMENTS, ACCOUNTS]
NAMES = ["a", "b", "web-1", "x.y"]
LABELS: list[Json] = [{}, {"a": "1"}, {"a": "2", "b": "x"}, {"app": "web", "example.com/k": "v"}]


class Words:
    """Random expressions about objects of one kind; ``variables`` are those declared so far, by type."""

    def __init__(self, dice: Dice, plural: str, *, has_params: bool) -> None:
        self._dice = dice
        self._plural = plural
        self._has_params = has_params
        self.variables: list[tuple[str, str]] = []

    def _kept(self, of: str) -> list[str]:
        return [f"variables.{name}" for name, kind in self.variables if kind == of]

    def text(self, depth: int = 2) -> str:
        """A string."""
        dice = self._dice
        plain = [
            "object.metadata.name",
            "object.metadata.namespace",
            "request.operation",
            "request.name",
            "request.namespace",
            "request.userInfo.username",
            "request.kind.kind",
            "request.resource.resource",
            "object.metadata.?labels['a'].orValue('none')",
            "object.metadata.labels['a']",
            "object.metadata.labels.a",
            "object.metadata.?annotations[?'k'].orValue('')",
            "oldObject.metadata.name",
            "oldObject.?metadata.?labels.?b.orValue('old')",
            "namespaceObject.metadata.name",
            "object.kind",
            "object.apiVersion",
            "'a'",
            "'web-1'",
            "''",
            "'é'",
            *self._kept("text"),
        ]
        if self._has_params:
            plain += ["params.data.k", "params.metadata.name", "params.?data.?k.orValue('p')"] * 2
        if self._plural == "configmaps":
            plain += [
                "object.data.x",
                "object.data['y']",
                "object.?data.?x.orValue('')",
                "oldObject.data.x",
            ] * 2
        if self._plural == "deployments":
            plain += [
                "object.spec.template.spec.containers[0].image",
                "object.spec.template.spec.containers[0].?name.orValue('')",
                "object.spec.strategy.type",
                "object.spec.selector.matchLabels.app",
            ]
        if depth <= 0 or dice.chance(0.45):
            return dice.one(plain)
        one, other = self.text(depth - 1), self.text(depth - 1)
        return dice.one(
            [
                f"({one} + {other})",
                f"{one}.lowerAscii()",
                f"{one}.upperAscii()",
                f"{one}.replace('a', 'b')",
                f"{one}.trim()",
                f"{one}.substring(1)",
                f"{one}.charAt(0)",
                f"({self.truth(depth - 1)} ? {one} : {other})",
                f"string({self.number(depth - 1)})",
                f"[{one}, {other}].join('-')",
                f"'%s/%d'.format([{one}, {self.number(depth - 1)}])",
                f"{one}.split('-')[0]",
                f"string(type({one}))" if dice.chance(0.02) else f"[{one}, {other}].sort()[0]",
            ]
        )

    def number(self, depth: int = 2) -> str:
        """An int."""
        dice = self._dice
        plain = [
            "0",
            "1",
            "3",
            "-2",
            "size(object.metadata.name)",
            "object.metadata.generation",
            *self._kept("number"),
        ]
        if self._plural == "deployments":
            plain += ["object.spec.replicas", "oldObject.spec.replicas", "object.status.replicas"] * 2
            plain += ["object.spec.template.spec.containers.size()", "object.spec.minReadySeconds"]
        if depth <= 0 or dice.chance(0.5):
            return dice.one(plain)
        one, other = self.number(depth - 1), self.number(depth - 1)
        return dice.one(
            [
                f"({one} {dice.one(['+', '-', '*', '/', '%'])} {other})",
                f"size({self.text(depth - 1)})",
                f"{self.text(depth - 1)}.indexOf('a')",
                f"int({self.text(depth - 1)})",
                f"({self.truth(depth - 1)} ? {one} : {other})",
                f"[{one}, {other}].max()",
                f"[{one}, {other}].sum()",
                f"{self.texts(depth - 1)}.size()",
                f"-({one})",
            ]
        )

    def texts(self, depth: int = 1) -> str:
        """A list of strings."""
        dice = self._dice
        plain = [
            "['a', 'b', 'web-1']",
            "[]",
            "request.userInfo.groups",
            "object.metadata.finalizers",
            "object.metadata.?finalizers.orValue([])",
            *self._kept("texts"),
        ]
        if self._plural == "deployments":
            plain += ["object.spec.template.spec.containers.map(c, c.image)", "object.spec.template.spec.containers.map(c, c.?command.orValue(['x'])[0])"]  # fmt: skip
        if self._plural == "configmaps":
            # Sorted: kube-apiserver walks maps in random order (docs/fidelity.md).
            plain += [
                "object.data.map(k, k).sort()",
                "object.?data.orValue({}).map(k, object.data[k]).sort()",
            ]
        if depth <= 0 or dice.chance(0.5):
            return dice.one(plain)
        return dice.one(
            [
                f"{self.texts(depth - 1)}.filter(e, e {dice.one(['==', '!=', '<', '>='])} {self.text(0)})",
                f"{self.texts(depth - 1)}.map(e, e + {self.text(0)})",
                f"{self.text(depth - 1)}.split('{dice.one(['-', '.', ''])}')",
                f"({self.texts(depth - 1)} + {self.texts(depth - 1)})",
                f"{self.texts(depth - 1)}.sort()"
                if dice.chance(0.2)
                else f"[{self.text(0)}, {self.text(0)}]",
            ]
        )

    def truth(self, depth: int = 2) -> str:
        """A bool."""
        dice = self._dice
        plain = [
            "true",
            "false",
            "has(object.metadata.labels)",
            "has(object.metadata.labels.a)",
            "has(oldObject.metadata)" if dice.chance(0.3) else "oldObject == null",
            "object == null",
            "request.dryRun",
            "'system:masters' in request.userInfo.groups",
            "'a' in object.metadata.labels",
            f"authorizer.group('').resource('pods').namespace(request.namespace).check('{dice.one(['get', 'x'])}').allowed()",
            "authorizer.requestResource.check('update').allowed()",
            "has(request.subResource)",
            *self._kept("truth"),
        ]
        if self._plural == "configmaps":
            plain += ["has(object.data)", "'x' in object.data", "object.immutable", "has(object.data.y)"]
        if self._has_params:
            plain += ["params == null", "has(params.data)", "params.data.flag == 'on'"]
        if depth <= 0 or dice.chance(0.25):
            return dice.one(plain)
        below = depth - 1
        order = dice.one(["==", "!=", "<", "<=", ">", ">="])
        return dice.one(
            [
                f"({self.truth(below)} {dice.one(['&&', '||'])} {self.truth(below)})",
                f"!({self.truth(below)})",
                f"({self.text(below)} {order} {self.text(below)})",
                f"({self.number(below)} {order} {self.number(below)})",
                f"({self.text(below)}.startsWith({self.text(below)}))",
                f"{self.text(below)}.matches('{dice.one(['^[a-z]+$', '^a', '[0-9]', '(a|b)*c?'])}')",
                f"{self.text(below)}.contains({self.text(0)})",
                f"{self.text(below)} in {self.texts(below)}",
                f"{self.texts(below)}.{dice.one(['all', 'exists', 'exists_one'])}(e, e {order} {self.text(0)})",
                f"({self.truth(below)} ? {self.truth(below)} : {self.truth(below)})",
                f"{self.texts(below)} == {self.texts(below)}",
                f"sets.contains({self.texts(below)}, {self.texts(0)})",
                f"{self.text(below)} == {self.number(0)}"
                if dice.chance(0.02)
                else f"isSorted({self.texts(0)})"
                if dice.chance(0.02)
                else f"{self.texts(0)}.isSorted()",
                f"quantity('{dice.one(['1', '100m', '1Gi', 'x'])}').isGreaterThan(quantity('1'))",
                f"format.dns1123Label().validate({self.text(0)}).hasValue()",
            ]
        )


def draw(dice: Dice, name: str) -> Conversation:
    """One or two policies, then writes."""
    steps: list[Step] = []
    ends: list[Step] = []
    kind = dice.one(KINDS)
    params = dice.chance(0.35)
    if params:
        for each in ("p1", "p2")[: dice.randint(1, 2)]:
            data = {"k": dice.one(["a", "1", "web-1"]), "flag": dice.one(["on", "off"])}
            if dice.chance(0.2):
                del data["k"]
            labels = dice.one(LABELS)
            body = {"metadata": {"name": each, "labels": {**labels, "param": "yes"}}, "data": data}
            steps.append({"method": "POST", "path": MAPS[3], "body": body})
    for number in range(1 if dice.chance(0.7) else 2):
        _policy(dice, kind, f"{name}-{number}-{{run}}", params, steps, ends)
    one_at_a_time(steps)
    steps.append({"sleep": PARAM_SECONDS if params else SECONDS})
    steps += [_write(dice, dice.one([kind, kind, kind, MAPS])) for _ in range(dice.randint(10, 18))]
    return Conversation("expressions", name, steps + ends)


def one_at_a_time(steps: list[Step]) -> None:
    """Lets two policies of the same sort be about different operations, where there are two: kube-apiserver asks them in
    random order (docs/fidelity.md), and the first that refuses decides."""
    policies = [step for step in steps if str(step.get("path", "")).endswith("policies")]
    if len({step["path"] for step in policies}) != 1 or len(policies) != 2:
        return
    for step, operations in zip(policies, (["CREATE"], ["UPDATE", "DELETE"]), strict=True):
        if "mutating" in step["path"]:
            operations = operations[:1]
        for rule in _rules(step["body"]):
            rule["operations"] = operations


def _rules(policy: Json) -> list[Json]:
    """The rules of a policy, of which parts may be damaged."""
    found: Any = policy
    for key in ("spec", "matchConstraints", "resourceRules"):
        found = found.get(key) if isinstance(found, dict) else None
    rules = found if isinstance(found, list) else []
    return [rule for rule in rules if isinstance(rule, dict) and isinstance(rule.get("operations"), list)]


def _policy(
    dice: Dice, kind: tuple[str, str, str, str], name: str, params: bool, steps: list[Step], ends: list[Step]
) -> None:
    mutates = dice.chance(0.3)
    words = Words(dice, kind[2], has_params=params)
    spec: Json = {"matchConstraints": _constraints(dice, kind, mutates=mutates)}
    if dice.chance(0.4):
        spec["failurePolicy"] = dice.one(["Fail", "Ignore"])
    if params:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
    if dice.chance(0.5):
        spec["variables"] = []
        for variable in ("v", "w")[: dice.randint(1, 2)]:
            of = dice.one(["text", "number", "truth", "texts"])
            spec["variables"].append({"name": variable, "expression": getattr(words, of)(2)})
            words.variables.append((variable, of))
    conditions = Words(dice, kind[2], has_params=params)
    if dice.chance(0.3):
        spec["matchConditions"] = [
            {"name": f"c{number}", "expression": conditions.truth(2)} for number in range(dice.randint(1, 2))
        ]
    if mutates:
        spec["reinvocationPolicy"] = dice.one(["Never", "IfNeeded"])
        spec["mutations"] = [_mutation(dice, words, kind[2]) for _ in range(dice.randint(1, 2))]
    else:
        spec["validations"] = [_validation(dice, words) for _ in range(dice.randint(1, 3))]
        if dice.chance(0.15):
            spec["auditAnnotations"] = [{"key": "k", "valueExpression": words.text(1)}]
    binding: Json = {"policyName": name}
    if not mutates:
        binding["validationActions"] = dice.one([["Deny"], ["Deny"], ["Deny"], ["Warn"], ["Audit"], ["Deny", "Audit"], ["Warn", "Audit"]])  # fmt: skip
    if params:
        reference: Json = {"parameterNotFoundAction": dice.one(["Allow", "Deny"])}
        if dice.chance(0.6):
            reference["name"] = dice.one(["p1", "p1", "p2", "none"])
        else:
            reference["selector"] = dice.one(
                [{"matchLabels": {"param": "yes"}}, {"matchLabels": {"param": "no"}}]
            )
        binding["paramRef"] = reference
    plural = "mutatingadmission" if mutates else "validatingadmission"
    for path, body in ((f"{A}/{plural}policies", spec), (f"{A}/{plural}policybindings", binding)):
        steps.append({"method": "POST", "path": path, "body": {"metadata": {"name": name}, "spec": body}})
        ends.append({"method": "DELETE", "path": f"{path}/{name}", "quiet": True})


def _constraints(dice: Dice, kind: tuple[str, str, str, str], *, mutates: bool) -> Json:
    resources = [kind[2]]
    if kind is DEPLOYMENTS and dice.chance(0.4):
        resources.append(dice.one(["deployments/scale", "deployments/status", "deployments/*"]))
    if dice.chance(0.1):
        resources = ["*"]
    every = ["CREATE", "UPDATE"] if mutates else ["CREATE", "UPDATE", "DELETE", "*"]
    rule: Json = {
        "apiGroups": [dice.one([kind[0], kind[0], kind[0], "*"])],
        "apiVersions": [dice.one(["v1", "v1", "*"])],
        "operations": dice.one([["CREATE", "UPDATE"], ["CREATE", "UPDATE"], [dice.one(every)]]),
        "resources": resources,
    }
    # Others' objects of cluster scope, which no namespace selector leaves out, must not meet these policies.
    rule["scope"] = "Namespaced"
    if dice.chance(0.1):
        rule["resourceNames"] = dice.some(NAMES, 1, 2)
    stated: Json = {
        "resourceRules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "{ns}"}},
    }
    if dice.chance(0.15):
        stated["objectSelector"] = {"matchLabels": {"a": dice.one(["1", "2"])}}
    if dice.chance(0.1):
        stated["excludeResourceRules"] = [{**rule, "operations": [dice.one(["CREATE", "UPDATE"])]}]
    if dice.chance(0.2):
        stated["matchPolicy"] = dice.one(["Exact", "Equivalent"])
    return stated


def _validation(dice: Dice, words: Words) -> Json:
    found: Json = {"expression": words.truth(3)}
    if dice.chance(0.4):
        found["message"] = dice.one(["no", " spaced ", "é"])
    if dice.chance(0.4):
        found["messageExpression"] = words.text(2)
    if dice.chance(0.3):
        found["reason"] = dice.one(["Unauthorized", "Forbidden", "Invalid", "RequestEntityTooLarge"])
    return found


def _mutation(dice: Dice, words: Words, plural: str) -> Json:
    if dice.chance(0.5):
        fields = [
            f"metadata: Object.metadata{{labels: {{'m': {words.text(0)}}}}}",
            f"metadata: Object.metadata{{annotations: {{'k': {words.text(1)}}}}}",
        ]
        if plural == "configmaps":
            fields.append(f"data: {{'added': {words.text(1)}}}")
        if plural == "deployments":
            fields.append(f"spec: Object.spec{{replicas: {words.number(1)}}}")
        return {
            "patchType": "ApplyConfiguration",
            "applyConfiguration": {"expression": f"Object{{{dice.one(fields)}}}"},
        }
    operations = [
        f"JSONPatch{{op: 'add', path: '/metadata/labels', value: {{'p': {words.text(0)}}}}}",
        f"JSONPatch{{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('a/b'), value: {words.text(0)}}}",
        "JSONPatch{op: 'test', path: '/metadata/name', value: 'a'}",
        "JSONPatch{op: 'remove', path: '/metadata/labels/a'}",
    ]
    if plural == "configmaps":
        operations.append(f"JSONPatch{{op: 'replace', path: '/data/x', value: {words.text(1)}}}")
    chosen = ", ".join(dice.some(operations, 1, 2))
    condition = f"{words.truth(1)} ? [{chosen}] : []" if dice.chance(0.4) else f"[{chosen}]"
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": condition}}


def _write(dice: Dice, kind: tuple[str, str, str, str]) -> Step:
    path, name = kind[3], dice.one(NAMES)
    step: Step
    match dice.choices(["create", "put", "patch", "delete", "scale", "status"], [40, 15, 25, 8, 6, 4])[0]:
        case "create":
            step = {"method": "POST", "path": path, "body": _object(dice, kind, name)}
        case "put":
            step = {"method": "PUT", "path": f"{path}/{name}", "body": _object(dice, kind, name)}
        case "delete":
            step = {"method": "DELETE", "path": f"{path}/{name}"}
        case "scale" | "status" as sub if kind is DEPLOYMENTS:
            body: Json = (
                {"spec": {"replicas": dice.randint(0, 4)}} if sub == "scale" else {"status": {"replicas": 2}}
            )
            step = _patch(f"{path}/{name}/{sub}", body)
        case _:
            body = {"metadata": {"labels": dice.one([*LABELS, {"a": None}])}}
            if kind is MAPS:
                body["data"] = {"x": dice.one(["a", "1", None])}
            step = _patch(f"{path}/{name}", body)
    if dice.chance(0.1):
        step["query"] = {"dryRun": "All"}
    return step


def _patch(path: str, body: Json) -> Step:
    return {"method": "PATCH", "path": path, "body": body, "headers": {"Content-Type": PATCH_TYPES["merge"]}}


def _object(dice: Dice, kind: tuple[str, str, str, str], name: str) -> Json:
    metadata: Json = {"name": name}
    if labels := dice.one(LABELS):
        metadata["labels"] = labels
    if dice.chance(0.2):
        metadata["annotations"] = {"k": dice.one(["v", ""])}
    if kind is DEPLOYMENTS:
        image = {"name": "c", "image": dice.one(["nginx", "nginx:1", "web-1"])}
        if dice.chance(0.3):
            image["command"] = ["x"]
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [image]}}
        spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
        if dice.chance(0.7):
            spec["replicas"] = dice.randint(0, 4)
        return {"metadata": metadata, "spec": spec}
    if kind is MAPS and dice.chance(0.85):
        keys = dice.some(["x", "y", "z"], 1, 3)
        return {"metadata": metadata, "data": {key: dice.one(["a", "1", "web-1", "é", ""]) for key in keys}}
    return {"metadata": metadata}
