"""Conversions: every declared pair there and back, recorded ones, kept values, reviews."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apimachinery.conversion.versions import KEPT, ConversionError, Converter, lossless
from tests.rules.built_in import ROOT, SHARED, default
from tests.rules.built_in import typed_form as built_in_form

Json = dict[str, Any]
PACKAGES = ("kubernetes_api", "backup_api", "flags_api", "messaging_api")
EXAMPLES = 1000 if os.environ.get("HYPOTHESIS_PROFILE") == "thorough" else 40


def tables() -> Iterator[tuple[str, Any]]:
    """Every generated table of conversions, with its package."""
    for package in PACKAGES:
        for path in sorted((ROOT / "generated" / package).glob("*/conversion.py")):
            yield package, import_module(f"{package}.{path.parent.name}.conversion").CONVERSIONS


CONVERTER = Converter(table for _, table in tables())
PAIRS = sorted((package, *pair) for package, table in tables() for pair in table)


def definitions(package: str) -> Json:
    found = json.loads((ROOT / "generated" / package / "definitions.json").read_bytes())
    assert isinstance(found, dict)
    return found


DEFINITIONS = {package: definitions(package) for package in PACKAGES}


def definition_of(package: str, api_version: str, kind: str) -> str | None:
    group, _, version = api_version.rpartition("/")
    wanted = [{"group": group, "version": version, "kind": kind}]
    for name, schema in DEFINITIONS[package].items():
        if schema.get("x-kubernetes-group-version-kind") == wanted:
            return str(name)
    return None


WORDS = st.sampled_from(["a", "b-c", "x/y", "k", "Allow", "allow", "22:00-04:00", "v1"])


def values(schema: Json, package: str, depth: int = 0) -> st.SearchStrategy[Any]:
    """Values of a schema, small ones; optional fields come and go."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name.endswith(("Time", "MicroTime")) and "apimachinery" in name:
            micro = ".000000" if name.endswith("MicroTime") else ""
            return st.sampled_from([f"2020-01-0{day}T00:00:00{micro}Z" for day in (1, 2, 3)])
        if name.endswith("resource.Quantity"):
            return st.sampled_from(["1", "100m", "2Gi"])
        if name.endswith("IntOrString"):
            return st.sampled_from([1, "x"])
        return values(DEFINITIONS[package][name], package, depth)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return st.sampled_from([1, 2, "web"])
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return objects(schema, package, depth)
    if kind == "array":
        return st.lists(values(schema.get("items", {}), package, depth + 1), max_size=2 if depth < 5 else 1)
    if kind == "integer":
        return st.integers(0, 3)
    if kind == "number":
        return st.sampled_from([0.5, 2.5])
    if kind == "boolean":
        return st.booleans()
    if schema.get("format") == "date-time":
        return st.sampled_from(["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"])
    return WORDS


def objects(schema: Json, package: str, depth: int) -> st.SearchStrategy[Any]:
    if schema.get("x-kubernetes-embedded-resource"):
        return st.just({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}})
    properties = schema.get("properties", {})
    if not properties:
        extra = schema.get("additionalProperties")
        inner = values(extra, package, depth + 1) if isinstance(extra, dict) else WORDS
        return st.dictionaries(WORDS, inner, max_size=2)
    if depth > 7:
        return st.just({})
    required = set(schema.get("required", ()))
    return st.fixed_dictionaries(
        {key: values(child, package, depth + 1) for key, child in properties.items() if key in required},
        optional={
            key: values(child, package, depth + 1) for key, child in properties.items() if key not in required
        },
    )


def kinds_of(package: str, api_version: str, kind: str) -> st.SearchStrategy[Json]:
    name = definition_of(package, api_version, kind)
    assert name is not None
    schema = DEFINITIONS[package][name]
    parts = {
        key: values(child, package, 1)
        for key, child in schema["properties"].items()
        if key not in ("apiVersion", "kind", "metadata")
    }
    head = {
        "apiVersion": st.just(api_version),
        "kind": st.just(kind),
        "metadata": st.sampled_from([{"name": "x"}, {"name": "x", "annotations": {"a": "b"}}]),
    }
    return st.fixed_dictionaries(head, optional=parts)


def described(pair: tuple[str, str, str, str]) -> bool:
    package, kind, source, target = pair
    return bool(definition_of(package, source, kind) and definition_of(package, target, kind))


