"""Types as the CRD says: no class of another group's kind, and a model that its type lets a user write is not refused
for a field that is missing. Two objects of every kind: with what the constructors ask for alone, and with every field
set, each part of it with what its constructor asks for and one level more."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
import yaml
from tests.compiler.real.constructed import write
from tests.compiler.real.test_constructed import DATA, OWN, PROJECTS, definitions

from kubewright.config import Package, PathSource
from kubewright.pipeline import build

Json = Any
IMPORTED = re.compile(r"^from kubernetes_api\.\w+ import models as (\w+)", re.MULTILINE)
KINDS = (
    "Deployment|DaemonSet|StatefulSet|ReplicaSet|ReplicationController|Job|CronJob|HorizontalPodAutoscaler"
)


def instance(annotation: Any, depth: int, inside: tuple[type, ...] = ()) -> Any:
    """A value of a type; fields that may be left out are set down to ``depth``."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kind = next(each for each in members if each not in (NoneType, msgspec.UnsetType))
    origin = get_origin(kind)
    if origin is Literal:
        return get_args(kind)[0]
    if origin is list:
        return [instance(get_args(kind)[0], depth, inside)] if depth > 0 else []
    if origin is dict:
        return {"key": instance(get_args(kind)[1], depth, inside)} if depth > 0 else {}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        deeper = depth - inside.count(kind) * 10
        return kind(
            **{
                field.name: instance(field.type, deeper - 1, (*inside, kind))
                for field in msgspec.structs.fields(kind)
                if field.required or (deeper > 0 and field.name not in ("api_version", "kind", "metadata"))
            }
        )
    plain = {str: "", int: 0, float: 0.0, bool: False, datetime: datetime(2026, 1, 2, tzinfo=UTC)}
    return plain.get(kind, {})


def missing(schema: Json, value: Json, path: str = "") -> Iterator[str]:
    """The required fields that ``value`` lacks once a server has filled in defaults."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, child in properties.items():
            if name not in value and child.get("default") is not None:
                value[name] = deepcopy(child["default"])
        yield from (f"{path}.{name}" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            child = properties.get(name) or schema.get("additionalProperties")
            if isinstance(child, dict):
                yield from missing(child, inner, f"{path}.{name}")
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        for inner in value:
            yield from missing(schema["items"], inner, f"{path}[]")


def foreign(text: str) -> Iterator[str]:
    """The types of ``kubernetes_api`` in a module that are a kind's alone."""
    for alias in IMPORTED.findall(text):
        for name in re.findall(rf"\b{alias}\.(\w+)", text):
            if re.match(f"{KINDS}|.+(Condition|Status)$", name):
                yield f"{alias}.{name}"


def check(crds: list[Json], folder: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    (folder / "crds.yaml").write_text(yaml.safe_dump_all(crds))
    built = build(Package(name=package, sources=(PathSource(folder / "crds.yaml"),)), folder)
    write(built, folder)
    for path, content in built.tree.files.items():
        if path.endswith("models.py"):
            assert not list(foreign(content.decode())), path
    monkeypatch.syspath_prepend(folder)
    scheme = importlib.import_module(f"{package}.scheme").SCHEME
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            model = scheme.class_for(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            for depth in (0, 1, 2, 4, 8):
                value = json.loads(msgspec.json.encode(instance(model, depth)))
                lacking = list(missing(version["schema"]["openAPIV3Schema"], value))
                assert not lacking, (model, depth, lacking[:5])


@pytest.mark.parametrize("name", OWN)
def test_minimal_models_of_our_own_definitions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(definitions(OWN[name]), tmp_path, monkeypatch, f"minimal_{name}_api")


@pytest.mark.shared
@pytest.mark.parametrize("name", PROJECTS)
def test_minimal_models_of_projects(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check(definitions(DATA / name), tmp_path, monkeypatch, f"minimal_{name.replace('-', '_')}_api")
