"""What a server that answers as an older release serves, and by which rules it checks."""

from __future__ import annotations

from typing import Any

import pytest
from tests.server.test_api import ask, run

from apimachinery.server.assembly.api import AssembledApi
from apimachinery.server.catalog.options import ApiOptions

FLOWCONTROL, STORAGE = "flowcontrol.apiserver.k8s.io", "storage.k8s.io"
SERVED = {
    "1.25": {"autoscaling": ["v2", "v1", "v2beta2"], FLOWCONTROL: ["v1beta2", "v1beta1"], STORAGE: ["v1", "v1beta1"]},
    "1.26": {"autoscaling": ["v2", "v1"], FLOWCONTROL: ["v1beta3", "v1beta2"], STORAGE: ["v1", "v1beta1"]},
    "1.27": {FLOWCONTROL: ["v1beta3", "v1beta2"], STORAGE: ["v1"]},
    "1.29": {FLOWCONTROL: ["v1", "v1beta3"]},
    "1.31": {FLOWCONTROL: ["v1", "v1beta3"]},
    "1.32": {FLOWCONTROL: ["v1"]},
}  # fmt: skip
AUTOSCALER: dict[str, Any] = {
    "metadata": {"name": "h"},
    "spec": {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
    },
}
LEVEL: dict[str, Any] = {
    "metadata": {"name": "l"},
    "spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}},
}
CAPACITY: dict[str, Any] = {"metadata": {"name": "c"}, "storageClassName": "fast", "capacity": "1Gi"}
HPAS = "namespaces/default/horizontalpodautoscalers"


def as_release(release: str) -> ApiOptions:
    return ApiOptions(controllers=frozenset(), emulated_version=release)


@pytest.mark.parametrize("release", SERVED)
def test_versions_are_those_that_the_release_served(release: str) -> None:
    async def story(api: AssembledApi) -> None:
        _, groups, _ = await ask(api, "GET", "/apis")
        served = {each["name"]: [v["version"] for v in each["versions"]] for each in groups["groups"]}
        assert {group: served[group] for group in SERVED[release]} == SERVED[release]

    run(story, as_release(release))


