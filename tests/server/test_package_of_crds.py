"""A generated package whose source are CRDs, served: every version of a kind, its columns, its deprecations."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.testing import ApiServer

GROUP = "backup.kubewright.dev"
SAMPLES = Path(__file__).parents[2] / "specs/backup/samples"


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(packages=("kubernetes_api", "backup_api")) as running:
        yield running


def place(version: str, namespace: str) -> str:
    return f"/apis/{GROUP}/{version}/namespaces/{namespace}/backupschedules"


def get(server: ApiServer, path: str, accept: str = "application/json") -> tuple[Any, str]:
    """The answer and its warning."""
    with urllib.request.urlopen(
        urllib.request.Request(server.url + path, headers={"Accept": accept})
    ) as answer:
        return json.loads(answer.read()), answer.headers.get("Warning", "")


def test_a_spoke_is_read_and_owned_through_another_spoke(server: ApiServer) -> None:
    sample = yaml.safe_load((SAMPLES / "backupschedule-v1alpha1.yaml").read_text())
    with server.namespace() as namespace:
        sample["metadata"] = {"name": "nightly"}
        server.request("POST", place("v1alpha1", namespace) + "?fieldManager=a", sample)
        middle = server.request("GET", place("v1beta1", namespace) + "/nightly")
        assert middle["spec"]["cron"] == sample["spec"]["cron"]
        patch = {
            "apiVersion": f"{GROUP}/v1beta1",
            "kind": "BackupSchedule",
            "metadata": {"name": "nightly"},
            "spec": {"suspend": True},
        }
        changed = server.request(
            "PATCH",
            place("v1beta1", namespace) + "/nightly?fieldManager=b&force=true",
            patch,
            "application/apply-patch+yaml",
        )
        assert {entry["apiVersion"] for entry in changed["metadata"]["managedFields"]} == {
            f"{GROUP}/v1alpha1",
            f"{GROUP}/v1beta1",
        }
        assert server.request("GET", place("v1alpha1", namespace) + "/nightly")["spec"]["paused"] is True


def test_a_deprecated_version_says_so(server: ApiServer) -> None:
    assert "BackupSchedule goes with release 2.0" in get(server, place("v1alpha1", "default"))[1]
    assert f"{GROUP}/v1beta1 BackupSchedule is deprecated" in get(server, place("v1beta1", "default"))[1]
    assert get(server, place("v1", "default"))[1] == ""


def test_columns_are_found_by_their_paths(server: ApiServer) -> None:
    sample = yaml.safe_load((SAMPLES / "backupschedule-v1.yaml").read_text())
    with server.namespace() as namespace:
        sample["metadata"] = {"name": "nightly"}
        server.request("POST", place("v1", namespace), sample)
        table, _ = get(server, place("v1", namespace), "application/json;as=Table;g=meta.k8s.io;v=v1")
        names = [column["name"] for column in table["columnDefinitions"]]
        assert table["rows"][0]["cells"][names.index("Schedule")] == sample["spec"]["schedule"]["cron"]
