"""A folder has the findings of its files, and what is shared inside a file hides nothing."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.ir.known_types import KnownTypes
from kubewright.ir.shapes import fold
from kubewright.pipeline import read_api, read_known
from kubewright.tools.lint.run import Finding, Settings, lint
from tests.tools.test_lint import CLEAN

FIELDS: dict[str, dict[str, Any]] = {
    "isReady": {"type": "boolean"},
    "timeout": {"type": "integer"},
    "ratio": {"type": "number"},
    "mode": {"type": "string", "enum": ["1", "2"]},
    "podIp": {"type": "string"},
    "phase": {"type": "string"},
    "rule": {"type": "array", "items": {"type": "string"}},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
}


def known() -> KnownTypes:
    found = read_known(Package(name="linted", sources=()), Diagnostics())
    assert found is not None
    return found.loosely()


def struct(random_: random.Random, depth: int) -> dict[str, Any]:
    names = random_.sample(sorted(FIELDS), random_.randint(1, 4))
    fields = {name: copy.deepcopy(FIELDS[name]) for name in names}
    if depth:
        fields["inner"] = struct(random_, depth - 1)
    wrapped = {"type": "object", "properties": fields}
    return random_.choice([wrapped, {"type": "array", "items": wrapped}]) if depth < 2 else wrapped


def crd(random_: random.Random, group: str, plural: str, shared: list[dict[str, Any]]) -> dict[str, Any]:
    document = copy.deepcopy(CLEAN)
    document["metadata"]["name"] = f"{plural}.{group}"
    document["spec"] |= {"group": group, "names": {"kind": plural.title(), "plural": plural}}
    version = document["spec"]["versions"][0]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        for number in range(random_.randint(1, 3)):
            chosen = random_.choice([*shared, struct(random_, 1)])
            properties[part]["properties"][f"part{number}"] = copy.deepcopy(chosen)
    properties["spec"]["properties"]["whole"] = copy.deepcopy(shared[0])
    path = "." + ".".join(["spec", "whole", next(iter(shared[0]["properties"]))])
    version["additionalPrinterColumns"].append({"name": "Part", "type": "string", "jsonPath": path})
    return document


def findings(path: Path, *, folded: bool = True) -> list[Finding]:
    diagnostics = Diagnostics()
    package = Package(name="linted", sources=(PathSource(path),))
    api = read_api(package, diagnostics)
    assert not diagnostics.has_errors, [str(d) for d in diagnostics]
    return lint(fold(api, known(), by_file=True) if folded else api, Settings())


def shown(found: list[Finding]) -> set[str]:
    return {str(each.diagnostic) for each in found if each.rule.of_api is None}


def bare(found: list[Finding]) -> set[tuple[str, str]]:
    """Rules and messages without the path: what is folded is reported at one of its places."""
    return {
        (each.rule.code, each.diagnostic.message.rpartition(": ")[2].rpartition(".")[2]) for each in found
    }


@pytest.mark.parametrize("seed", range(12))
def test_a_folder_has_the_findings_of_its_files(seed: int, tmp_path: Path) -> None:
    random_ = random.Random(seed)
    shared = [{**struct(random_, 2), "type": "object"} for _ in range(3)]
    groups = ["example.com", "other.example.com", "third.org"]
    expected = set[str]()
    for number in range(4):
        documents = [
            crd(random_, random_.choice(groups), plural, shared)
            for plural in (f"things{number}", f"boxes{number}")
        ]
        file = tmp_path / f"{number}.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        alone = findings(file)
        expected |= shown(alone)
        assert bare(alone) == bare(findings(file, folded=False))
    assert shown(findings(tmp_path)) == expected


def test_a_struct_that_two_groups_share_is_entered(tmp_path: Path) -> None:
    part = {"type": "object", "properties": {"isReady": {"type": "boolean"}, "name": {"type": "string"}}}
    documents = []
    for group in ("a.example.com", "b.example.com"):
        document = copy.deepcopy(CLEAN)
        document["metadata"]["name"] = f"things.{group}"
        document["spec"]["group"] = group
        version = document["spec"]["versions"][0]
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["part"] = part
        column = {"name": "Part", "type": "string", "jsonPath": ".spec.part.name"}
        version["additionalPrinterColumns"].append(column)
        documents.append(document)
    file = tmp_path / "bundle.yaml"
    file.write_text(yaml.safe_dump_all(copy.deepcopy(documents)))
    found = findings(file)
    assert [each.rule.code for each in found if each.rule.code == "L310"] == []
    assert [each.path for each in found if each.rule.code == "L112"] == [
        "things.a.example.com/v1: spec.part.isReady"
    ]


def test_a_copy_that_requires_other_fields_is_not_its_authors(tmp_path: Path) -> None:
    text = {"type": "string"}
    fields = dict.fromkeys(("effect", "key", "operator", "value", "wrong"), text)
    found = {}
    for name, taken in (("toleration", fields.keys() - {"wrong"}), ("other", fields.keys() - {"effect"})):
        document = copy.deepcopy(CLEAN)
        version = document["spec"]["versions"][0]
        item = {"type": "object", "required": ["key"], "properties": dict.fromkeys(sorted(taken), text)}
        item["properties"]["tolerationSeconds"] = {"type": "integer", "format": "int64"}
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][name] = item
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document))
        found[name] = [each.path for each in findings(file) if each.rule.code == "L401"]
    assert found["toleration"] == ["things.example.com/v1: spec.toleration"]
    assert len(found["other"]) == 6
