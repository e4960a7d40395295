"""Admission policies: what is refused, warned about and changed, as conversations. Texts are kube-apiserver 1.36's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.server.test_api import CM, ask, serve

from apimachinery.http.messages import Request, User
from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

A = "/apis/admissionregistration.k8s.io/v1"
WHO = User("jane", groups=("devs",))


async def request(api: AssembledApi, method: str, path: str, body: Any = None, **headers: str) -> Any:
    status, shown, answered = await ask(api, method, path, body, headers, user=WHO)
    return status, shown, answered


def policy(name: str, **spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}]
    return {"metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": rules}, **spec}}


def bound(name: str, *actions: str, **spec: Any) -> dict[str, Any]:
    chosen = {"validationActions": list(actions)} if actions else {}
    return {"metadata": {"name": name}, "spec": {"policyName": name, **chosen, **spec}}


def validating(name: str, *validations: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    return f"{A}/validatingadmissionpolicies", policy(name, validations=list(validations), **spec)


def denies(name: str, *actions: str, **spec: Any) -> tuple[str, dict[str, Any]]:
    return f"{A}/validatingadmissionpolicybindings", bound(name, *(actions or ("Deny",)), **spec)


def mutating(name: str, *mutations: dict[str, Any], **spec: Any) -> tuple[str, dict[str, Any]]:
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps"],
        }
    ]
    whole = {
        "matchConstraints": {"resourceRules": rules},
        "mutations": list(mutations),
        "reinvocationPolicy": "Never",
    }
    return f"{A}/mutatingadmissionpolicies", {"metadata": {"name": name}, "spec": {**whole, **spec}}


def applies(name: str) -> tuple[str, dict[str, Any]]:
    return f"{A}/mutatingadmissionpolicybindings", bound(name)


def patch(expression: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def configuration(expression: str) -> dict[str, Any]:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


SAID = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: "
CONFIG = {"metadata": {"name": "a", "labels": {"k": "v"}}, "data": {"x": "1"}}
Made = list[tuple[str, dict[str, Any]]]

# what is made first; then the create of CONFIG: its code, and the text of its refusal or its warning
CASES: dict[str, tuple[Made, int, str]] = {
    "a policy without a binding does nothing": ([validating("p", {"expression": "false"})], 201, ""),
    "the expression is shown": (
        [validating("p", {"expression": "object.data.x == '2'"}), denies("p")],
        422,
        SAID + "failed expression: object.data.x == '2'",
    ),
    "a reason gives the code": (
        [validating("p", {"expression": "false", "message": "no", "reason": "Forbidden"}), denies("p")],
        403,
        SAID + "no",
    ),
    "a message is computed": (
        [
            validating(
                "p",
                {"expression": "false", "messageExpression": "request.userInfo.username + ' ' + variables.v"},
                variables=[{"name": "v", "expression": "'x' + object.data.x"}],
            ),
            denies("p"),
        ],
        422,
        SAID + "jane x1",
    ),
    "an error denies": (
        [validating("p", {"expression": "object.data.y == '2'"}), denies("p")],
        422,
        SAID + "expression 'object.data.y == '2'' resulted in error: no such key: y",
    ),
    "an error is ignored where the policy says so": (
        [validating("p", {"expression": "object.data.y == '2'"}, failurePolicy="Ignore"), denies("p")],
        201,
        "",
    ),
    "a variable fails": (
        [
            validating(
                "p",
                {"expression": "variables.v == '1'"},
                variables=[{"name": "v", "expression": "object.data.y"}],
            ),
            denies("p"),
        ],
        422,
        SAID
        + "expression 'variables.v == '1'' resulted in error: composited variable \"v\" fails to evaluate: "
        "no such key: y",
    ),
    "a variable may be null": (
        [
            validating(
                "p",
                {
                    "expression": "variables.v != null || has(variables.v) && variables.v == null && variables.w == 'd'"
                },
                {"expression": "variables.v != null"},
                variables=[
                    {"name": "v", "expression": "object.data.?y.orValue(null)"},
                    {"name": "w", "expression": "variables.?v.hasValue() ? 'd' : 'e'"},
                ],
            ),
            denies("p"),
        ],
        422,
        SAID + "failed expression: variables.v != null",
    ),
    "an audit annotation that cannot be computed denies, whatever the binding does": (
        [
            validating(
                "p",
                {"expression": "true"},
                auditAnnotations=[{"key": "k", "valueExpression": "object.data.y + ''"}],
            ),
            denies("p", "Audit"),
        ],
        422,
        SAID + "expression 'object.data.y + ''' resulted in error: no such key: y",
    ),
    "a condition that is false skips the policy": (
        [
            validating(
                "p",
                {"expression": "false"},
                matchConditions=[{"name": "c", "expression": "object.data.x == '2'"}],
            ),
            denies("p"),
        ],
        201,
        "",
    ),
    "a binding narrows": (
        [
            validating("p", {"expression": "false"}),
            denies("p", matchResources={"objectSelector": {"matchLabels": {"k": "w"}}}),
        ],
        201,
        "",
    ),
    "a warning is no refusal": (
        [validating("p", {"expression": "false", "message": "hm"}), denies("p", "Warn")],
        201,
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': hm",
    ),
    "params that are missing deny": (
        [
            validating("p", {"expression": "true"}, paramKind={"apiVersion": "v1", "kind": "Secret"}),
            denies("p", paramRef={"name": "s", "parameterNotFoundAction": "Deny"}),
        ],
        422,
        SAID
        + "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction",
    ),
    "a kind of params that there is not": (
        [
            validating("p", {"expression": "true"}, paramKind={"apiVersion": "x.y/v1", "kind": "Nope"}),
            denies("p", paramRef={"name": "s", "parameterNotFoundAction": "Deny"}),
        ],
        422,
        "ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced "
        "by paramKind: 'x.y/v1, Kind=Nope'",
    ),
    "a patch that cannot be done": (
        [mutating("p", patch("[JSONPatch{op: 'remove', path: '/data/none'}]")), applies("p")],
        403,
        "policy 'p' with binding 'p' denied request: JSON Patch: error in remove for path: '/data/none': Unable to "
        "remove nonexistent key: none: missing value",
    ),
}


def run(story: Callable[[AssembledApi], Any]) -> None:
    async def play() -> None:
        api = await serve()
        try:
            await story(api)
        finally:
            await api.stop()

    asyncio.run(play())


@pytest.mark.parametrize("name", CASES)
def test_policies(name: str) -> None:
    made, code, text = CASES[name]

    async def story(api: AssembledApi) -> None:
        for path, obj in made:
            status, shown, _ = await request(api, "POST", path, obj)
            assert status == 201, shown
        status, shown, headers = await request(api, "POST", CM, CONFIG)
        assert status == code
        if code == 201:
            assert text in headers.get("Warning", "")
        elif text.startswith("policy "):
            assert shown["message"] == text
        else:
            assert shown["message"] == f'configmaps "a" is forbidden: {text}'
            assert shown["details"]["causes"] == [{"message": text}]

    run(story)


MUTATIONS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "a patch adds": (
        [patch("[JSONPatch{op: 'add', path: '/data/y', value: object.data.x + '!'}]")],
        {"x": "1", "y": "1!"},
    ),
    "a test that fails skips the patch": (
        [
            patch(
                "[JSONPatch{op: 'test', path: '/data/x', value: '2'}, JSONPatch{op: 'remove', path: '/data/x'}]"
            )
        ],
        {"x": "1"},
    ),
    "mutations see what those before them made": (
        [
            patch("[JSONPatch{op: 'add', path: '/data/y', value: 'a'}]"),
            patch("[JSONPatch{op: 'add', path: '/data/z', value: object.data.y + 'b'}]"),
        ],
        {"x": "1", "y": "a", "z": "ab"},
    ),
    "a configuration is merged": ([configuration("Object{data: {'y': '2'}}")], {"x": "1", "y": "2"}),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations(name: str) -> None:
    mutations, data = MUTATIONS[name]

    async def story(api: AssembledApi) -> None:
        for path, obj in (mutating("m", *mutations), applies("m")):
            status, shown, _ = await request(api, "POST", path, obj)
            assert status == 201, shown
        status, shown, _ = await request(api, "POST", CM, CONFIG)
        assert (status, shown["data"]) == (201, data)

    run(story)


AGAIN = "Object{data: {'n': object.data.?n.orValue('') + '%s'}}"
LOST = "JSON Patch: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value"


def rounds(reinvocation: str, *expressions: str) -> Made:
    mutations = [configuration(AGAIN % each) for each in expressions]
    return [mutating("m", *mutations, reinvocationPolicy=reinvocation), applies("m")]


def renames(expression: str) -> Made:
    return [mutating("m", patch(f"[JSONPatch{{{expression}}}]")), applies("m")]


# what is made first; method and body of the write; its code, and the message or what the answer has
WRITES: dict[str, tuple[Made, str, int, Any]] = {
    "if needed is once more": (rounds("IfNeeded", "a", "b"), "POST", 201, {"data": {"x": "1", "n": "abab"}}),
    "never is once": (rounds("Never", "a"), "POST", 201, {"data": {"x": "1", "n": "a"}}),
    "a new object is renamed": (
        renames("op: 'replace', path: '/metadata/name', value: 'z'"),
        "POST",
        201,
        {"metadata": {"name": "z"}},
    ),
    "another namespace": (
        renames("op: 'replace', path: '/metadata/namespace', value: 'z'"),
        "POST",
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "no name": (
        renames("op: 'remove', path: '/metadata/name'"),
        "POST",
        422,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "a stored object is not renamed": (
        renames("op: 'replace', path: '/metadata/name', value: 'z'"),
        "PUT",
        422,
        'ConfigMap "z" is invalid: metadata.name: Invalid value: "z": field is immutable',
    ),
    "nor is its uid": (
        renames("op: 'add', path: '/metadata/uid', value: 'u'"),
        "PUT",
        422,
        'ConfigMap "a" is invalid: metadata.uid: Invalid value: "u": field is immutable',
    ),
    "another kind": (
        renames("op: 'replace', path: '/apiVersion', value: 'v2'"),
        "POST",
        500,
        'Internal error occurred: no kind "ConfigMap" is registered for version "v2" in scheme '
        '"pkg/api/legacyscheme/scheme.go:30"',
    ),
    "policies see their conditions once more in the second round": (
        [
            mutating(
                "m",
                patch("[JSONPatch{op: 'remove', path: '/metadata/labels/k'}]"),
                matchConditions=[{"name": "c", "expression": "object.metadata.labels.k == 'v'"}],
            ),
            applies("m"),
        ],
        "POST",
        403,
        "policy 'm' with binding 'm' denied request: expression 'object.metadata.labels.k == 'v'' resulted in error: "
        "no such key: labels",
    ),
    "which policies match is asked before any changes the object": (
        [
            mutating("m", patch("[JSONPatch{op: 'remove', path: '/metadata/labels'}]")),
            applies("m"),
            mutating("n", configuration("Object{data: {'matched': 'yes'}}")),
            (
                f"{A}/mutatingadmissionpolicybindings",
                bound("n", matchResources={"objectSelector": {"matchLabels": {"k": "v"}}}),
            ),
        ],
        "POST",
        201,
        {"data": {"x": "1", "matched": "yes"}},
    ),
    "parameters that are not there deny under Audit too": (
        [
            validating("p", {"expression": "true"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
            denies("p", "Audit", paramRef={"name": "none", "parameterNotFoundAction": "Deny"}),
        ],
        "POST",
        422,
        f'configmaps "a" is forbidden: {SAID}failed to configure binding: no params found for policy binding with '
        "`Deny` parameterNotFoundAction",
    ),
    "request.options": (
        [
            validating(
                "p",
                {
                    "expression": "request.options.kind == 'x'",
                    "messageExpression": "string(request.options.kind) + string(request.options.fieldManager)",
                },
            ),
            denies("p"),
        ],
        "POST",
        422,
        f'configmaps "a" is forbidden: {SAID}CreateOptionsme',
    ),
}


@pytest.mark.parametrize("about", WRITES)
def test_writes(about: str) -> None:
    made, method, code, wanted = WRITES[about]

    async def story(api: AssembledApi) -> None:
        if method == "PUT":
            assert (await request(api, "POST", CM, CONFIG))[0] == 201
        for path, obj in made:
            status, shown, _ = await request(api, "POST", path, obj)
            assert status == 201, shown
        path = f"{CM}/a" if method == "PUT" else CM
        status, shown, _ = await request(
            api, method, f"{path}?fieldManager=me", {**CONFIG, "data": {"x": "1"}}
        )
        if code == 201:
            assert (status, holds(shown, wanted)) == (code, True)
        else:
            assert (status, shown["message"]) == (code, wanted)

    run(story)


def holds(shown: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(holds(shown.get(key), value) for key, value in wanted.items())
    return bool(shown == wanted)


def test_all_mutations_that_fail_are_causes() -> None:
    async def story(api: AssembledApi) -> None:
        none = configuration("Object{data: {'y': object.data.none}}")
        removal = patch("[JSONPatch{op: 'remove', path: '/data/none'}]")
        for name, mutations in (
            ("m", [removal, none]),
            ("n", [none]),
            ("o", [configuration("Object{data: {'y': '1'}}")]),
        ):
            for path, obj in (mutating(name, *mutations), applies(name)):
                await request(api, "POST", path, obj)
        status, shown, _ = await request(api, "POST", CM, CONFIG)
        missing = (
            f"expression '{none['applyConfiguration']['expression']}' resulted in error: no such key: none"
        )
        causes = [
            f"policy '{name}' with binding '{name}' denied request: {why}"
            for name, why in (("m", LOST), ("m", missing), ("n", missing))
        ]
        assert (status, shown["reason"], shown["message"]) == (403, "Invalid", causes[0])
        assert [cause["message"] for cause in shown["details"]["causes"]] == causes

    run(story)


def test_audit_annotations_do_not_find_the_authorizer() -> None:
    asks = "authorizer.group('').resource('pods').check('get').reason()"

    async def story(api: AssembledApi) -> None:
        told = [{"key": "k", "valueExpression": asks}]
        made = validating("p", {"expression": "true"}, auditAnnotations=told)
        for path, obj in (made, denies("p", "Audit")):
            assert (await request(api, "POST", path, obj))[0] == 201
        status, shown, _ = await request(api, "POST", CM, CONFIG)
        assert (status, shown["message"]) == (
            422,
            f"configmaps \"a\" is forbidden: {SAID}expression '{asks}' resulted in error: no such attribute(s): "
            "authorizer",
        )

    run(story)


def test_messages_may_not_ask_the_authorizer() -> None:
    async def story(api: AssembledApi) -> None:
        asks = "authorizer.group('').resource('pods').check('get').reason()"
        for stated, code in (({"messageExpression": asks}, 422), ({"messageExpression": "variables.v"}, 201)):
            made = validating(
                "p", {"expression": "false", **stated}, variables=[{"name": "v", "expression": asks}]
            )
            status, shown, _ = await request(api, "POST", *made)
            assert status == code
            if code == 422:
                assert "undeclared reference to 'authorizer'" in shown["message"]

    run(story)


def test_a_deletion_meets_policies_and_a_collection_names_nobody() -> None:
    async def story(api: AssembledApi) -> None:
        await request(api, "POST", CM, CONFIG)
        locked = validating("p", {"expression": "request.operation != 'DELETE'", "message": "locked"})
        for path, obj in (locked, denies("p")):
            await request(api, "POST", path, obj)
        _, shown, _ = await request(api, "DELETE", f"{CM}/a")
        assert shown["message"] == f'configmaps "a" is forbidden: {SAID}locked'
        _, shown, _ = await request(api, "DELETE", CM)
        assert shown["message"] == f'configmaps "Unknown" is forbidden: {SAID}locked'
        await request(api, "DELETE", f"{A}/validatingadmissionpolicybindings/p")
        assert (await request(api, "DELETE", f"{CM}/a"))[0] == 200

    run(story)


REFUSED = {
    "object.x >": "Syntax error",
    "object.spec.n + 1": "must evaluate to bool but got int",
    "self.n > 1": "undeclared reference to 'self'",
    "params.x": "undeclared reference to 'params'",
    "request.nope == 1": "undefined field 'nope'",
    "namespaceObject.metadata.uid == ''": "undefined field 'uid'",
}


@pytest.mark.parametrize("expression", REFUSED)
def test_expressions_are_compiled_when_a_policy_is_written(expression: str) -> None:
    async def story(api: AssembledApi) -> None:
        status, shown, _ = await request(api, "POST", *validating("p", {"expression": expression}))
        assert status == 422
        (cause,) = shown["details"]["causes"]
        assert cause["field"] == "spec.validations[0].expression"
        assert REFUSED[expression] in cause["message"]

    run(story)


def test_what_policies_have_to_say_in_the_audit_event():
    """Failures under Audit, and a policy's own annotations: of several bindings' values each once, blanks left out."""
    annotations = [
        {"key": "who", "valueExpression": "' name ' + object.metadata.name"},
        {"key": "none", "valueExpression": "null"},
        {"key": "blank", "valueExpression": "'  '"},
    ]
    said = policy("p", validations=[{"expression": "true"}, {"expression": "false", "message": "no"}])
    said["spec"]["auditAnnotations"] = annotations

    async def run() -> tuple[int, dict[str, str]]:
        api = await serve()
        assert (await request(api, "POST", f"{A}/validatingadmissionpolicies", said))[0] == 201
        for name in ("b1", "b2"):
            binding = {
                "metadata": {"name": name},
                "spec": {"policyName": "p", "validationActions": ["Audit"]},
            }
            await request(api, "POST", f"{A}/validatingadmissionpolicybindings", binding)
        body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", **CONFIG}).encode()
        headers = {"content-type": "application/json", "user-agent": "test"}
        asked = Request("POST", CM, "", headers, body, user=WHO)
        return (await api.handle(asked)).status, asked.annotations

    status, found = asyncio.run(run())
    assert status == 201
    assert json.loads(found.pop("validation.policy.admission.k8s.io/validation_failure")) == [
        {
            "message": "no",
            "policy": "p",
            "binding": "b1",
            "expressionIndex": 1,
            "validationActions": ["Audit"],
        }
    ]
    assert found == {"p/who": "name a"}


def test_the_status_says_what_is_odd_about_expressions() -> None:
    async def run() -> None:
        options = ApiOptions(controllers=frozenset({"validatingadmissionpolicy-status"}))
        api = await serve(options)
        path, body = validating(
            "p",
            {"expression": "object.data.a == variables.size", "messageExpression": "string(object.dataa)"},
            {"expression": "object.metadata.labels['a'] == 1"},
            variables=[{"name": "size", "expression": "object.nothing"}],
        )
        rules = body["spec"]["matchConstraints"]["resourceRules"]
        rules.append({**rules[0], "resources": ["pods", "secrets/status", "*"]})
        await ask(api, "POST", path, body)
        for _ in range(200):
            _, shown, _ = await ask(api, "GET", f"{path}/p")
            if status := shown.get("status"):
                break
            await asyncio.sleep(0.01)
        await api.stop()
        assert status["observedGeneration"] == 1
        labels = "found no matching overload for '_==_' applied to '(string, int)'"
        here = " | object.metadata.labels['a'] == 1\n | ............................^\n"
        assert status["typeChecking"]["expressionWarnings"] == [
            {
                "fieldRef": "spec.validations[0].expression",
                "warning": "/v1, Kind=Pod: ERROR: <input>:1:7: undefined field 'data'\n"
                " | object.data.a == variables.size\n | ......^\n",
            },
            {
                "fieldRef": "spec.validations[0].messageExpression",
                "warning": "/v1, Kind=ConfigMap: ERROR: <input>:1:14: undefined field 'dataa'\n"
                " | string(object.dataa)\n | .............^\n\n"
                "/v1, Kind=Pod: ERROR: <input>:1:14: undefined field 'dataa'\n"
                " | string(object.dataa)\n | .............^\n",
            },
            {
                "fieldRef": "spec.validations[1].expression",
                "warning": f"/v1, Kind=ConfigMap: ERROR: <input>:1:29: {labels}\n{here}\n"
                f"/v1, Kind=Pod: ERROR: <input>:1:29: {labels}\n{here}",
            },
        ]

    asyncio.run(run())
