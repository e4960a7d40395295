"""Our own OpenAPI, read by our own compiler: what the server publishes, ``generate`` reads."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from apimachinery.server.describe.openapi_schemas import v2_schema
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.pipeline import read_api
from kubewright.testing import ApiServer

CRDS = Path(__file__).parents[2] / "specs/backup/crds"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openapi")
    (folder / "v3").mkdir()
    with ApiServer(crds=[CRDS]) as server:
        (folder / "v2.json").write_text(json.dumps(server.request("GET", "/openapi/v2")))
        for name, entry in json.loads(server.request("GET", "/openapi/v3"))["paths"].items():
            document = server.request("GET", entry["serverRelativeURL"])
            (folder / "v3" / f"{name.replace('/', '_')}.json").write_text(json.dumps(document))
    return folder


def test_names_of_operations_are_unique(published: Path) -> None:
    for path in (published / "v2.json", *(published / "v3").iterdir()):
        operations = [
            operation["operationId"]
            for item in json.loads(path.read_text())["paths"].values()
            for operation in item.values()
            if isinstance(operation, dict)
        ]
        assert [name for name, count in Counter(operations).items() if count > 1] == [], path.name


@pytest.mark.parametrize("name", ["v2.json", "v3"])
def test_what_is_published_is_read(name: str, published: Path) -> None:
    diagnostics = Diagnostics()
    api = read_api(Package(name="own", sources=(PathSource(published / name),)), diagnostics)
    assert [str(item) for item in diagnostics] == []
    kinds = {resource.kind for resource in api.resources}
    assert {"Deployment", "Pod", "BackupSchedule"} <= kinds


@pytest.mark.parametrize(
    ("schema", "expected"),
    [  # as kube-apiserver 1.36 publishes them
        ({"type": "string", "nullable": True, "minLength": 2, "default": "xx"}, {"minLength": 2}),
        (
            {"type": "object", "nullable": True, "required": ["x"], "properties": {"x": {"type": "string"}}},
            {"required": ["x"]},
        ),
        ({"type": "array", "nullable": True, "items": {"type": "string"}}, {}),
        (
            {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}},
            {"additionalProperties": {"type": "string"}},
        ),
        (
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            {"x-kubernetes-int-or-string": True},
        ),
        (
            {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "properties": {"x": {"type": "string"}},
            },
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "object", "properties": {"default": {"type": "string"}, "not": {"nullable": True}}},
            {"type": "object", "properties": {"default": {"type": "string"}, "not": {}}},
        ),
    ],
)
def test_a_custom_schema_in_v2(schema: dict[str, object], expected: dict[str, object]) -> None:
    assert v2_schema(schema) == expected
