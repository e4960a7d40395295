"""The flavours of typed models: each is imported, type-checked, and reads and writes real objects."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
import sys
import typing
from pathlib import Path
from typing import Any

import black
import msgspec
import pytest
import yaml
from tests.crds import crd_text
from tests.mypy_run import mypy

from kubewright.cli import main
from kubewright.config import KubernetesSource, Package, PathSource, Source
from kubewright.pipeline import build

ROOT = Path(__file__).parents[3]
SPECS = ROOT / "specs"
FLAVOURS = ["pydantic", "dataclass", "typeddict"]
POD: dict[str, Any] = yaml.safe_load("""
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}, creationTimestamp: "2026-01-02T03:04:05Z"}
spec:
  containers:
  - name: web
    image: web:1
    ports: [{containerPort: 8080, hostIP: 127.0.0.1}]
    livenessProbe: {httpGet: {path: /, port: 8080}}
    readinessProbe: {httpGet: {path: /, port: http}}
    resources: {limits: {cpu: "1", memory: 1Gi}}
""")


def write(folder: Path, package: str, source: Source, models: str) -> None:
    built = build(Package(name=package, sources=(source,), models=models, only=("models",)), folder / package)
    assert [str(item) for item in built.diagnostics if item.severity.value == "error"] == []
    for path, content in built.tree.files.items():
        target = folder / package / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def workloads(folder: Path) -> Path:
    """An OpenAPI document of Pod, Deployment and all that they refer to, without the kinds of volumes, affinity and
    containers of other kinds, which are sixty more of one form (the thorough run has all 862 definitions)."""
    known = json.loads((ROOT / "generated/kubernetes_api/definitions.json").read_bytes())
    wanted, waiting = {}, ["io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment"]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted[name] = known[name]
            for alike in ("volumes", "affinity", "initContainers", "ephemeralContainers"):
                wanted[name].get("properties", {}).pop(alike, None)
            waiting += re.findall('"#/definitions/([^"]+)"', json.dumps(known[name]))
    document = {"swagger": "2.0", "info": {"title": "a", "version": "1"}, "paths": {}, "definitions": wanted}
    path = folder / "workloads.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flavours")
    core = PathSource(workloads(tmp_path_factory.mktemp("specs")))
    for models in FLAVOURS:
        write(folder, f"core_{models}", core, models)
        write(folder, f"backup_{models}", PathSource(SPECS / "backup" / "crds"), models)
        write(folder, f"messaging_{models}", PathSource(SPECS / "messaging" / "openapi.yaml"), models)
        write(folder, f"flags_{models}", PathSource(SPECS / "flags" / "openapi.yaml"), models)
    sys.path.insert(0, str(folder))
    return folder


def load(packages: Path, module: str, name: str) -> Any:
    del packages
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("models", FLAVOURS)
@pytest.mark.parametrize("api", ["core", "backup", "messaging", "flags"])
def test_modules_import_without_warnings_and_are_formatted(packages: Path, api: str, models: str) -> None:
    for path in sorted((packages / f"{api}_{models}").rglob("*.py")):
        module = ".".join(path.relative_to(packages).with_suffix("").parts).removesuffix(".__init__")
        importlib.import_module(module)
        if path.name == "models.py" and (
            api != "core" or models == "dataclass"
        ):  # large; `all` has the others
            source = path.read_text()
            assert black.format_str(source, mode=black.Mode(line_length=110)) == source


def test_all_flavours_pass_mypy_strict(packages: Path) -> None:
    pass_mypy(packages)


@pytest.mark.thorough
@pytest.mark.parametrize("models", FLAVOURS)
def test_all_built_in_kinds_in_every_flavour(models: str, tmp_path: Path) -> None:
    write(tmp_path, f"all_{models}", KubernetesSource("1.37"), models)
    pass_mypy(tmp_path)
    test_modules_import_without_warnings_and_are_formatted(tmp_path, "all", models)


def pass_mypy(packages: Path) -> None:
    found = mypy(packages, ".", path=(ROOT / "generator", packages))
    assert found.returncode == 0, found.stdout


def test_pydantic_reads_and_writes_a_pod(packages: Path) -> None:
    pod = load(packages, "core_pydantic.core_v1", "Pod").model_validate(POD)
    web = pod.spec.containers[0]
    assert web.liveness_probe.http_get.port == 8080
    assert web.readiness_probe.http_get.port == "http"
    assert web.ports[0].host_ip == "127.0.0.1"
    assert pod.model_dump(mode="json", by_alias=True, exclude_none=True) == POD


def test_pydantic_refuses_a_wrong_type(packages: Path) -> None:
    pod = load(packages, "core_pydantic.core_v1", "Pod")
    with pytest.raises(ValueError, match="containerPort"):
        wrong = msgspec.json.decode(msgspec.json.encode(POD))
        wrong["spec"]["containers"][0]["ports"][0]["containerPort"] = "many"
        pod.model_validate(wrong)


def test_dataclasses_have_wire_names(packages: Path) -> None:
    pod = msgspec.convert(POD, load(packages, "core_dataclass.core_v1", "Pod"))
    assert pod.spec.containers[0].livenessProbe.httpGet.port == 8080
    assert pod.metadata.creationTimestamp == "2026-01-02T03:04:05Z"

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if item is not None}
        return [bare(item) for item in value] if isinstance(value, list) else value

    assert bare(dataclasses.asdict(pod)) == POD


def test_typed_dicts_are_the_json_form(packages: Path) -> None:
    pod = load(packages, "core_typeddict.core_v1", "Pod")
    assert msgspec.convert(POD, pod) == POD
    subscription = load(packages, "messaging_typeddict.messaging_v1", "SubscriptionSpec")
    assert {"from", "continue", "class", "$ref", "items"} <= typing.get_type_hints(subscription).keys()


@pytest.mark.parametrize("models", FLAVOURS)
def test_names_say_where_a_type_belongs(packages: Path, models: str) -> None:
    module = importlib.import_module(f"backup_{models}.backup_v1")
    names = set(module.__all__)
    assert {"BackupSchedule", "BackupScheduleSpec", "BackupScheduleSpecStore", "BackupStoreSpec"} <= names
    assert not [name for name in names if name[-1].isdigit()]


def samples(api: str) -> list[Any]:
    paths = sorted((SPECS / api / "samples").glob("*.yaml"))
    return [sample for path in paths for sample in yaml.load_all(path.read_text(), yaml.CSafeLoader)]


@pytest.mark.parametrize("api", ["backup", "messaging", "flags"])
def test_pydantic_keeps_samples_whole(packages: Path, api: str) -> None:
    for sample in samples(api):
        version = sample["apiVersion"].rpartition("/")[2]
        kind = load(packages, f"{api}_pydantic.{api}_{version}", sample["kind"])
        assert (
            kind.model_validate(sample).model_dump(mode="json", by_alias=True, exclude_unset=True) == sample
        )


def test_dataclasses_read_samples(packages: Path) -> None:
    for sample in samples("backup"):
        version = sample["apiVersion"].rpartition("/")[2]
        msgspec.convert(sample, load(packages, f"backup_dataclass.backup_{version}", sample["kind"]))


ENUMS = crd_text(
    "Pool",
    """\
