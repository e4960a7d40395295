"""Every extra alone: pytest loads the plugin, every command runs or names the extra that it needs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
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


ALL_RUNS = """
import contextlib, io, json, sys
from kubewright import cli
said = {}
given = sys.stdin.buffer.read()
for words in json.loads(sys.argv[1]):
    out, err, sys.stdin = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(given))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = cli.main(words)
        except SystemExit as end:
            code = end.code or 0
    said[" ".join(words)] = code, out.getvalue(), err.getvalue()
json.dump(said, sys.stdout)
"""
"""A program that prints, by command line, what it ends with and says. In one process: what an extra lacks is lacking
there too."""


def helps_and_lacking(brought: set[str], helps: Iterable[str] = COMMANDS) -> str:
    """The argument of ``ALL_RUNS``: the ``--help`` of these commands, and a run of each that these extras do not
    bring."""
    runs = RUNS | {"serve": (("serve", "--storage", "memory://", "--port", "0"), 3, "")}
    lacking = [[*map(str, runs[name][0])] for name in runs if COMMANDS[name].extra not in brought]
    return json.dumps([[name, "--help"] for name in helps] + lacking)


def wrong_helps(said: str, brought: set[str]) -> list[str]:
    """What is wrong with what ``ALL_RUNS`` printed: a help is there without the command's extra; a run names it,
    unless it needs nothing of it."""
    wrong = []
    for line, (code, out, err) in json.loads(said).items():
        name = line.partition(" ")[0]
        if line == f"{name} --help":
            examples = [each for each in out.partition("examples:\n")[2].splitlines() if "kubewright" in each]
            good = code == 0 and len(examples) >= 2
        else:
            good = code == RUNS[name][1] or (
                code == 3 and f"pip install 'kubewright[{COMMANDS[name].extra}]'" in err
            )
        if not good or "Traceback" in err:
            wrong.append(f"{line}: exit {code}: {out[-300:]}{err[-600:]}")
    return wrong


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_command_helps_and_names_the_extra_that_it_lacks(
    extra: str, environment_of: Environments, tmp_path: Path
) -> None:
    """Every help where nothing is at hand, else those of the commands that the extra brings; `make gate` asks for all
    in all."""
    brings = [name for name, command in COMMANDS.items() if not extra or command.extra == extra]
    wanted = helps_and_lacking(BROUGHT[extra], brings)
    done = environment_of(extra).run(tmp_path, "-c", ALL_RUNS, wanted, stdin=MANIFEST)
    assert done.returncode == 0 and len(json.loads(done.stdout)) == len(json.loads(wanted)), done.stderr
    assert wrong_helps(done.stdout, BROUGHT[extra]) == []
    if not extra:
        assert json.loads(done.stdout)["serve --storage memory:// --port 0"][0] == 3


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
    "explore": (("explore", "--port", "99999"), 2, ""),
    "history": (("history", "configmaps", "a", "--kubeconfig", "none"), 1, ""),
    "owners": (("owners", "configmap", "a", "--kubeconfig", "none"), 1, ""),
    "editor": (("editor", ".", "--crds", CRDS), 0, "schemas"),
    "envtest": (("envtest", "--output", "assets"), 0, "KUBEBUILDER_ASSETS"),
    "testserver": (("testserver", "--port", "99999"), 2, ""),
    "webhook": (("webhook", "--package", "none"), 2, ""),
    "rbac": (("rbac", "who-can", "get", "configmaps", "-f", "-"), 0, ""),
    "storage": (("storage", "check", "none.db"), 1, ""),
}
"""Command → a smallest run of it, its exit code, and what it prints (among other things)."""


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_smallest_run_of_every_command(extra: str, environment_of: Environments, tmp_path: Path) -> None:
    """In the smallest extra that brings it; `make gate` runs all in every extra."""
    runs = {name: run for name, run in RUNS.items() if COMMANDS[name].extra == extra}
    lines = [[*map(str, arguments)] for arguments, _, _ in runs.values()]
    done = environment_of(extra).run(tmp_path, "-c", ALL_RUNS, json.dumps(lines), stdin=MANIFEST)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert [*said] == [" ".join(line) for line in lines]
    for (name, (_, wanted, shown)), (code, out, err) in zip(runs.items(), said.values(), strict=True):
        assert code == wanted, f"{name}: {out[-500:]}{err}"
        assert shown in out, f"{name}: {out[:500]}{err}"


def test_runs_are_listed_for_all_commands() -> None:
    assert {*RUNS} | {"apply3"} == {*COMMANDS}
