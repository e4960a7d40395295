"""Types as the CRD says: no class of another group's kind, and a model that its type lets a user write is not refused
for a field that is missing. Objects of every kind: with what the constructors ask for alone, and with every field set,
each part of it with what its constructor asks for, down to several depths."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.compiler.real.constructed import write
from tests.compiler.real.minimal import DEPTHS, Json, foreign_types, refused
from tests.compiler.real.test_constructed import DATA, OWN, PROJECTS, definitions

from kubewright.config import Package, PathSource
from kubewright.pipeline import build


def check(crds: list[Json], folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    (folder / "crds.yaml").write_text(yaml.safe_dump_all(crds))
    built = build(Package(name=package, sources=(PathSource(folder / "crds.yaml"),)), folder)
    write(built, folder)
    assert not list(foreign_types(folder / package))
    monkeypatch.syspath_prepend(folder)
    found = list(refused(package, crds))
    assert len(found) == len(DEPTHS) * sum(len(crd["spec"]["versions"]) for crd in crds)
    assert not [fault for faults in found for fault in faults]


@pytest.mark.parametrize("name", OWN)
def test_minimal_models_of_our_own_definitions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(definitions(OWN[name]), tmp_path, monkeypatch, f"minimal_{name}_api")


@pytest.mark.shared
@pytest.mark.parametrize("name", PROJECTS)
def test_minimal_models_of_projects(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(definitions(DATA / name), tmp_path, monkeypatch, f"minimal_{name.replace('-', '_')}_api")