def test_objects_of_versions_that_are_gone_are_written_and_read_at_others() -> None:
    async def story(api: AssembledApi) -> None:
        code, made, headers = await ask(api, "POST", f"/apis/autoscaling/v2beta2/{HPAS}", AUTOSCALER)
        assert code == 201, made
        warning = (
            "autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated in v1.23+, unavailable in v1.26+; "
        )
        assert warning + "use autoscaling/v2 HorizontalPodAutoscaler" in headers["Warning"]
        assert made["status"] == {
            "conditions": None, "currentMetrics": None, "currentReplicas": 0, "desiredReplicas": 0
        }  # fmt: skip
        metrics = made["spec"]["metrics"]
        assert metrics[0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
        _, first, _ = await ask(api, "GET", f"/apis/autoscaling/v1/{HPAS}/h")
        assert first["spec"]["targetCPUUtilizationPercentage"] == 80
        code, capacity, _ = await ask(
            api, "POST", "/apis/storage.k8s.io/v1beta1/namespaces/default/csistoragecapacities", CAPACITY
        )
        assert (code, capacity["apiVersion"]) == (201, "storage.k8s.io/v1beta1"), capacity

    run(story, as_release("1.25"))


@pytest.mark.parametrize(
    ("release", "version", "limited"),
    [
        ("1.25", "v1beta1", {"assuredConcurrencyShares": 30}),
        ("1.25", "v1beta2", {"assuredConcurrencyShares": 30}),
        ("1.28", "v1beta2", {"assuredConcurrencyShares": 30, "lendablePercent": 0}),
        ("1.30", "v1beta3", {"nominalConcurrencyShares": 30, "lendablePercent": 0}),
    ],
)
def test_levels_have_the_fields_and_defaults_of_their_release(
    release: str, version: str, limited: dict[str, Any]
) -> None:
    levels = f"/apis/{FLOWCONTROL}/{version}/prioritylevelconfigurations"

    async def story(api: AssembledApi) -> None:
        _, made, _ = await ask(api, "POST", levels, LEVEL)
        shown = {key: value for key, value in made["spec"]["limited"].items() if key != "limitResponse"}
        assert shown == limited
        name = next(key for key in limited if key.endswith("Shares"))
        broken = {"metadata": {"name": "b"}, "spec": {"type": "Limited", "limited": {name: -1}}}
        _, refusal, _ = await ask(api, "POST", levels, broken)
        fields = {cause["field"] for cause in refusal["details"]["causes"]}
        assert fields == {f"spec.limited.{name}", "spec.limited.limitResponse.type"}
        fixed = {**LEVEL, "metadata": {"name": "catch-all"}}
        fixed["spec"] = {"type": "Limited", "limited": {name: 5, "limitResponse": {"type": "Reject"}}}
        code, answer, _ = await ask(api, "POST", levels, fixed)
        assert code in (201, 409), answer

    run(story, as_release(release))


def test_zero_shares_of_v1_are_marked_in_v1beta3() -> None:
    at = f"/apis/{FLOWCONTROL}/%s/prioritylevelconfigurations"

    async def story(api: AssembledApi) -> None:
        level = {
            "metadata": {"name": "none"},
            "spec": {
                "type": "Limited",
                "limited": {"nominalConcurrencyShares": 0, "limitResponse": {"type": "Reject"}},
            },
        }
        assert (await ask(api, "POST", at % "v1", level))[0] == 201
        _, shown, _ = await ask(api, "GET", at % "v1beta3" + "/none")
        assert shown["spec"]["limited"]["nominalConcurrencyShares"] == 0
        assert shown["metadata"]["annotations"] == {
            "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares": ""
        }
        code, kept, _ = await ask(api, "PUT", at % "v1beta3" + "/none", shown)
        assert (code, kept["spec"]["limited"]["nominalConcurrencyShares"]) == (200, 0)

    run(story, as_release("1.30"))


def test_what_is_deprecated_later_does_not_warn_yet() -> None:
    async def story(api: AssembledApi) -> None:
        _, _, headers = await ask(api, "GET", "/api/v1/namespaces/default/endpoints")
        assert "Warning" not in headers

    run(story, as_release("1.32"))


def test_subresources_come_with_their_release() -> None:
    async def names(api: AssembledApi) -> set[str]:
        _, listed, _ = await ask(api, "GET", "/api/v1")
        return {each["name"] for each in listed["resources"]}

    async def before(api: AssembledApi) -> None:
        assert "pods/resize" not in await names(api)

    async def since(api: AssembledApi) -> None:
        assert "pods/resize" in await names(api)

    run(before, as_release("1.31"))
    run(since, as_release("1.32"))


def definition(rule: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-validations": [{"rule": rule}]}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    return {
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Cluster", "versions": [version]},
    }


def policy(expression: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    return {
        "metadata": {"name": "p"},
        "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
    }


@pytest.mark.parametrize(
    ("expression", "since"),
    [
        ("[1].all(i, v, v > 0)", 33),
        ("isSemver('1.0.0')", 34),
        ("[2, 1].sort() == [1, 2]", 35),  # as kube-apiserver 1.36 that emulates 1.34 refuses it
    ],
)
def test_new_expressions_use_the_libraries_of_the_release(expression: str, since: int) -> None:
    def written(refused: bool) -> Any:
        async def story(api: AssembledApi) -> None:
            for path, obj in (
                ("apiextensions.k8s.io/v1/customresourcedefinitions", definition(expression)),
                ("admissionregistration.k8s.io/v1/validatingadmissionpolicies", policy(expression)),
            ):
                code, answer, _ = await ask(api, "POST", f"/apis/{path}?dryRun=All", obj)
                assert code == (422 if refused else 201), answer
                assert not refused or "undeclared reference to" in answer["message"]

        return story

    run(written(refused=True), as_release(f"1.{since - 1}"))
    run(written(refused=False), as_release(f"1.{since}"))
