"""Realistic objects through the typed models and back: nothing that the models know is lost."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from tests.bench.bench_models import pod, pod_list

from kubernetes_api.apiextensions_v1 import CustomResourceDefinition
from kubernetes_api.apps_v1 import Deployment
from kubernetes_api.core_v1 import Pod, PodList
from kubewright.config import Package, PathSource
from kubewright.pipeline import build

ROOT = Path(__file__).parents[3]
GATEWAY = (
    ROOT / ".." / "shared" / "data" / "crds" / "gateway-api" / "httproutes.gateway.networking.k8s.io.yaml"
)
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "generation": 3},
    "spec": {
        "replicas": 0,
        "paused": False,
        "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod(1)["spec"]},
    },
    "status": {"observedGeneration": 3, "conditions": [{"type": "Available", "status": "True"}]},
}
ROUTE = {
    "apiVersion": "gateway.networking.k8s.io/v1",
    "kind": "HTTPRoute",
    "metadata": {"name": "shop", "namespace": "shop"},
    "spec": {
        "parentRefs": [{"name": "edge", "sectionName": "https"}],
        "hostnames": ["shop.example"],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/cart"}, "method": "GET"}],
                "filters": [
                    {
                        "type": "RequestHeaderModifier",
                        "requestHeaderModifier": {"add": [{"name": "a", "value": "b"}]},
                    }
                ],
                "backendRefs": [{"name": "cart", "port": 8080, "weight": 90}],
                "timeouts": {"request": "10s"},
            }
        ],
    },
}


def there_and_back(value: Any, model: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(msgspec.json.decode(json.dumps(value), type=model)))


@pytest.mark.parametrize(
    ("value", "model"), [(pod(7), Pod), (DEPLOYMENT, Deployment)], ids=["Pod", "Deployment"]
)
def test_objects_are_kept_whole(value: Any, model: Any) -> None:
    assert there_and_back(value, model) == value


def test_a_list_of_thousand_pods_is_kept_whole() -> None:
    value = pod_list(1000)
    assert there_and_back(value, PodList) == value


@pytest.mark.parametrize(
    "path", sorted((ROOT / "specs" / "backup" / "crds").glob("*.yaml")), ids=lambda p: p.stem
)
def test_a_custom_resource_definition_is_kept_whole(path: Path) -> None:
    value = yaml.load(path.read_text(), yaml.CSafeLoader)
    assert there_and_back(value, CustomResourceDefinition) == value


@pytest.mark.shared
def test_an_http_route_is_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not GATEWAY.exists():
        pytest.skip("the ../shared folder of recordings is absent")
    built = build(Package(name="gateway_roundtrip", sources=(PathSource(GATEWAY),)), tmp_path)
    for path, content in built.tree.files.items():
        target = tmp_path / "gateway_roundtrip" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = importlib.import_module("gateway_roundtrip.gateway_v1")
    assert "HTTPRouteSpecRule" in module.__all__
    assert there_and_back(ROUTE, module.HTTPRoute) == ROUTE
