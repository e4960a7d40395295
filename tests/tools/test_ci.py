"""docs/ci.md and the pre-commit hooks, run as they are written, in a repository that has what they speak of."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.warm import Stem
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
BLOCKS = [
    yaml.safe_load(text)
    for text in re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/ci.md").read_text(), re.DOTALL)
]
PRE_COMMIT, ACTION_USE, GITHUB, GITLAB = BLOCKS
HOOKS = {
    hook["id"]: hook for hook in yaml.load((ROOT / ".pre-commit-hooks.yaml").read_text(), yaml.CSafeLoader)
}

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
"""
OLD = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n"


@pytest.fixture
def repository(stem: Stem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with manifests, CRDs and files of other kinds; commands named in the docs are on its PATH."""
    commands = tmp_path / "bin"
    commands.mkdir()
    for name, text in {
        "kubewright": f'exec {stem.command()} "$@"',
        "pip": 'echo "$@" >> "$PIP_LOG"',
    }.items():
        (commands / name).write_text(f"#!/bin/sh\n{text}\n")
        (commands / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{commands}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")]))
    monkeypatch.setenv("PIP_LOG", str(tmp_path / "pip.log"))
    monkeypatch.setenv("BASE", "main")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    origin = tmp_path / "origin"
    group = tmp_path / "shop"
    for arguments in (("group", "shop", "--domain", "example.com"), ("kind", "Widget", "--version", "v1")):
        assert kubewright("scaffold", *arguments, "--output", group)[0] == 0
    files = {
        "deploy/web.yaml": MANIFEST,
        "deploy/widget.yaml": (group / "samples/widgets-v1.yaml").read_text(),
        "crds/widgets.yaml": (group / "crds/widgets.yaml").read_text(),
        ".pre-commit-config.yaml": yaml.safe_dump(PRE_COMMIT),
        ".github/workflows/manifests.yaml": yaml.safe_dump(GITHUB),
        "package.json": "{}",
        "docs/crd-notes.yaml": "notes: []",
    }
    for path, text in files.items():
        (origin / path).parent.mkdir(parents=True, exist_ok=True)
        (origin / path).write_text(text)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *command], cwd=origin, check=True)
    subprocess.run([*git, "clone", "-q", str(origin), "work"], cwd=tmp_path, check=True)
    return tmp_path / "work"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A step as a runner does it: ``bash -e``."""
    return subprocess.run(
        ["bash", "-e", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


def steps() -> list[dict[str, Any]]:
    (job,) = GITHUB["jobs"].values()
    assert job["env"] == {"BASE": "${{ github.base_ref }}"}, (
        "what a pull request names is no part of a script"
    )
    return [step for step in job["steps"] if "run" in step]


def test_every_step_of_the_github_job_passes_in_a_sound_repository(repository: Path) -> None:
    for step in steps():
        assert "${{" not in step["run"]
        done = run(step["run"], repository)
        assert done.returncode == 0, f"{step['run']}\n{done.stdout}\n{done.stderr}"
    log = json.loads((repository / "lint.sarif").read_text())
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    wanted = re.findall(r"kubewright\[(\w+)\]", (repository.parent / "pip.log").read_text())
    assert wanted == ["check"] and "check" in extras


def test_the_github_job_fails_where_something_is_wrong(repository: Path) -> None:
    (repository / "deploy/web.yaml").write_text(MANIFEST.replace("replicas: 2", "replicas: two"))
    (repository / "deploy/old.yaml").write_text(
        "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a}\n"
    )
    crd = repository / "crds/widgets.yaml"
    crd.write_text(crd.read_text().replace("served: true", "served: false", 1))
    codes, out = {}, ""
    for step in steps():
        done = run(step["run"], repository)
        codes[step["run"].split()[1]] = done.returncode
        out += done.stdout
    assert {name: codes[name] for name in ("validate", "migrate", "diff")} == dict.fromkeys(
        ("validate", "migrate", "diff"), 1
    )
    assert "::error file=deploy/web.yaml,line=5," in out and "::error file=deploy/old.yaml,line=1," in out


def test_the_gitlab_script_passes_and_fails_with_its_report(repository: Path) -> None:
    job = GITLAB["manifests"]
    for line in job["script"]:
        done = run(line, repository)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    report = repository / job["artifacts"]["reports"]["junit"]
    assert ElementTree.parse(report).getroot().get("failures") == "0"
    (repository / "deploy/web.yaml").write_text(MANIFEST.replace("replicas: 2", "replicas: two"))
    assert [run(line, repository).returncode for line in job["script"]] == [0, 1, 0]
    suite = ElementTree.parse(report).getroot()
    assert (suite.tag, suite.get("failures")) == ("testsuite", "1")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["Deployment web"]


def chosen(hook: dict[str, Any], use: dict[str, Any], repository: Path) -> list[str]:
    """The files that pre-commit hands to a hook: its settings win over the hook's own, field by field."""
    settings = {**hook, **use}
    listed = subprocess.run(["git", "ls-files"], cwd=repository, capture_output=True, text=True, check=True)
    return [
        name
        for name in listed.stdout.splitlines()
        if re.search(settings["files"], name) and not re.search(settings.get("exclude", "^$"), name)
    ]


@pytest.mark.parametrize("use", PRE_COMMIT["repos"][0]["hooks"], ids=lambda use: str(use["id"]))
def test_each_hook_passes_and_fails_as_pre_commit_calls_it(use: dict[str, Any], repository: Path) -> None:
    hook = HOOKS[use["id"]]
    assert (hook["language"], hook["additional_dependencies"]) == ("python", [".[check]"])
    assert hook["require_serial"], "documents are judged together"
    names = chosen(hook, use, repository)
    assert names and not any(name.startswith((".", "package", "docs")) for name in names)
    command = shlex.join([*shlex.split(hook["entry"]), *use.get("args", ()), *names])
    done = run(command, repository)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    (repository / "deploy/web.yaml").write_text(
        f"{OLD}---\n" + MANIFEST.replace("replicas: 2", "replicas: two")
    )
    crd = repository / "crds/widgets.yaml"
    crd.write_text(crd.read_text().replace("kind: Widget\n", "kind: widget\n"))
    assert run(command, repository).returncode == 1


def test_hooks_leave_hidden_files_alone(repository: Path) -> None:
    for hook in HOOKS.values():
        assert not any(name.startswith(".") for name in chosen(hook, {}, repository))


def test_the_documents_name_only_what_there_is() -> None:
    from kubewright.cli import COMMANDS

    text = (ROOT / "docs/ci.md").read_text()
    assert {*re.findall(r"\bkubewright ([a-z]+)\b", text)} <= {*COMMANDS}
    assert {use["id"] for use in PRE_COMMIT["repos"][0]["hooks"]} == {*HOOKS}


ACTION = yaml.safe_load((ROOT / "action.yml").read_text())


def action_steps(**given: str) -> list[tuple[str, str, dict[str, str]]]:
    """Name, script and environment of the steps that a runner would take with these inputs."""
    inputs = {name: str(each["default"]) for name, each in ACTION["inputs"].items()} | given
    context = {
        **{f"inputs.{name}": value for name, value in inputs.items()},
        "github.base_ref": "main",
        "github.action_path": "/action",
        "github.event.pull_request.number": "7",
    }
    found = []
    for step in ACTION["runs"]["steps"]:
        conditions = step.get("if", "true").replace("!cancelled()", "true").split(" && ")
        pairs = [condition.split(" != ") for condition in conditions if condition != "true"]
        if "run" not in step or any(not context[name] for name, _ in pairs):
            continue
        assert "${{" not in step["run"], "what a pull request names is no part of a script"
        environment = {
            name: re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: context.get(found[1], ""), value)
            for name, value in step.get("env", {}).items()
        }
        found.append((step.get("name", ""), step["run"], environment))
    return found


def act(repository: Path, monkeypatch: pytest.MonkeyPatch, **given: str) -> dict[str, tuple[int, str]]:
    """Step → its code and what it prints, run as a runner runs it."""
    gh = repository.parent / "bin/gh"
    gh.write_text('#!/bin/sh\necho "$@" > "$PIP_LOG.gh"\n')
    gh.chmod(0o755)
    codes = {}
    for name, script, environment in action_steps(**given):
        with monkeypatch.context() as patch:
            for key, value in environment.items():
                patch.setenv(key, value)
            done = run(script, repository)
        codes[name] = done.returncode, done.stdout + done.stderr
    return codes


def test_the_documented_use_gives_inputs_that_there_are() -> None:
    (job,) = ACTION_USE["jobs"].values()
    assert job["steps"][-1]["with"].keys() <= ACTION["inputs"].keys()


def test_the_action_passes_in_a_sound_repository(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = act(repository, monkeypatch, crds="crds", manifests="deploy")
    assert {name: code for name, (code, _) in done.items()} == dict.fromkeys(
        ("Install", "Validate", "Deprecated versions", "Lint", "Compare"), 0
    ), done
    assert "/action[check]" in (repository.parent / "pip.log").read_text()
    assert set(act(repository, monkeypatch)) == {"Install", "Validate", "Deprecated versions"}


def test_the_action_fails_and_comments(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "deploy/web.yaml").write_text(
        f"{OLD}---\n" + MANIFEST.replace("replicas: 2", "replicas: two")
    )
    crd = repository / "crds/widgets.yaml"
    crd.write_text(crd.read_text().replace("served: true", "served: false", 1))
    done = act(repository, monkeypatch, crds="crds", manifests="deploy", comment="true", version="1.2.3")
    failed = {name for name, (code, _) in done.items() if code}
    assert {"Validate", "Deprecated versions", "Compare"} <= failed, done
    assert "::error file=deploy/web.yaml" in done["Validate"][1]
    assert "kubewright[check]==1.2.3" in (repository.parent / "pip.log").read_text()
    assert (repository.parent / "pip.log.gh").read_text().startswith("pr comment 7 ")
    assert "|" in (repository / "changes.md").read_text()
