"""Every extra alone: pytest loads the plugin, every command runs or names the extra that it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kubewright.cli import COMMANDS
from tests.packaging.environment import EXTRAS, ROOT, Environment

Environments = Callable[[str], Environment]

MODELS = (
    "from kubernetes_api.core_v1 import Pod; from kubernetes_api.scheme import SCHEME; "
    'print(SCHEME.decode(b\'{"apiVersion":"v1","kind":"Pod"}\').KIND)'
)
BROUGHT = {
    "": {""},
    "cel": {"", "cel"},
    "check": {"", "cel", "check"},
    "client": {""},
    "server": {"", "server"},
}
BROUGHT["generate"] = {"", "cel", "check", "generate"}
"""Extra → the extras whose commands it brings."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_pytest_runs_beside_it(extra: str, environment_of: Environments, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one():\n    assert True\n")
    done = environment_of(extra).run(tmp_path, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("extra", ["", "client"])
def test_a_fixture_without_the_server_says_what_to_install(
    extra: str, environment_of: Environments, tmp_path: Path
) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(kubewright_namespace):\n    pass\n")
    done = environment_of(extra).run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 1
    assert "pip install 'kubewright[server]'" in done.stdout and "Traceback" not in done.stdout


@pytest.mark.parametrize("extra", EXTRAS)
def test_models_are_there(extra: str, environment_of: Environments, tmp_path: Path) -> None:
    assert environment_of(extra).run(tmp_path, "-c", MODELS).stdout == "Pod\n"


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_command_helps_or_names_its_extra(
    extra: str, environment_of: Environments, tmp_path: Path
) -> None:
    for name, command in COMMANDS.items():
        done = environment_of(extra).kubewright(tmp_path, name, "--help")
        assert "Traceback" not in done.stderr, f"{name}: {done.stderr}"
        if command.extra in BROUGHT[extra]:
            assert done.returncode == 0, f"{name}: {done.stderr}"
            examples = done.stdout.partition("examples:\n")[2].splitlines()
            assert len([line for line in examples if "kubewright" in line]) >= 2, name
        elif done.returncode:
            assert done.returncode == 3
            assert f"pip install 'kubewright[{command.extra}]'" in done.stderr, f"{name}: {done.stderr}"


def test_a_client_without_its_extra_says_what_to_install(
    environment_of: Environments, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").write_text("apiVersion: v1\nkind: Config\n")
    program = (
        "from apimachinery.client.config import ConfigError\nfrom kubernetes_api.client import Client\n"
        "try:\n    Client()\nexcept ConfigError as error:\n    print(error)\n"
    )
    done = environment_of("").run(tmp_path, "-c", program)
    assert "pip install 'kubewright[client]'" in done.stdout, done.stderr


MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
CRDS = ROOT / "specs/backup/crds"
RUNS: dict[str, tuple[tuple[object, ...], int, str]] = {
    "generate": (("generate", CRDS, "--package", "a_api", "--output", "out", "-q"), 0, ""),
    "sdk": (("sdk", "--from", CRDS, "--package", "a_api", "--output", "sdk"), 0, "pip install ./sdk"),
    "crd": (("crd", CRDS), 0, "kind: CustomResourceDefinition"),
    "docs": (("docs", CRDS), 0, "<!DOCTYPE html>"),
    "scaffold": (("scaffold", "group", "shop", "--domain", "example.com"), 0, "wrote shop/README.md"),
    "validate": (("validate", "-", "--strict"), 0, ""),
    "lint": (("lint", CRDS), 1, "L206"),
    "diff": (("diff", CRDS, CRDS), 0, ""),
    "lifecycle": (("lifecycle", "--only", "apps/*"), 0, "| Deployment | apps/v1 |"),
    "explain": (("explain", "deploy.spec.strategy"), 0, "FIELD: strategy <DeploymentStrategy>"),
    "cel": (("cel", "eval", "1 + 1"), 0, "2"),
    "patch": (("patch", "-f", "-", "-p", '{"data":{"a":"c"}}', "--type", "merge"), 0, "a: c"),
    "migrate": (("migrate", "-"), 0, ""),
    "convert": (("convert", "-f", "-", "--output-version", "v1"), 0, MANIFEST),
    "completion": (("completion", "bash"), 0, "complete -o filenames"),
    "serve": (("serve", "--port", "99999"), 2, ""),
    "rbac": (("rbac", "who-can", "get", "configmaps", "-f", "-"), 0, ""),
    "storage": (("storage", "check", "none.db"), 1, ""),
}
"""Command → a smallest run of it, its exit code, and what it prints (among other things)."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_smallest_run_of_every_command(extra: str, environment_of: Environments, tmp_path: Path) -> None:
    for name, (arguments, code, shown) in RUNS.items():
        if COMMANDS[name].extra in BROUGHT[extra]:
            done = environment_of(extra).kubewright(tmp_path, *map(str, arguments), stdin=MANIFEST)
            assert done.returncode == code, f"{name}: {done.stdout[-500:]}{done.stderr}"
            assert shown in done.stdout, f"{name}: {done.stdout[:500]}{done.stderr}"


def test_runs_are_listed_for_all_commands() -> None:
    assert {*RUNS} | {"apply3"} == {*COMMANDS}
