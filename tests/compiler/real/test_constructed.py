"""Packages of real CRDs can be used: from the files of their repositories, and as a cluster shows them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.compiler.real.constructed import construct, exported, write

import apimachinery.meta.resources
import kubewright.ir.api
from kubewright.config import Package, PathSource
from kubewright.emit.python.code.constructor import UNSAID
from kubewright.pipeline import build

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "crds"
OWN = {
    "backup": ROOT / "specs" / "backup" / "crds",
    "website": ROOT / "examples" / "operator" / "crds",
    "versions": ROOT / "examples" / "versions" / "crds",
}


def definitions(folder: Path) -> list[Any]:
    """The CustomResourceDefinitions in the files of a folder."""
    loaded = (
        document
        for path in sorted(folder.rglob("*.yaml"))
        for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
    )
    return [each for each in loaded if isinstance(each, dict) and each["kind"] == "CustomResourceDefinition"]


def check(crds: list[Any], folder: Path) -> None:
    """Builds packages of ``crds`` as they are and as a cluster shows them: both have the same clients."""
    assert crds
    found = []
    shown = {"apiVersion": "v1", "kind": "List", "items": [exported(crd) for crd in crds], "metadata": {}}
    for name, documents in (("plain_api", crds), ("exported_api", [shown])):
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        built = build(Package(name=name, sources=(PathSource(path),)), folder)
        assert not built.diagnostics.has_errors, list(built.diagnostics)
        write(built, folder)
        found.append(construct(folder, name))
    assert found[0] == found[1] > 0


@pytest.mark.parametrize("name", OWN)
def test_clients_of_our_own_definitions_are_built(name: str, tmp_path: Path) -> None:
    check(definitions(OWN[name]), tmp_path)


PROJECTS = [
    pytest.param(path.name, marks=() if path.name in ("keda", "velero") else pytest.mark.thorough)
    for path in (sorted(DATA.iterdir()) if DATA.is_dir() else ())
]


@pytest.mark.shared
@pytest.mark.parametrize("name", PROJECTS)
def test_clients_of_projects_are_built(name: str, tmp_path: Path) -> None:
    check(definitions(DATA / name), tmp_path)


def test_a_group_may_be_called_meta(tmp_path: Path) -> None:
    [crd] = definitions(OWN["website"])
    check([{**crd, "spec": {**crd["spec"], "group": "meta.example.dev"}}], tmp_path)


@pytest.mark.parametrize("name", ["Group", "Resource", "Subresource", "PrinterColumn"])
def test_a_record_of_the_compiler_is_one_of_the_runtime(name: str) -> None:
    compiled, run = getattr(kubewright.ir.api, name), getattr(apimachinery.meta.resources, name)
    assert {each.name for each in fields(compiled)} - UNSAID == {each.name for each in fields(run)}
