"""Mistakes in client calls, each found by mypy --strict and by pyright, on its line; the right calls are clean."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.mypy_run import CODE, mypy

RIGHT = '''\
from apimachinery.client.calls import PatchType
from apimachinery.client.local import LocalApply
from kubernetes_api.apps_v1 import Deployment, apply
from kubernetes_api.async_client import AsyncClient
from kubernetes_api.client import Client
from kubernetes_api.core_v1 import Namespace, Pod
from kubernetes_api.core_v1 import apply as core


def right(client: Client) -> int:
    deployments = client.apps_v1.deployments
    deployment: Deployment = deployments.get("a", namespace="b")
    deployments.replace(deployment)
    deployments.patch("a", [{"op": "remove", "path": "/spec/paused"}], PatchType.JSON)
    deployments.apply(apply.Deployment(spec=apply.DeploymentSpec(replicas=1)), field_manager="me")
    deployments.apply({"kind": "Deployment"}, force=True)
    preview = LocalApply(deployments).apply(deployment, apply.Deployment(), field_manager="me")
    wanted: Deployment = preview.object
    for pod in client.core_v1.pods.list(all_namespaces=True):
        deployment = Deployment(metadata=pod.metadata, spec=wanted.spec)
    with client.core_v1.nodes.watch(label_selector="a=b") as watch:
        for event in watch:
            if event.object is not None and event.object.spec is not None:
                print(event.object.spec.pod_cidr)
    return deployments.scale("a", 3).spec.replicas or 0


async def awaited(client: AsyncClient, deployment: Deployment) -> None:
    await client.apps_v1.deployments.replace(deployment)
    async for pod in client.core_v1.pods.list():
        one: Pod = pod
        print(one.kind)
    await client.core_v1.namespaces.apply(core.Namespace())


def wrong(client: Client, deployment: Deployment, namespace: Namespace) -> None:
    """One mistake a line."""
'''
MISTAKES = {
    "a namespace for what has none": 'client.core_v1.nodes.get("n", namespace="default")',
    "a verb that is not served": "client.authorization_v1.subjectaccessreviews.list()",
    "an object of another kind": "client.apps_v1.deployments.create(namespace)",
    "a patch that is text": 'client.apps_v1.deployments.patch("a", "{}")',
    "a kind of patch that there is not": 'client.apps_v1.deployments.patch("a", {}, "merge")',
    "a result of another kind": 'pod: Pod = client.apps_v1.deployments.get("a")',
    "a configuration of another kind": "client.apps_v1.deployments.apply(core.Pod())",
    "a field that the result has not": 'print(client.core_v1.pods.get("a").spec_)',
    "a subresource that is not served": 'client.core_v1.configmaps.scale("a", 1)',
    "a deletion that may give nothing": 'print(client.core_v1.pods.delete("a").kind)',
}


def errors_of_mypy(folder: Path) -> str:
    return mypy(folder, "user_code.py").stdout


def errors_of_pyright(folder: Path) -> str:
    executable = Path(sys.executable).with_name("pyright")
    if not executable.exists():
        pytest.skip("pyright is not installed")
    settings = {"extraPaths": [*map(str, CODE)], "typeCheckingMode": "strict"}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(executable), "--pythonpath", sys.executable, "user_code.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=250, check=False
    ).stdout


@pytest.mark.slow
@pytest.mark.parametrize("errors_of", [errors_of_mypy, errors_of_pyright])
def test_each_mistake_is_found_and_nothing_else(errors_of: Callable[[Path], str], tmp_path: Path) -> None:
    source = RIGHT + "".join(f"    {call}\n" for call in MISTAKES.values())
    (tmp_path / "user_code.py").write_text(source)
    first = RIGHT.count("\n") + 1
    found = {int(line) for line in re.findall(r"user_code\.py:(\d+):.*error", errors_of(tmp_path))}
    missed = [what for at, what in enumerate(MISTAKES, first) if at not in found]
    assert missed == []
    assert found == set(range(first, first + len(MISTAKES)))
