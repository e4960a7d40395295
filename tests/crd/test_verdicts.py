"""Verdicts of kube-apiserver on real CRDs and mutations of them.

Accepted or refused, and with which causes.
"""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create
from apimachinery.merge import json_patch
from tests.crd.recorded import SHARED, crd_schema

VERDICTS = (SHARED / "parity/crd-verdicts.json", SHARED / "parity/crd-verdicts-2.json")

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not all(each.exists() for each in VERDICTS), reason="needs the ../shared folder of recordings"
    ),
]


@cache
def manifest(name: str) -> Any:
    return yaml.load((SHARED / "data/crds" / name).read_text(), Loader=yaml.CSafeLoader)


def causes(entry: dict[str, Any]) -> list[tuple[str, str, str]]:
    crd = json_patch.apply(deepcopy(manifest(entry["file"])), entry["patch"])
    undecodable = crd_schema().decode_fault(crd)
    if undecodable is not None:
        said = 'CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition'
        return [("", "", f"{said}: {undecodable}")]
    default_crd(crd)
    prepare_crd_for_create(crd)
    return sorted((fault.reason.value, fault.field, fault.body[:400]) for fault in check_crd(crd))


@pytest.mark.parametrize(
    ("file", "count", "step"),
    [
        pytest.param(VERDICTS[0], 525, 3, id="a third of the first"),
        pytest.param(VERDICTS[1], 936, 8, id="an eighth of the second"),
        pytest.param(VERDICTS[0], 525, 1, id="first", marks=pytest.mark.thorough),
        pytest.param(VERDICTS[1], 936, 1, id="second", marks=pytest.mark.thorough),
    ],
)
def test_every_verdict_agrees_in_field_reason_and_text(file: Path, count: int, step: int) -> None:
    missed = []
    entries = json.loads(file.read_text())
    for entry in entries[::step]:
        wanted = sorted(
            (each.get("reason", ""), each.get("field", ""), each["message"][:400]) for each in entry["causes"]
        )
        found = causes(entry)
        if bool(found) != (entry["status"] != 201) or found != wanted:
            missed.append((entry["file"], entry["mutation"], wanted, found))
    assert len(entries) == count
    assert not missed, missed[:3]
