"""The manifests on a server for tests. Run by ``make test``, and by ``pytest`` in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.meta.errors import ApiError
from kubernetes_api.apps_v1 import Deployment
from kubernetes_api.scheme import SCHEME
from kubewright.cli import main
from kubewright.testing import ApiServer

HERE = Path(__file__).parent
MANIFESTS = sorted((HERE / "apps").glob("*.yaml"))
CACHES = "/apis/shop.example.com/v1/namespaces/default/caches"
COLLECTIONS = {
    "Service": "/api/v1/namespaces/default/services",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Cache": CACHES,
}


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(crds=[HERE / "crds"]) as running:
        yield running


@pytest.fixture(scope="module")
def applied(server: ApiServer) -> dict[str, Any]:
    """What the server made of each manifest, by kind."""
    documents = [each for path in MANIFESTS for each in yaml.safe_load_all(path.read_text())]
    return {each["kind"]: server.request("POST", COLLECTIONS[each["kind"]], each) for each in documents}


def test_what_ci_runs_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    commands = [
        line for line in (HERE / "check.sh").read_text().splitlines() if line.startswith("kubewright ")
    ]
    assert [main(line.split()[1:]) for line in commands] == [0, 0, 0]


def test_a_server_takes_all_and_fills_in_defaults(applied: dict[str, Any]) -> None:
    assert applied["Cache"]["spec"] == {"memory": "512Mi", "replicas": 1, "eviction": "Oldest"}
    assert applied["Deployment"]["spec"]["strategy"]["type"] == "RollingUpdate"


def test_the_service_reaches_a_port_of_the_pods(applied: dict[str, Any]) -> None:
    (port,) = applied["Service"]["spec"]["ports"]
    containers = applied["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert port["targetPort"] in {each["name"] for container in containers for each in container["ports"]}


def test_every_container_says_how_much_memory_it_may_take() -> None:
    built_in = [
        text
        for path in MANIFESTS
        for text in path.read_text().split("---\n")
        if yaml.safe_load(text)["apiVersion"] in ("v1", "apps/v1")
    ]
    for each in map(SCHEME.decode_yaml, built_in):
        if isinstance(each, Deployment) and each.spec is not None and each.spec.template.spec is not None:
            for container in each.spec.template.spec.containers:
                assert container.resources is not None and container.resources.limits, container.name
                assert "memory" in container.resources.limits, container.name


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.memory: Required value"),
        ({"memory": "lots"}, "spec.memory: Invalid value"),
        ({"memory": "1Gi", "eviction": "None", "replicas": 2}, "evicts nothing must have one replica"),
    ],
)
def test_what_the_kind_refuses(server: ApiServer, spec: dict[str, Any], said: str) -> None:
    body = {"apiVersion": "shop.example.com/v1", "kind": "Cache", "metadata": {"name": "x"}, "spec": spec}
    with pytest.raises(ApiError, match=said):
        server.request("POST", CACHES, body)