LOSSY = {
    ("PodCertificateRequest", "certificates.k8s.io/v1beta1"),
    ("HorizontalPodAutoscaler", "autoscaling/v1"),
    ("HorizontalPodAutoscaler", "autoscaling/v2"),
    ("HorizontalPodAutoscaler", "autoscaling/v2beta2"),
}
"""What kube-apiserver itself loses: fields v1 gave up; of autoscalers the place of the CPU metric among others, and
whether the CPU in use was said in an annotation. The tests below say what of autoscalers does come back."""

NARROWER = {("PriorityLevelConfiguration", "flowcontrol.apiserver.k8s.io/v1beta1")}
"""Versions without fields that came after they were gone."""

DESCRIBED = [
    pair
    for pair in PAIRS
    if described(pair) and (pair[1], pair[2]) not in LOSSY and (pair[1], pair[3]) not in NARROWER
]


def shown(package: str, obj: Json) -> Json:
    """``obj`` as a server shows it: built-in kinds in typed form."""
    if package == "kubernetes_api":
        built_in_form(obj["apiVersion"], obj["kind"])(obj)
    return obj


@pytest.mark.parametrize("pair", DESCRIBED, ids=lambda pair: " ".join(pair[1:]))
def test_there_and_back_nothing_is_lost(pair: tuple[str, str, str, str]) -> None:
    package, kind, source, target = pair

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @given(kinds_of(package, source, kind))
    def there_and_back(obj: Json) -> None:
        original = default(copy.deepcopy(obj)) if package == "kubernetes_api" else copy.deepcopy(obj)
        before = copy.deepcopy(original)
        there = shown(package, CONVERTER.convert(original, target))
        assert original == before, "conversion changed its argument"
        assert there["apiVersion"] == target
        back = shown(package, CONVERTER.convert(there, source))
        assert back == before

    there_and_back()


HPA = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "x"},
}
REFERENCE = {"kind": "Deployment", "name": "w", "apiVersion": "apps/v1"}
METRICS = [
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
    },
    {
        "type": "Resource",
        "resource": {"name": "memory", "target": {"type": "Utilization", "averageUtilization": 5}},
    },
    {
        "type": "ContainerResource",
        "containerResource": {
            "name": "cpu",
            "container": "c",
            "target": {"type": "Utilization", "averageUtilization": 7},
        },
    },
    {
        "type": "Pods",
        "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "3"}},
    },
    {
        "type": "Object",
        "object": {
            "describedObject": REFERENCE,
            "metric": {"name": "m", "selector": {"matchLabels": {"a": "b<c"}}},
            "target": {"type": "Value", "value": "2"},
        },
    },
    {"type": "External", "external": {"metric": {"name": "e"}, "target": {"type": "Value", "value": "9"}}},
    {
        "type": "External",
        "external": {"metric": {"name": "e"}, "target": {"type": "AverageValue", "averageValue": "9"}},
    },
]
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
}
RULES = st.fixed_dictionaries(
    {"selectPolicy": st.sampled_from(["Max", "Min", "Disabled"])},
    optional={
        "stabilizationWindowSeconds": st.integers(0, 3600),
        "tolerance": st.sampled_from(["0", "100m"]),
        "policies": st.lists(
            st.fixed_dictionaries(
                {
                    "type": st.sampled_from(["Pods", "Percent"]),
                    "value": st.integers(1, 9),
                    "periodSeconds": st.just(15),
                }
            ),
            min_size=1,
            max_size=2,
        ),
    },
)


@settings(max_examples=max(EXAMPLES, 100), deadline=None)
@given(
    st.lists(st.sampled_from(METRICS), max_size=4),
    st.booleans(),
    st.none() | st.fixed_dictionaries({}, optional={"scaleUp": RULES, "scaleDown": RULES}),
    st.lists(st.sampled_from(["AbleToScale", "ScalingActive"]), unique=True),
)
def test_autoscalers_come_back_from_v1(
    metrics: list[Json], cpu: bool, behavior: Json | None, conditions: list[str]
) -> None:
    """Every metric, behavior and condition of v2 waits in v1's annotations; the CPU metric comes back last."""
    obj = default(
        copy.deepcopy(
            {
                **HPA,
                "spec": {
                    "scaleTargetRef": REFERENCE,
                    "maxReplicas": 3,
                    "metrics": metrics + [CPU] * cpu,
                    **({} if behavior is None else {"behavior": behavior}),
                },
                "status": {
                    "conditions": [
                        {
                            "type": kind,
                            "status": "True",
                            "lastTransitionTime": "2020-01-02T03:04:05Z",
                            "reason": "R",
                        }
                        for kind in conditions
                    ]
                },
            }
        )
    )
    before = copy.deepcopy(obj)
    there = shown("kubernetes_api", CONVERTER.convert(obj, "autoscaling/v1"))
    assert shown("kubernetes_api", CONVERTER.convert(there, "autoscaling/v2")) == before


