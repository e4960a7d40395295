"""Five mistakes in user code, each found by mypy --strict and by pyright, in the models as committed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.mypy_run import CODE, mypy

RIGHT = """\
from kubernetes_api.apps_v1 import Deployment, DeploymentSpec
from kubernetes_api.core_v1 import Container, ContainerPort, Pod, PodSpec, PodTemplateSpec
from kubernetes_api.meta_v1 import LabelSelector, ObjectMeta

container = Container(name="web", image="web:1", ports=[ContainerPort(container_port=8080)])
pod = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[container]))
template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": "web"}), spec=PodSpec(containers=[container]))
deployment = Deployment(
    metadata=ObjectMeta(name="web"),
    spec=DeploymentSpec(replicas=3, selector=LabelSelector(match_labels={"app": "web"}), template=template),
)
"""
MISTAKES = {
    "wrong type": 'ContainerPort(container_port="8080")',
    "unknown field": "ContainerPort(container_port=8080, containerPort=8080)",
    "missing required": 'Container(image="web:1")',
    "wrong list item": "PodSpec(containers=[ContainerPort(container_port=1)])",
    "wrong nested type": "Pod(metadata=ObjectMeta(), spec=DeploymentSpec(selector=LabelSelector(), template=template))",
}


def lines_with_errors(output: str) -> set[int]:
    """The lines of user_code.py that a checker complains of (both print ``file:line:``)."""
    found = set()
    for line in output.splitlines():
        place = line.strip().partition("user_code.py:")[2]
        if place and "error" in line:
            found.add(int(place.partition(":")[0]))
    return found


def errors_of_mypy(folder: Path) -> str:
    return mypy(folder, "--no-error-summary", "user_code.py").stdout


def errors_of_pyright(folder: Path) -> str:
    executable = shutil.which("pyright") or shutil.which("pyright", path=str(Path(sys.executable).parent))
    if executable is None:
        pytest.skip("pyright is not installed")
    (folder / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [*map(str, CODE)]}))
    command = [executable, "--pythonpath", sys.executable, "user_code.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)
    if not done.stdout.strip():
        pytest.skip("pyright cannot run here")
    return done.stdout


@pytest.mark.parametrize("errors_of", [errors_of_mypy, errors_of_pyright])
def test_the_five_mistakes_are_found_and_nothing_else(
    tmp_path: Path, errors_of: Callable[[Path], str]
) -> None:
    first = RIGHT.count("\n") + 1
    source = RIGHT + "".join(f"{mistake}  # {name}\n" for name, mistake in MISTAKES.items())
    (tmp_path / "user_code.py").write_text(source)
    output = errors_of(tmp_path)
    assert lines_with_errors(output) == set(range(first, first + len(MISTAKES))), output


def test_right_code_has_no_errors(tmp_path: Path) -> None:
    (tmp_path / "user_code.py").write_text(RIGHT)
    found = mypy(tmp_path, "user_code.py")
    assert found.returncode == 0, found.stdout