type: object
required: [mode]
properties:
  mode: {type: string, enum: [Always, never-ever, "", 4x], default: Always}
  size: {type: integer, enum: [1, 2]}
  tags: {type: array, items: {type: string, enum: [a, b]}, default: [a]}
  ports: {type: array, items: {type: object, properties: {mode: {type: string, enum: [Always, Never]}}}}
  free:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties: {a: {type: string}, from: {type: string}}
""",
)
POOL = {
    "apiVersion": "example.com/v1",
    "kind": "Pool",
    "spec": {
        "mode": "never-ever",
        "size": 2,
        "tags": ["b"],
        "ports": [{"mode": "Never"}],
        "free": {"a": None, "from": "here", "more": {"deep": [1]}},
    },
}


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pools")
    (folder / "crd.yaml").write_text(ENUMS)
    for models in ("msgspec", "pydantic", "dataclass"):
        arguments = ["generate", str(folder / "crd.yaml"), "--package", f"pools_{models}", "--models", models]
        assert main([*arguments, "--enums", "enum", "--output", str(folder), "-q", "-j1"]) == 0
    sys.path.insert(0, str(folder))
    return folder


@pytest.mark.parametrize("models", ["msgspec", "pydantic", "dataclass"])
def test_enums_are_classes_where_that_is_asked_for(pools: Path, models: str) -> None:
    module = importlib.import_module(f"pools_{models}.example_v1")
    members = {each.name: each.value for each in module.PoolSpecMode}
    assert members == {"ALWAYS": "Always", "NEVER_EVER": "never-ever", "EMPTY": "", "VALUE_4X": "4x"}
    made = module.PoolSpec()
    assert made.mode is None and made.tags is None  # the server knows their defaults
    if models == "msgspec":
        scheme = importlib.import_module("pools_msgspec.scheme").SCHEME
        pool = scheme.from_dict(POOL)
        assert scheme.to_dict(pool)["spec"]["mode"] == "never-ever"
    elif models == "pydantic":
        pool = module.Pool.model_validate(POOL)
        assert pool.model_dump(mode="json", by_alias=True, exclude_unset=True) == POOL
    else:
        pool = importlib.import_module("pools_dataclass.json_form").decode(POOL, module.Pool)
    assert pool.spec.mode is module.PoolSpecMode.NEVER_EVER and pool.spec.size is module.PoolSpecSize.VALUE_2


def test_dataclasses_keep_the_unknown_fields_that_the_schema_keeps(pools: Path) -> None:
    form = importlib.import_module("pools_dataclass.json_form")
    models = importlib.import_module("pools_dataclass.example_v1")
    pool = form.decode(POOL, models.Pool)
    assert pool.spec.free.from_ == "here"
    assert form.encode(pool) == POOL
    pool.spec.free.a = "x"
    assert form.encode(pool)["spec"]["free"] == {"a": "x", "from": "here", "more": {"deep": [1]}}
    dropped = form.decode({**POOL, "unknown": 1}, models.Pool)
    assert "unknown" not in form.encode(dropped)
    for spec, text in (
        ({"size": 3}, "Invalid enum value 3"),
        ({"ports": [{"mode": 1}]}, r"at `\$.spec.ports\[0\].mode`"),
    ):
        with pytest.raises(msgspec.ValidationError, match=text):
            form.decode({**POOL, "spec": spec}, models.Pool)


@pytest.mark.thorough
def test_enums_pass_mypy(pools: Path) -> None:
    pass_mypy(pools)
