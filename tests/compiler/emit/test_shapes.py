"""Equal inline objects become one class: where it is, and that modules can import each other's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from kubewright.config import Package, PathSource
from kubewright.pipeline import build

ROOT = Path(__file__).parents[3]


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


LEAF = record(host={"type": "string"}, port={"type": "integer"})
PART = record(reads=LEAF, writes=LEAF)


def crd(**versions: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "cups.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "cups", "singular": "cup", "kind": "Cup", "listKind": "CupList"},
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == "v1",
                    "schema": {"openAPIV3Schema": record(spec=spec)},
                }
                for name, spec in versions.items()
            ],
        },
    }


def test_versions_that_share_shapes_can_be_imported(tmp_path: Path) -> None:
    """The older version has the part on top, the newer one further down: all of it is at home in the newer one."""
    source = tmp_path / "cups.yaml"
    source.write_text(
        yaml.safe_dump(crd(v1=record(deep=record(deeper=record(part=PART))), v1beta1=record(part=PART)))
    )
    built = build(Package(name="cups_api", sources=(PathSource(source),)), tmp_path / "cups_api")
    assert [str(item) for item in built.diagnostics if item.severity.value == "error"] == []
    for path, content in built.tree.files.items():
        target = tmp_path / "cups_api" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    assert b"example_v1beta1" not in built.tree.files["example_v1/models.py"]
    for module in ("example_v1", "example_v1beta1"):
        program = f"from cups_api.{module}.models import Cup; Cup.__doc__"
        path = [str(tmp_path), str(ROOT / "generator"), str(ROOT / "generated")]
        code = f"import sys; sys.path[:0] = {path!r}; {program}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
