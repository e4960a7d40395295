"""What a kube-apiserver publishes at /openapi/v2 and /openapi/v3, read by our compiler.

REFERENCE names the kubeconfig of one that runs (as for ``make differential``); the recorded documents, which have no
enums, are in ``tests/compiler/real``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from apimachinery.client.calls import Call
from apimachinery.client.config import Config
from apimachinery.client.connection import Client
from apimachinery.client.endpoint import Request
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.pipeline import build, read_api
from kubewright.tools.inputs.cluster import is_kubernetes_own

REFERENCE = os.environ.get("REFERENCE", "")
CHOICE: dict[str, Any] = {"type": "string", "enum": ["TCP", "UDP"], "default": ""}
POINT = {"type": "object", "required": ["x"], "properties": {"x": {"type": "string"}}}


LIST = {"type": "array"}


def document(title: str, **properties: Any) -> dict[str, Any]:
    schemas = {"Point": POINT, "Thing": {"type": "object", "properties": properties}}
    return {
        "openapi": "3.0.0",
        "info": {"title": title, "version": "1.36"},
        "paths": {},
        "components": {"schemas": schemas},
    }


ZEROS = {
    "protocol": CHOICE,
    "protocols": {**LIST, "items": CHOICE},
    "point": {"allOf": [{"$ref": "#/components/schemas/Point"}], "default": {}},
}


@pytest.mark.parametrize("title", ["Kubernetes", "Kubernetes CRD Swagger"])
def test_zero_values_as_defaults_are_a_server_s_own(title: str, tmp_path: Path) -> None:
    path = tmp_path / "v3.json"
    path.write_text(json.dumps(document(title, **ZEROS)))
    diagnostics = Diagnostics()
    read_api(Package(name="a", sources=(PathSource(path),)), diagnostics)
    assert [str(each) for each in diagnostics] == []


def test_defaults_that_no_zero_value_explains_are_faults(tmp_path: Path) -> None:
    path = tmp_path / "v3.json"
    wrong = {**CHOICE, "default": "SCTP6"}
    path.write_text(json.dumps(document("Kubernetes", protocol=wrong, protocols={**LIST, "items": wrong})))
    diagnostics = Diagnostics()
    read_api(Package(name="a", sources=(PathSource(path),)), diagnostics)
    assert [each.code for each in diagnostics] == ["K111", "K111"]


def test_markers_of_a_nullable_list_stay_in_v2_without_its_type(tmp_path: Path) -> None:
    spec = {"type": "object", "properties": {"items": {"x-kubernetes-list-type": "atomic"}}}
    about = {"title": "Kubernetes", "version": "1"}
    path = tmp_path / "v2.json"
    path.write_text(
        json.dumps({"swagger": "2.0", "info": about, "paths": {}, "definitions": {"a.v1.Thing": spec}})
    )
    diagnostics = Diagnostics()
    read_api(Package(name="a", sources=(PathSource(path),)), diagnostics)
    assert [str(each) for each in diagnostics] == []


@pytest.mark.thorough
@pytest.mark.shared
@pytest.mark.skipif(not REFERENCE, reason="REFERENCE names no kubeconfig of a kube-apiserver")
@pytest.mark.parametrize("form", ["v2", "v3"])
def test_what_a_running_kube_apiserver_publishes_is_generated(form: str, tmp_path: Path) -> None:
    with Client(Config.load(REFERENCE)) as client:

        def fetched(path: str) -> Any:
            return client.run(Call(Request("GET", path), json.loads, repeatable=True))

        if form == "v2":
            whole = fetched("/openapi/v2")
            whole["paths"] = {path: item for path, item in whole["paths"].items() if built_in(path)}
            own = {name: each for name, each in whole["definitions"].items() if name.startswith("io.k8s.")}
            whole["definitions"] = own
            (tmp_path / "v2.json").write_text(json.dumps(whole))
        else:
            for name, entry in fetched("/openapi/v3")["paths"].items():
                if built_in(f"/{name}/"):
                    one = tmp_path / f"{name.replace('/', '_')}.json"
                    one.write_text(json.dumps(fetched(entry["serverRelativeURL"])))
    built = build(Package(name="published", sources=(PathSource(tmp_path),)), tmp_path / "out")
    assert [str(each) for each in built.diagnostics] == []
    assert built.definitions > 500


def built_in(path: str) -> bool:
    """Not of a group that somebody's CRDs brought: those may hold anything."""
    group = path.split("/")[2] if path.startswith("/apis/") and path.count("/") > 2 else ""
    return is_kubernetes_own(group)
