"""Real inputs: whatever is in the ../shared folder of recordings generates, imports and passes mypy --strict.

What goes in comes out: each definition of an input is a class or an alias of the generated package. mypy looks at
one input of each kind here, and at all of them in ``make test-real``.
"""

from __future__ import annotations

import importlib
import json
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from _pytest.mark.structures import ParameterSet
from tests.mypy_run import mypy

from kubewright.config import KubernetesSource, Package, PathSource, Source
from kubewright.pipeline import Built, build

ROOT = Path(__file__).parents[3]
DATA = ROOT / ".." / "shared" / "data"
INPUTS: dict[str, Source] = {
    "swagger_v2": PathSource(DATA / "kubernetes-1.36" / "swagger.json"),
    "openapi_v3": PathSource(DATA / "kubernetes-1.36" / "openapi-v3"),
    "crds": PathSource(DATA / "crds"),
    "crds_flux": PathSource(DATA / "crds" / "flux"),
    "kubernetes_1_25": KubernetesSource("1.25"),
    "kubernetes_1_37": KubernetesSource("1.37"),
}


ALIKE = {"swagger_v2", "openapi_v3", "kubernetes_1_25"}
"""Inputs that bring mypy nothing which another one does not."""
LONG = {"crds"}
"""Inputs that take more than half a minute, of which another is a part."""


@cache
def made(name: str) -> Built:
    """The package of an input, in memory."""
    return build(Package(name=f"real_{name}", sources=(source_of(name),)), Path(f"real_{name}"))


def params(thorough: set[str]) -> list[ParameterSet]:
    """All inputs; those of ``thorough`` in `make test-real` alone."""
    return [pytest.param(name, marks=pytest.mark.thorough if name in thorough else ()) for name in INPUTS]


def source_of(name: str) -> Source:
    source = INPUTS[name]
    if isinstance(source, PathSource) and not source.path.exists():
        pytest.skip("the ../shared folder of recordings is absent")
    return source


def definitions_in(source: Source) -> int:
    """How many definitions an input holds, counted without the compiler."""
    if isinstance(source, KubernetesSource):
        from kubewright.source.kubernetes_validate import definitions_file

        path = definitions_file(source.release, with_prose=True)
        assert path is not None
        return len(json.loads(path.read_bytes())["$defs"])
    if source.path.is_file():
        return len(json.loads(source.path.read_bytes())["definitions"])
    names: set[str] = set()
    for path in sorted(source.path.rglob("*.json")):
        names |= json.loads(path.read_bytes()).get("components", {}).get("schemas", {}).keys()
    for path in sorted(source.path.rglob("*.yaml")):
        for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader):
            spec = document["spec"]
            for version in spec["versions"]:
                names.add(f"{spec['group']}/{version['name']}/{spec['names']['kind']}")
    return len(names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("real")
    sys.path.insert(0, str(place))
    return place


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("name", params(ALIKE | LONG))
def test_generates_imports_and_passes_mypy(folder: Path, name: str) -> None:
    built = made(name)
    package = built.package
    errors = [str(item) for item in built.diagnostics if item.severity.value == "error"]
    assert errors == []
    for path, content in built.tree.files.items():
        target = folder / package.name / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    for module in sorted((folder / package.name).glob("*/models.py")):
        importlib.import_module(f"{package.name}.{module.parent.name}.models")
    found = mypy(folder, "-p", package.name, path=(ROOT / "generator", folder))
    assert found.returncode == 0, found.stdout[-3000:]


@pytest.mark.shared
@pytest.mark.parametrize("name", params(LONG))
def test_what_goes_in_comes_out(name: str) -> None:
    built = made(name)
    brought = definitions_in(source_of(name))
    # A definition the input only refers to (meta/v1 of a CRD) is linked in beside its own; a list kind is made
    # for each version of a CRD. Nothing of the input may be missing without a reason.
    # Equal inline objects of CRDs are definitions of their own, so there may be more than came in.
    assert built.definitions >= brought
    if not name.startswith("crds"):
        assert built.definitions == brought
    classes = sum(
        content.count(b"\nclass ") + content.count(b": TypeAlias = ")
        for path, content in built.tree.files.items()
        if path.endswith("models.py")
    )
    assert classes >= built.definitions
