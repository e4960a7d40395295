"""What is made of a kind does not depend on what its group is called: groups below k8s.io are like all others.

Nor does it take an aggregated server's types, which the documents name ``io.k8s.metrics.…``, for those of a CRD.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubewright.config import Package, PathSource
from kubewright.emit.registry import LANGUAGES
from kubewright.pipeline import build

PARCELS = Path(__file__).parent / "spec" / "parcels.yaml"
PLAIN = "post.example.com"


def made(folder: Path, language: str, group: str) -> dict[str, str]:
    """The files, with the names of the group replaced by those of ``PLAIN``."""
    crd = PARCELS.read_text().replace(PLAIN, group)
    name = f"parcels.{group}"
    approved = f"{{name: {name}, annotations: {{api-approved.kubernetes.io: unapproved}}}}"
    folder.mkdir()
    (folder / "crd.yaml").write_text(crd.replace(f"{{name: {name}}}", approved))
    package = Package(
        name="parcels",
        sources=(PathSource(folder, "specs"),),
        language=language,
        settings=(("module", "m"),) * (language == "go"),
    )
    built = build(package, folder / "out")
    assert not built.diagnostics.has_errors, [*map(str, built.diagnostics)]

    def plain(text: str) -> str:
        for separator, step in ((".", 1), (".", -1), ("_", 1)):
            text = text.replace(
                separator.join(group.split(".")[::step]), separator.join(PLAIN.split(".")[::step])
            )
        return text

    return {plain(path): plain(content.decode()) for path, content in built.tree.files.items()}


@pytest.mark.parametrize("group", ["post.networking.k8s.io", "post.cluster.x-k8s.io"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_group_below_k8s_io_is_like_any_other(language: str, group: str, tmp_path: Path) -> None:
    wanted, got = made(tmp_path / "a", language, PLAIN), made(tmp_path / "b", language, group)
    assert got.keys() == wanted.keys()
    for path, text in wanted.items():
        if not path.endswith("MANIFEST.sha256"):
            read = json.loads if path.endswith(".json") else str.splitlines
            assert read(got[path]) == read(text), path


DOCUMENT = {
    "openapi": "3.0.0",
    "info": {"title": "metrics", "version": "1"},
    "paths": {},
    "components": {
        "schemas": {
            "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics": {
                "type": "object",
                "required": ["window", "mode"],
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"type": "object", "default": {}},
                    "window": {"type": "integer", "default": 0},
                    "mode": {"type": "string", "default": "fast", "enum": ["fast", "slow"]},
                },
                "x-kubernetes-group-version-kind": [
                    {"group": "metrics.k8s.io", "version": "v1beta1", "kind": "NodeMetrics"}
                ],
            }
        }
    },
}


def test_the_zeros_that_a_document_states_are_no_defaults(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text(json.dumps(DOCUMENT))
    package = Package(
        name="metrics", sources=(PathSource(tmp_path),), language="typescript", documentation=True
    )
    text = build(package, tmp_path / "out").tree.files["metrics_v1beta1.ts"].decode()
    assert "  window: number;\n" in text
    assert '  /** @defaultValue "fast" */\n  mode?: "fast" | "slow";\n' in text
    assert text.count("@defaultValue") == 1
