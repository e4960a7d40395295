"""``kubewright scaffold controller``: what it writes generates, is typed, passes its tests, and records its role."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.mypy_run import CODE, mypy
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]


def run(folder: Path, *arguments: str, fails: int = 0, **extra: str) -> str:
    """What a module prints in a folder. Our own commands run in this process: a start is half of what they cost."""
    if arguments[0] == "kubewright":
        with contextlib.chdir(folder):
            code, out, err = kubewright(*arguments[1:])
        assert code == fails, f"{arguments}\n{out}\n{err}"
        return out + err
    path = os.pathsep.join(map(str, [*CODE, folder / "generated"]))
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | extra,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == fails, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def group(tmp_path: Path) -> Path:
    run(tmp_path, *"kubewright scaffold group shop --domain example.com --output .".split())
    run(tmp_path, *"kubewright scaffold kind Widget --version v1alpha1".split())
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("scope", ["Namespaced", pytest.param("Cluster", marks=pytest.mark.thorough)])
def test_what_it_writes_works_at_once(group: Path, scope: str) -> None:
    kind = "Widget"
    if scope == "Cluster":
        kind = "Region"
        run(group, *"kubewright scaffold kind Region --version v1 --scope Cluster".split())
    run(group, "kubewright", "scaffold", "controller", kind)
    run(group, "kubewright", "generate")
    name = kind.lower()
    tests = f"tests/test_{name}_controller.py"
    assert "4 passed" in run(group, "pytest", "-q", "-p", "no:cacheprovider", tests)
    role = group / f"rbac/{name}s-controller.yaml"
    recorded = yaml.safe_load(role.read_text())["rules"]
    role.write_text("rules: []\n")
    said = run(group, "pytest", "-q", "-p", "no:cacheprovider", "-k", "role", tests, fails=1)
    assert "RECORD_ROLE=1" in said
    run(group, "pytest", "-q", "-p", "no:cacheprovider", "-k", "role", tests, RECORD_ROLE="1")
    found = {
        r: {*rule["verbs"]} for rule in yaml.safe_load(role.read_text())["rules"] for r in rule["resources"]
    }
    given = {r: {*rule["verbs"]} for rule in recorded for r in rule["resources"]}
    assert all(found[resource] <= given[resource] for resource in found)
    assert {f"{name}s", f"{name}s/status", "configmaps", "leases"} <= found.keys()
    run(group, "kubewright", "validate", "--strict", "crds", "samples", "rbac", f"deploy/{name}-controller")
    listed = yaml.safe_load((group / "kustomization.yaml").read_text())["resources"]
    assert f"deploy/{name}-controller/deployment.yaml" in listed


def test_its_program_is_typed(group: Path) -> None:
    run(group, "kubewright", "scaffold", "controller", "Widget")
    run(group, "kubewright", "generate")
    done = mypy(group, "controllers/widget_controller.py", path=(*CODE, group / "generated"))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "fault"),
    [
        (["Gadget"], 2, "has no CRD of kind Gadget"),
        (["Widget", "--version", "v9"], 2, "has no version v9"),
        (["Widget", "--version", "nine"], 2, "'nine': must be a version"),
        ([], 2, "KIND"),
    ],
)
def test_what_it_refuses(group: Path, arguments: list[str], code: int, fault: str) -> None:
    assert fault in run(group, "kubewright", "scaffold", "controller", *arguments, fails=code)
    assert not (group / "controllers").exists()


def test_what_it_needs(group: Path) -> None:
    crd = group / "crds/widgets.yaml"
    text = crd.read_text()
    crd.write_text(text.replace("observedGeneration:", "seenGeneration:", 1))
    assert "has no status subresource with observedGeneration" in run(
        group, "kubewright", "scaffold", "controller", "Widget", fails=2
    )
    crd.write_text(text)
    (group / "kubewright.yaml").unlink()
    assert "no package in" in run(group, "kubewright", "scaffold", "controller", "Widget", fails=2)


def test_nothing_is_overwritten(group: Path) -> None:
    run(group, "kubewright", "scaffold", "controller", "Widget")
    assert "already exists" in run(group, "kubewright", "scaffold", "controller", "Widget", fails=1)
