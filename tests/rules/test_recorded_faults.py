"""Recorded refusals of built-in kinds (422): the causes that the rules alone give."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from apimachinery.meta.field_errors import FieldError
from apimachinery.meta.object_meta import validate_object_meta
from tests.rules.built_in import DEFINITIONS, SHARED, create, generated

Json = dict[str, Any]
SCENARIOS = SHARED / "parity/scenarios"
KINDS = {
    entry["kind"]
    for schema in DEFINITIONS.values()
    for entry in schema.get("x-kubernetes-group-version-kind", ())
}
EXPRESSIONS = re.compile(r"must evaluate to|compilation failed")
"""Faults of CEL expressions are the CEL engine's to find."""


def faults(obj: Json, old: Json | None = None) -> list[FieldError]:
    """The faults that the kind's own rules find."""
    module = generated(obj["apiVersion"], "validation")
    validator = module.VALIDATORS.get(obj["kind"]) if module else None
    return list(validator(obj, old)) if validator else []


@cache
def recorded_creates() -> list[tuple[str, Json]]:
    """Recorded POSTs of objects of built-in kinds, each with its name. Read when a test runs: it takes a second."""
    return [
        (f"{path.stem}: {step.get('id')}", step)
        for path in sorted(SCENARIOS.glob("*/*.yaml"))
        for step in yaml.load(path.read_bytes(), yaml.CSafeLoader)["steps"]
        if step.get("method") == "POST"
        and isinstance(step.get("body"), dict)
        and step["body"].get("kind") in KINDS
    ]


def refused_creates() -> Iterator[tuple[str, Json]]:
    """Those that were refused for what the object says, other than its metadata."""
    for name, step in recorded_creates():
        answer, body = step.get("expect", {}), step["body"]
        if answer.get("status") != 422 or step.get("query", {}).get("fieldValidation"):
            continue
        causes = answer["body"].get("details", {}).get("causes", [])
        if body["kind"] == "CustomResourceDefinition" or body.get("apiVersion") not in known_versions():
            continue
        if not causes or any(
            cause.get("field", "").startswith("metadata")
            or cause.get("field", "dryRun") in ("dryRun", "fieldManager")
            for cause in causes
        ):
            continue
        if not any(EXPRESSIONS.search(cause["message"]) for cause in causes):
            yield name, step


def known_versions() -> set[str]:
    from kubernetes_api.registry import GROUP_VERSIONS

    return set(GROUP_VERSIONS)


def substitute(value: Any) -> Any:
    """What the recording's variables stand for."""
    if isinstance(value, str):
        return value.replace("{run}", "run").replace("{ns}", "ns").replace("{m}", "m" * 20_500)
    if isinstance(value, list):
        return [substitute(item) for item in value]
    if isinstance(value, dict):
        return {key: substitute(item) for key, item in value.items()}
    return value


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.is_dir(), reason="needs the ../shared folder of recordings")
def test_recorded_refusals() -> None:
    wrong = {}
    count = 0
    for name, step in refused_creates():
        count += 1
        found, wanted = causes_of(step["path"], step["body"]), causes_in(step["expect"]["body"])
        if found != wanted:
            wrong[name] = found, wanted
    assert count >= 50
    assert wrong == {}


def causes_of(path: str, body: Json) -> list[tuple[str, ...]]:
    """What the rules say of an object that is sent to a path."""
    sent = substitute(copy.deepcopy(body))
    sent.setdefault("metadata", {})
    namespace = "ns" if "{ns}" in path else ""
    if match := re.search(r"/namespaces/([a-z0-9-]+)/", path):
        namespace = match[1]
    if namespace:
        sent["metadata"].setdefault("namespace", namespace)
    obj = create(copy.deepcopy(sent), sent["metadata"].get("namespace", ""), whole=True)
    return [(fault.reason.value, fault.field, fault.body) for fault in faults(obj)]


def causes_in(answer: Json) -> list[tuple[str, ...]]:
    """What kube-apiserver said."""
    causes = answer["details"]["causes"]
    return [
        tuple(
            re.sub(r"p-[a-z-]+-RUN", "ns", text).replace("RUN", "run")
            for text in (cause["reason"], cause["field"], cause["message"])
        )
        for cause in causes
    ]


@pytest.mark.shared
@pytest.mark.skipif(not SCENARIOS.is_dir(), reason="needs the ../shared folder of recordings")
def test_what_was_accepted_has_no_faults() -> None:
    """Every recorded create of a built-in kind that was accepted is accepted by the rules."""
    refused = {}
    count = 0
    for name, step in recorded_creates():
        body = step["body"]
        if step.get("expect", {}).get("status") != 201:
            continue
        if body.get("apiVersion") not in known_versions() or "/status" in step["path"]:
            continue
        obj = substitute(copy.deepcopy(body))
        metadata = obj.setdefault("metadata", {})
        if "/namespaces/" in step["path"]:
            metadata.setdefault("namespace", "ns")
        count += 1
        if found := faults(create(obj, metadata.get("namespace", ""), whole=True)):
            refused[name] = [str(fault) for fault in found]
    assert count > 200
    assert refused == {}


def test_metadata_is_checked_elsewhere() -> None:
    """Kinds' rules leave metadata to the check of all objects."""
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not_Valid"}}
    assert faults(obj) == []
    assert validate_object_meta(obj["metadata"], namespaced=True) != []  # type: ignore[arg-type]
