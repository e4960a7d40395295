"""Both versions of a kind: converted by the command, by a server and in typed code. Run by ``make test``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from apimachinery.client import Config
from kubernetes_api.meta_v1 import ObjectMeta
from kubewright.cli import main
from kubewright.testing import ApiServer

HERE = Path(__file__).parent
GROUP = "news.example.com"
OLD = yaml.safe_load((HERE / "samples/daily-v1alpha1.yaml").read_text())


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The generated package, as `kubewright generate` makes it from kubewright.yaml."""
    folder = tmp_path_factory.mktemp("generated")
    assert main(["generate", "--config", str(HERE / "kubewright.yaml"), "--output", str(folder), "-q"]) == 0
    sys.path.insert(0, str(folder))
    yield "news_api"
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def server(package: str) -> Iterator[ApiServer]:
    with ApiServer(packages=("kubernetes_api", package)) as running:
        yield running


def converted(text: str, version: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / "in.yaml"
    path.write_text(text)
    words = ["convert", "-f", str(path), "--output-version", f"{GROUP}/{version}"]
    assert main([*words, "--crds", str(HERE / "crds"), "--rules", str(HERE)]) == 0
    return capsys.readouterr().out


def test_the_command_converts_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (HERE / "samples/daily-v1alpha1.yaml").read_text()
    new = converted(text, "v1", tmp_path, capsys)
    assert yaml.safe_load(new)["spec"] == {
        "recipient": {"email": "emma@example.com"},
        "topics": ["books"],
        "delivery": "Digest",
    }
    assert new.startswith("# The oldest reader\n")
    assert yaml.safe_load(converted(new, "v1alpha1", tmp_path, capsys)) == OLD


def test_what_the_old_version_has_no_place_for_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = {
        "recipient": {"email": "a@example.com", "name": "A"},
        "topics": ["x", "z"],
        "delivery": "Immediate",
    }
    new = {"apiVersion": f"{GROUP}/v1", "kind": "Subscription", "metadata": {"name": "a"}, "spec": spec}
    old = converted(yaml.safe_dump(new), "v1alpha1", tmp_path, capsys)
    assert yaml.safe_load(old)["spec"] == {"email": "a@example.com", "topic": "x", "mode": "now"}
    assert yaml.safe_load(converted(old, "v1", tmp_path, capsys)) == new


def test_a_server_converts_what_it_stores(server: ApiServer) -> None:
    path = f"/apis/{GROUP}/{{}}/namespaces/default/subscriptions"
    server.request("POST", path.format("v1alpha1"), OLD)
    stored: Any = server.request("GET", path.format("v1") + "/daily")
    assert stored["spec"]["recipient"] == {"email": "emma@example.com"}
    stored["spec"]["delivery"] = "Immediate"
    server.request("PUT", path.format("v1") + "/daily", stored)
    assert server.request("GET", path.format("v1alpha1") + "/daily")["spec"]["mode"] == "now"


def test_a_typed_client_speaks_either_version(server: ApiServer, package: str) -> None:
    client_of = importlib.import_module(f"{package}.client").Client
    models = importlib.import_module(f"{package}.news_v1")
    recipient = models.SubscriptionSpecRecipient(email="b@example.com")
    spec = models.SubscriptionSpec(recipient=recipient, topics=["films"])
    with client_of(Config.load(server.kubeconfig)) as client:
        new = models.Subscription(metadata=ObjectMeta(name="b"), spec=spec)
        client.news_v1.subscriptions.create(new)
        old = client.news_v1alpha1.subscriptions.get("b")
    assert (old.spec.email, old.spec.topic, old.spec.mode) == ("b@example.com", "films", "now")