def test_every_kind_with_several_versions_has_conversions_for_all_pairs() -> None:
    missing = []
    for package in PACKAGES:
        kinds: dict[tuple[str, str], list[str]] = {}
        for path in sorted((ROOT / "generated" / package).glob("*/resources.py")):
            for resource in import_module(f"{package}.{path.parent.name}.resources").RESOURCES:
                kinds.setdefault((resource.group, resource.kind), []).append(resource.api_version)
        for (_, kind), versions in kinds.items():
            missing += [
                (kind, one, other)
                for one in versions
                for other in versions
                if one != other and not CONVERTER.knows(kind, one, other)
            ]
    assert missing == []


SCENARIOS = SHARED / "parity/scenarios/control"


def recorded() -> list[tuple[str, Json, Json]]:
    """Pairs of answers that show one object (by uid and resourceVersion) in two versions."""
    found = []
    for name in ("convert-autoscaler", "convert-event", "convert-writes"):
        path = SCENARIOS / f"{name}.yaml"
        if not path.is_file():
            return []
        seen: dict[tuple[str, str], Json] = {}
        for step in yaml.load(path.read_bytes(), yaml.CSafeLoader)["steps"]:
            body = step.get("expect", {}).get("body")
            if not isinstance(body, dict) or "uid" not in body.get("metadata", {}):
                continue
            key = (body["metadata"]["uid"], body["metadata"]["resourceVersion"])
            other = seen.get(key)
            if other and other["apiVersion"] != body["apiVersion"]:
                found += [
                    (f"{name}: {step['id']}", other, body),
                    (f"{name}: {step['id']}, back", body, other),
                ]
            seen[key] = body
    return found


def without_server_fields(obj: Json) -> Json:
    obj = copy.deepcopy(obj)
    for key in ("managedFields", "creationTimestamp", "uid", "resourceVersion"):
        obj["metadata"].pop(key, None)
    return obj


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.is_dir(), reason="needs the ../shared folder of recordings")
@pytest.mark.parametrize(("name", "source", "target"), recorded(), ids=lambda value: str(value)[:60])
def test_recorded_conversions(name: str, source: Json, target: Json) -> None:
    del name
    source, target = without_server_fields(source), without_server_fields(target)
    ours = CONVERTER.convert(source, target["apiVersion"])
    built_in_form(target["apiVersion"], target["kind"])(ours)
    assert ours == target


SAMPLES = ROOT / "specs/backup/samples"


def sample(name: str) -> Json:
    found = yaml.load((SAMPLES / name).read_bytes(), yaml.CSafeLoader)
    assert isinstance(found, dict)
    return found


def test_a_change_made_in_a_spoke_wins_over_what_was_kept() -> None:
    original = sample("backupschedule-v1.yaml")
    spoke = CONVERTER.convert(original, "backup.kubewright.dev/v1alpha1")
    assert spoke["spec"]["store"] == "vault"
    assert "backup.kubewright.dev/v1" in spoke["metadata"]["annotations"][KEPT]
    spoke["spec"]["store"] = "other"
    back = CONVERTER.convert(spoke, "backup.kubewright.dev/v1")
    assert back["spec"]["stores"] == [{"name": "other"}]
    assert back["spec"]["encryption"] == original["spec"]["encryption"]
    assert KEPT not in back["metadata"].get("annotations", {})


def test_words_are_mapped_and_defaults_that_differ_are_said() -> None:
    hub = CONVERTER.convert(sample("backupschedule-v1alpha1.yaml"), "backup.kubewright.dev/v1")
    assert hub["spec"]["concurrencyPolicy"] == "Forbid"
    assert hub["spec"]["backoffLimit"] == 3
    assert hub["spec"]["window"] == {"start": "22:00", "end": "04:00"}
    assert hub["spec"]["schedule"] == {"cron": "@daily", "timeZone": "Europe/Vienna"}


