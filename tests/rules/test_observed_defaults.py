"""Objects as sent to kube-apiserver and as answered: what the rules alone make of them.

``ALLOCATED`` are the fields that only a server can fill in; nothing else may differ.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from tests.rules.built_in import SHARED, create, default

Json = dict[str, Any]
OBSERVED = SHARED / "data/kubernetes-1.36/defaults-observed.yaml"
RECORDED = SHARED / "parity/scenarios/control"
UID = "b86b5413-63d8-4cce-83fa-4db5772a3a88"

ALLOCATED = {
    "Service": ("spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ports[0].nodePort"),
    "PersistentVolume": ("status.lastPhaseTransitionTime",),
    "CertificateSigningRequest": ("spec.username", "spec.groups", "spec.extra", "spec.uid"),
}


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """The places where two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted(ours.keys() | theirs.keys()):
            place = f"{path}.{key}".lstrip(".")
            if key not in ours or key not in theirs:
                found.append(f"{place}: {ours.get(key, 'missing')!r}, not {theirs.get(key, 'missing')!r}")
            else:
                found += differences(ours[key], theirs[key], place)
        return found
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            text
            for index, (left, right) in enumerate(zip(ours, theirs, strict=True))
            for text in differences(left, right, f"{path}[{index}]")
        ]
    return [] if ours == theirs and type(ours) is type(theirs) else [f"{path}: {ours!r}, not {theirs!r}"]


def unexplained(sent: Json, answered: Json, uid: str) -> list[str]:
    """What differs between our object and the recorded one, less what a server allocates."""
    ours = create(copy.deepcopy(sent), answered["metadata"].get("namespace", ""), uid)
    allocated = ALLOCATED.get(sent["kind"], ())
    return [text for text in differences(ours, answered) if text.partition(": ")[0] not in allocated]


def observed() -> list[Json]:
    if not OBSERVED.is_file():
        return []
    return list(yaml.load_all(OBSERVED.read_bytes(), yaml.CSafeLoader))


@pytest.mark.shared
@pytest.mark.skipif(not OBSERVED.is_file(), reason="needs the ../shared folder of recordings")
def test_all_observed_objects_default_to_what_was_observed() -> None:
    cases = observed()
    failed = {
        f"{index} {case['sent']['kind']}": faults
        for index, case in enumerate(cases)
        if (faults := unexplained(case["sent"], case["answered"], UID))
    }
    assert len(cases) == 46
    assert failed == {}


@pytest.mark.shared
@pytest.mark.skipif(not OBSERVED.is_file(), reason="needs the ../shared folder of recordings")
@pytest.mark.parametrize("case", observed(), ids=lambda case: case["sent"]["kind"])
def test_defaulting_twice_is_defaulting_once(case: Json) -> None:
    once = default(copy.deepcopy(case["sent"]))
    assert default(copy.deepcopy(once)) == once


SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def recorded_creates() -> list[tuple[str, Json, Json]]:
    """The accepted dry-run creates of the recorded defaults scenarios."""
    found = []
    for path in sorted(RECORDED.glob("defaults-*.yaml")):
        found += [
            (f"{path.stem}: {step['id']}", step["body"], step["expect"]["body"])
            for step in yaml.load(path.read_bytes(), yaml.CSafeLoader)["steps"]
            if step["method"] == "POST" and step["expect"]["status"] == 201
        ]
    return found


@pytest.mark.shared
@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the ../shared folder of recordings")
@pytest.mark.parametrize(("name", "sent", "answered"), recorded_creates(), ids=lambda value: str(value)[:60])
def test_recorded_creates(name: str, sent: Json, answered: Json) -> None:
    del name
    sent = copy.deepcopy(sent)
    sent["metadata"]["name"] = answered["metadata"]["name"]
    for key in SERVER_SET:
        answered["metadata"].pop(key, None)
    labels = answered["metadata"].get("labels", {})
    if sent["kind"] == "Namespace":
        labels["kubernetes.io/metadata.name"] = answered["metadata"]["name"]
    assert unexplained(sent, answered, labels.get("controller-uid", UID)) == []
