"""Typed decoding of built-in kinds: the words of Go's decoder, and unknown fields in the order of the document."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
import yaml
from tests.crd.recorded import SCENARIOS, crd_schema, definitions

from apimachinery.schema.builtin import BuiltinSchema, compile_builtin
from apimachinery.wire.strict import duplicate_fields, field_texts, strict_error

KINDS = {
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "Secret": "io.k8s.api.core.v1.Secret",
    "Deployment": "io.k8s.api.apps.v1.Deployment",
}


def schema(kind: str) -> BuiltinSchema:
    return compile_builtin(KINDS[kind], definitions())


@pytest.mark.parametrize(
    ("kind", "body", "fault"),
    [
        ("ConfigMap", {"data": {"a": "b", "c": None}}, None),
        ("ConfigMap", [], "json: cannot unmarshal array into Go value of type v1.ConfigMap"),
        (
            "ConfigMap",
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            "ConfigMap",
            {"binaryData": {"a": "***"}},
            "illegal base64 data at input byte 0",
        ),
        (
            "ConfigMap",
            {"metadata": {"creationTimestamp": "soon"}},
            'parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006"',
        ),
        (
            "ConfigMap",
            {"metadata": {"ownerReferences": [{"controller": "yes"}]}},
            "json: cannot unmarshal string into Go struct field OwnerReference.metadata.ownerReferences.controller "
            "of type bool",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 2**31}},
            "json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 1.5}},
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"template": {"spec": {"containers": {"name": "x"}}}}},
            "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers "
            "of type []v1.Container",
        ),
        (
            "Deployment",
            {"spec": {"strategy": {"rollingUpdate": {"maxSurge": True}}}},
            "json: cannot unmarshal bool into Go struct field "
            "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": "x", "paused": 1}},
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
    ],
)
def test_decode_faults(kind: str, body: Any, fault: str | None) -> None:
    before = deepcopy(body)
    assert schema(kind).decode_fault(body) == fault
    assert body == before


def test_unknown_fields_come_in_the_order_of_the_document_and_only_prune_drops_them() -> None:
    body = {"zz": 1, "metadata": {"flavour": 1, "labels": {"any": "x"}}, "Data": {}, "data": {"k": "v"}}
    compiled = schema("ConfigMap")
    before = deepcopy(body)
    assert compiled.unknown_fields(body) == ["zz", "metadata.flavour", "Data"]
    assert body == before
    assert compiled.read(body) == (None, ["zz", "metadata.flavour", "Data"])
    assert body == {"metadata": {"labels": {"any": "x"}}, "data": {"k": "v"}}
    assert compiled.prune(body) == []


def test_a_crd_within_a_crd_is_read_to_any_depth() -> None:
    inner: Any = {"type": "string", "const": "x"}
    for _ in range(60):
        inner = {"type": "object", "properties": {"p": inner}}
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": inner}}]}}
    assert crd_schema().decode_fault(crd) is None
    assert crd_schema().prune(crd) == [
        "spec.versions[0].schema.openAPIV3Schema" + ".properties.p" * 60 + ".const",
    ]


def test_unknown_keywords_below_items_are_dropped_in_silence() -> None:
    """The list-or-schema type decodes itself: no strict decoder sees what is in it."""
    items = {"type": "string", "const": "x"}
    crd = {"spec": {"versions": [{"schema": {"openAPIV3Schema": {"type": "array", "items": items}}}]}}
    assert crd_schema().prune(crd) == []
    assert items == {"type": "string"}


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ('{"a":1,"b":{"a":1}}', []),
        ('{"a":1,"a":2}', ["a"]),
        ('{"s":{"a":"x:y","a":"z"},"l":[{"n":1},{"n":1,"n":2,"n":3}]}', ["s.a", "l[1].n"]),
        ('{"data":{"a":"1","a":"2"},"data":{"b":"3"}}', ["data.a", "data"]),
        ('{"\\u0061":1,"a":2}', ["a"]),
        ('{"a":"\\u003a","b":1,"b":2}', ["b"]),
    ],
)
def test_duplicate_fields(text: str, paths: list[str]) -> None:
    assert duplicate_fields(text.encode(), json.loads(text)) == paths


def test_texts_of_warn_and_strict() -> None:
    texts = field_texts(["a"], ["b.c"])
    assert texts == ['duplicate field "a"', 'unknown field "b.c"']
    assert strict_error(texts) == 'strict decoding error: duplicate field "a", unknown field "b.c"'


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.exists(), reason="needs the ../shared folder of recordings")
def test_recorded_field_validation_of_built_in_kinds() -> None:
    """Creates of field-validation-builtin: warnings, Strict, and the failed decode."""
    scenario = yaml.load(
        (SCENARIOS / "crd/field-validation-builtin.yaml").read_text(), Loader=yaml.CSafeLoader
    )
    compared = 0
    for step in scenario["steps"]:
        content = (step.get("headers") or {}).get("Content-Type", "")
        mode = (step.get("query") or {}).get("fieldValidation", "Warn")
        if step["method"] != "POST" or "yaml" in content or mode not in ("Ignore", "Warn", "Strict"):
            continue
        data = (step["text"] if "text" in step else json.dumps(step["body"])).encode()
        body = json.loads(data)
        kind = body["kind"]
        duplicates = duplicate_fields(data, body)
        fault, unknown = schema(kind).read(body)
        texts = field_texts(duplicates, unknown)
        expect = step["expect"]
        if fault is not None or (texts and mode == "Strict"):
            said = fault if fault is not None else strict_error(texts)
            version = body["apiVersion"].rpartition("/")[2]
            message = f'{kind} in version "{version}" cannot be handled as a {kind}: {said}'
            assert (expect["status"], expect["body"]["message"]) == (400, message), step["id"]
        else:
            warnings = [f'299 - "{text}"'.replace('"' + text + '"', json.dumps(text)) for text in texts]
            wanted = expect["headers"].get("warning", [])
            assert (expect["status"], wanted) == (201, warnings if mode == "Warn" else []), step["id"]
        compared += 1
    assert compared >= 8