@pytest.mark.parametrize(
    "text", ["not json", "[1]", "{}", '{"backup.kubewright.dev/v1": [["x"]]}', "[" * 2000]
)
def test_a_foreign_annotation_is_no_harm(text: str) -> None:
    obj = sample("backupschedule-v1alpha1.yaml")
    obj["metadata"]["annotations"] = {KEPT: text}
    hub = CONVERTER.convert(obj, "backup.kubewright.dev/v1")
    assert hub["spec"]["schedule"]["cron"] == "@daily"


def test_more_than_an_annotation_holds_is_refused() -> None:
    obj = sample("backupschedule-v1.yaml")
    obj["spec"]["parameters"] = {}
    obj["spec"]["notify"] = ["x" * 200_000]
    with pytest.raises(ConversionError, match="would have to be kept in the annotation"):
        CONVERTER.convert(obj, "backup.kubewright.dev/v1alpha1")


def test_lists_are_converted_item_by_item() -> None:
    item = sample("backupschedule-v1alpha1.yaml")
    of_list = {
        "apiVersion": "backup.kubewright.dev/v1alpha1",
        "kind": "BackupScheduleList",
        "metadata": {"resourceVersion": "3"},
        "items": [item, {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}],
    }
    new = CONVERTER.convert(of_list, "backup.kubewright.dev/v1")
    assert new["metadata"] == {"resourceVersion": "3"}
    assert new["items"][0]["apiVersion"] == "backup.kubewright.dev/v1"
    assert "apiVersion" not in new["items"][1]
    assert new["items"][1]["spec"]["schedule"]["cron"] == "@daily"


def review(*objects: Any, target: Any = "backup.kubewright.dev/v1") -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": "u-1", "desiredAPIVersion": target, "objects": list(objects)},
    }


def test_a_review_is_answered_with_its_uid() -> None:
    answer = CONVERTER.review(review(sample("backupschedule-v1alpha1.yaml")))
    assert answer["apiVersion"] == "apiextensions.k8s.io/v1"
    assert answer["response"]["uid"] == "u-1"
    assert answer["response"]["result"] == {"status": "Success"}
    assert answer["response"]["convertedObjects"][0]["spec"]["stores"] == [{"name": "vault"}]


REFUSED: dict[str, tuple[Json, str]] = {
    "no such version": (
        review(sample("backupschedule-v1alpha1.yaml"), target="backup.kubewright.dev/v9"),
        "objects[0]: no conversion from backup.kubewright.dev/v1alpha1 to backup.kubewright.dev/v9 for BackupSchedule",
    ),
    "no object": (review(3), "objects[0] is no object"),
    "no kind": (
        review({"apiVersion": "x/v1"}),
        "objects[0]: an object to convert has a kind and an apiVersion",
    ),
    "no target": (review(target=None), "the request has a desiredAPIVersion and objects"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_review_that_fails_says_why(name: str) -> None:
    request, message = REFUSED[name]
    assert CONVERTER.review(request)["response"] == {
        "uid": "u-1",
        "result": {"status": "Failure", "message": message},
    }


@pytest.mark.parametrize("value", [None, 3, {}, {"request": {}}, {"request": {"uid": 1}}])
def test_what_is_no_review_is_refused(value: Any) -> None:
    with pytest.raises(ConversionError, match="a ConversionReview has a request with a uid"):
        CONVERTER.review(value)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "a", "~", "a/b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b/c", "~d", "0"]), inner)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(ANY_JSON, ANY_JSON)
def test_lossless_makes_any_pair_of_functions_lossless(there: Any, back: Any) -> None:
    """Whatever two functions do to ``spec``, going there and back restores it."""

    def forward(obj: Json) -> Json:
        return {**copy.deepcopy(obj), "apiVersion": "g/v2", "spec": copy.deepcopy(there)}

    def backward(obj: Json) -> Json:
        return {**copy.deepcopy(obj), "apiVersion": "g/v1", "spec": copy.deepcopy(back)}

    to_hub = lossless(forward, backward, "g/v1", "g/v2")
    to_spoke = lossless(backward, forward, "g/v2", "g/v1")
    for spec in (there, back, {"a": 1}):
        original = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "x"}, "spec": spec}
        assert to_spoke(to_hub(copy.deepcopy(original))) == original
