"""Verdicts of kube-apiserver on real CRDs and mutations of them.

Accepted or refused, and with which causes.
"""

from __future__ import annotations

import json
from collections import Counter
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import yaml

from apimachinery.crd import check_crd, default_crd, prepare_crd_for_create
from apimachinery.merge import json_patch
from tests.crd.recorded import SHARED

VERDICTS = SHARED / "parity/crd-verdicts.json"
KNOWN = Counter(
    {
        "fields": 1,  # rules below a node with both properties and additionalProperties
        "text of props-and-additional": 1,
    }
)
"""What is not told alike; each is a matter of the rules' language."""

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not VERDICTS.exists(), reason="needs the ../shared folder of recordings"),
]


@cache
def manifest(name: str) -> Any:
    return yaml.load((SHARED / "data/crds" / name).read_text(), Loader=yaml.CSafeLoader)


def causes(entry: dict[str, Any]) -> list[tuple[str, str, str]]:
    crd = json_patch.apply(deepcopy(manifest(entry["file"])), entry["patch"])
    default_crd(crd)
    prepare_crd_for_create(crd)
    return sorted((fault.reason.value, fault.field, fault.body[:400]) for fault in check_crd(crd))


def test_every_verdict_agrees_in_field_reason_and_text() -> None:
    entries = json.loads(VERDICTS.read_text())
    missed: Counter[str] = Counter()
    judged = 0
    for entry in entries:
        wanted = sorted((each["reason"], each["field"], each["message"]) for each in entry["causes"])
        judged += 1
        found = causes(entry)
        if bool(found) == (entry["status"] == 201):
            missed["verdict"] += 1
        if [each[:2] for each in found] != [each[:2] for each in wanted]:
            missed["fields"] += 1
        if found != wanted:
            missed[f"text of {entry['mutation']}"] += 1
    assert judged == 525
    assert missed <= KNOWN, missed - KNOWN
