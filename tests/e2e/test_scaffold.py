"""A group made by ``kubewright scaffold`` alone, judged, generated, tested, served, and used with stock kubectl."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.tools.command import kubewright

from kubewright.testing import ApiServer
from kubewright.testing.ports import free_ports

ROOT = Path(__file__).parents[2]
GROUP = "shop.example.com"
VERSIONS = ("v1alpha1", "v1beta1", "v1")
KUBECTL = shutil.which("kubectl") or ""
pytestmark = pytest.mark.skipif(not KUBECTL, reason="needs kubectl")

COMMANDS = """
    scaffold group shop --domain example.com --output .
    scaffold kind Widget --version v1alpha1 --short-name wd --column Interval=.spec.intervalSeconds
    scaffold kind Policy --version v1alpha1 --scope Cluster
    scaffold version v1beta1 --kind Widget
    scaffold version v1beta1 --kind Policy
    scaffold version v1 --kind Widget --storage
    generate
    generate --check
    lint crds
    validate --strict crds samples rbac
    lifecycle lifecycle.yaml
"""
"""What somebody types in an empty folder; everything is green at once, with no edit by hand."""

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])}


def run(folder: Path, *arguments: str, **extra: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=ENVIRONMENT | extra,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    with contextlib.chdir(folder):
        for line in filter(None, map(str.strip, COMMANDS.splitlines())):
            code, out, err = kubewright(*line.split())  # in this process: starts are half of the time
            assert code == 0, f"{line}: {code}\n{out}\n{err}"
    return folder


@pytest.fixture(scope="module")
def crds_served(group: Path) -> Iterator[Path]:
    """A kubeconfig for a server that was given the CRDs."""
    with ApiServer(crds=[group / "crds"]) as server:
        yield server.kubeconfig


@pytest.fixture(scope="module")
def package_served(group: Path) -> Iterator[Path]:
    """A kubeconfig for ``kubewright serve`` of the generated package."""
    kubeconfig = group / "kubeconfig"
    [port] = free_ports(1)
    path = os.pathsep.join([str(group / "generated"), ENVIRONMENT["PYTHONPATH"]])
    command = ["kubewright", "serve", "--packages", "kubernetes_api,shop_api", "--storage", "memory://"]
    command += ["--port", str(port), "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(
        [sys.executable, "-m", *command], cwd=group, env=ENVIRONMENT | {"PYTHONPATH": path},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        try:
            for _ in range(200):
                if kubeconfig.exists() or server.poll() is not None:
                    break
                time.sleep(0.1)
            assert server.poll() is None and kubeconfig.exists(), server.stderr and server.stderr.read()
            yield kubeconfig
        finally:
            server.terminate()


@pytest.fixture(params=["crds_served", "package_served"])
def kubectl(request: pytest.FixtureRequest, group: Path, tmp_path: Path) -> Callable[..., str]:
    environment = os.environ | {
        "KUBECONFIG": str(request.getfixturevalue(request.param)),
        "HOME": str(tmp_path),
    }

    def call(*arguments: str, fails: bool = False) -> str:
        done = subprocess.run(
            [KUBECTL, *arguments], cwd=group, env=environment, capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
        assert (done.returncode != 0) is fails, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    return call


@pytest.mark.thorough  # those of a group like this pass in tests/tools/test_scaffold.py
def test_its_own_tests_pass(group: Path) -> None:
    assert "8 passed" in run(group, "pytest", "-q", "-p", "no:cacheprovider", "tests")


def test_kubectl_applies_and_gets_every_version(kubectl: Callable[..., str], group: Path) -> None:
    for applied in VERSIONS:
        said = kubectl("apply", "-f", f"samples/widgets-{applied}.yaml")
        assert "widget-sample" in said
        assert (f"Warning: {GROUP}/{applied} Widget is deprecated" in said) == (applied != "v1")
        for version in VERSIONS:
            found = json.loads(
                kubectl("get", f"widgets.{version}.{GROUP}", "widget-sample", "-o", "json").partition(
                    "Warning"
                )[0]
            )
            assert found["apiVersion"] == f"{GROUP}/{version}"
            assert found["spec"] == {
                "mode": "Active",
                "intervalSeconds": 30,
                "parameters": [{"name": "greeting", "value": "hello"}],
            }
    assert "unchanged" in kubectl("apply", "-f", "samples/widgets-v1.yaml")
    header, row = kubectl("get", "wd").splitlines()
    assert header.split() == ["NAME", "READY", "INTERVAL", "AGE"]
    assert row.split()[:2] == ["widget-sample", "30"]
    kubectl("apply", "--server-side", "-f", "samples/policies-v1beta1.yaml")
    assert kubectl("get", "policies", "-o", "name") == f"policy.{GROUP}/policy-sample\n"


def test_kubectl_explains_what_was_scaffolded(kubectl: Callable[..., str]) -> None:
    said = kubectl("explain", "widgets.spec")
    assert (
        re.search(r"VERSION: +\S*v1\n", said) and "mode is Active, or Paused to keep the controller" in said
    )
    said = kubectl("explain", "widgets.spec.parameters", "--api-version", f"{GROUP}/v1alpha1")
    assert "name is unique among the parameters" in said
    served = kubectl("api-resources", "--api-group", GROUP, "--no-headers")
    assert [line.split() for line in served.splitlines()] == [
        ["policies", f"{GROUP}/v1beta1", "false", "Policy"],
        ["widgets", "wd", f"{GROUP}/v1", "true", "Widget"],
    ]


def test_kubectl_is_refused_what_is_unknown(kubectl: Callable[..., str], group: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    text = (group / "samples/widgets-v1.yaml").read_text()
    wrong.write_text(text.replace("mode:", "mood:").replace("-sample", "-wrong"))
    assert 'unknown field "spec.mood"' in kubectl("create", "-f", str(wrong), fails=True)


def test_the_whole_folder_is_applied(crds_served: Path, group: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [KUBECTL, "apply", "-k", "."], cwd=group, capture_output=True, text=True, timeout=60, check=False,
        env=os.environ | {"KUBECONFIG": str(crds_served), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("clusterrole.rbac.authorization.k8s.io/") == 9
