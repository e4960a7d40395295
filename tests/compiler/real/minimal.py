"""Whether the types of a package are as its CRDs say: objects of every kind with what constructors ask for, held
against the schemas, and classes that are another group's.

    python tests/compiler/real/minimal.py PACKAGE FOLDER

prints how many objects were tried and a line for each fault; FOLDER has the CRDs.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from apimachinery.wire.yaml import decode_all

Json = Any
DEPTHS = (0, 1, 2, 4, 8)
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


def foreign_types(folder: Path) -> Iterator[str]:
    """The same in a package, with the module."""
    for path in sorted(folder.rglob("models.py")):
        yield from (
            f"{path.relative_to(folder)}: {name} is another group's" for name in foreign(path.read_text())
        )


def refused(package: str, crds: list[Json]) -> Iterator[list[str]]:
    """For each object that was tried, the required fields that it lacks."""
    scheme = importlib.import_module(f"{package}.scheme").SCHEME
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            model = scheme.class_for(f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            for depth in DEPTHS:
                value = json.loads(msgspec.json.encode(instance(model, depth)))
                lacking = missing(version["schema"]["openAPIV3Schema"], value)
                yield [
                    f"{model.__module__}.{model.__name__}, depth {depth}: lacks {path}" for path in lacking
                ]


def definitions(folder: Path) -> Iterator[Json]:
    """The definitions in a folder as it is: kustomize patches of some are none, templates are not YAML yet."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".yaml", ".yml", ".json"):
            continue
        try:
            documents = list(decode_all(path.read_bytes()))
        except ValueError:
            continue
        for each in documents:
            if isinstance(each, dict) and each.get("kind") == "CustomResourceDefinition":
                if "versions" in each.get("spec", ()) and each["spec"].get("group"):
                    yield each


def main(package: str, folder: str) -> None:
    crds = {crd["metadata"]["name"]: crd for crd in definitions(Path(folder))}
    tried = [*refused(package, [*crds.values()])]
    print(len(tried))
    for fault in (*foreign_types(Path(package)), *(fault for found in tried for fault in found)):
        print(fault)


if __name__ == "__main__":
    main(*sys.argv[1:])
