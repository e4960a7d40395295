"""Every change that diff tells, one mutation at a time, and how the deprecation policy weighs it."""

from __future__ import annotations

import copy
import io
import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright import cli
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.ir.api import Api
from kubewright.pipeline import read_api
from kubewright.tools.differing.change import KINDS
from kubewright.tools.differing.policy import weigh
from kubewright.tools.differing.resources import compare
from tests.tools.test_lint import CLEAN, merge

CASES = yaml.safe_load((Path(__file__).parent / "diff_cases.yaml").read_text())


def state(case: dict[str, Any], side: str) -> dict[str, Any]:
    crd = copy.deepcopy(CLEAN)
    version = crd["spec"]["versions"][0]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    if case.get(side) is not None:
        spec["properties"]["x"] = case[side]
    if case.get(f"required_{side}"):
        spec["required"] = ["x"]
    if f"versions_{side}" in case:
        changes = case[f"versions_{side}"]
        crd["spec"]["versions"] = [
            {k: v for k, v in {**copy.deepcopy(version), **change}.items() if v is not None}
            for change in changes
        ]
    changed: dict[str, Any] = merge(crd, case.get(f"crd_{side}", {}))
    return changed


def read(document: dict[str, Any], path: Path) -> Api:
    path.write_text(yaml.safe_dump(document))
    diagnostics = Diagnostics()
    api = read_api(Package(name="x", sources=(PathSource(path),), documentation=True), diagnostics)
    assert not diagnostics.has_errors, [str(d) for d in diagnostics]
    return api


@pytest.mark.parametrize("case", CASES, ids=[c["name"].replace(" ", "-") for c in CASES])
def test_each_mutation_is_told_as_what_it_is(case: dict[str, Any], tmp_path: Path) -> None:
    old, new = (
        read(state(case, "before"), tmp_path / "old.yaml"),
        read(state(case, "after"), tmp_path / "new.yaml"),
    )
    assert sorted(c.kind.code for c in compare(old, new)) == case["codes"]
    assert compare(old, old) == compare(new, new) == []


def test_there_are_enough_mutations_and_no_code_is_given_twice() -> None:
    assert len(CASES) >= 80
    told = {code for case in CASES for code in case["codes"]}
    # Verbs and patch strategies cannot be said in a CRD; descriptions are reported on demand.
    rest = {"D113", "D153", "D155", "D157", "D220", "D221", "D228", "D229", "D230", "D259", "D260", "D301"}
    assert set(KINDS) - told <= rest


LEVELS = [
    ("v1", "D201", Severity.ERROR),
    ("v1beta1", "D201", Severity.ERROR),
    ("v1alpha1", "D201", Severity.WARNING),
    ("v1", "D212", Severity.WARNING),
    ("v1alpha1", "D212", Severity.NOTE),
    ("v1", "D251", Severity.NOTE),
    ("v1", "D102", Severity.ERROR),
    ("v1alpha1", "D102", Severity.NOTE),
]


@pytest.mark.parametrize(("version", "code", "severity"), LEVELS)
def test_a_change_weighs_by_the_level_of_its_version(
    version: str, code: str, severity: Severity, tmp_path: Path
) -> None:
    case = next(c for c in CASES if c["codes"] == [code])
    states = [state(case, side) for side in ("before", "after")]
    for document in states:
        for entry in document["spec"]["versions"]:
            entry["name"] = (
                {"v1": "v9", "v2": version}.get(entry["name"], version) if code == "D102" else version
            )
    old, new = (read(d, tmp_path / f"{n}.yaml") for n, d in enumerate(states))
    (change,) = (c for c in compare(old, new) if c.kind.code == code)
    assert weigh(change) is severity


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["diff", *arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def removal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    case = next(c for c in CASES if c["name"] == "field removed")
    for side, name in (("before", "old.yaml"), ("after", "new.yaml")):
        (tmp_path / name).write_text(yaml.safe_dump(state(case, side)))
    return tmp_path


def test_a_breaking_change_fails_with_path_and_rule(removal: Path) -> None:
    code, out, err = run("old.yaml", "new.yaml")
    assert code == 1
    assert (
        "error D201: things.example.com/v1: spec.x: field removed\n  hint: breaks writers; deprecation policy rule #1"
        in out
    )
    assert err == "1 error\n"
    assert run("new.yaml", "old.yaml")[0] == 0


def test_exceptions_are_decided_on_purpose_and_expire(removal: Path) -> None:
    Path("ok.toml").write_text('D201 = ["things.example.com/*: spec.x"]\n')
    assert run("old.yaml", "new.yaml", "--exceptions", "ok.toml")[:2] == (0, "")
    code, _, err = run("old.yaml", "old.yaml", "--exceptions", "ok.toml")
    assert code == 1
    assert "nothing needs the exception D201 things.example.com/*: spec.x: take it out" in err
    Path("ok.toml").write_text('D999 = ["x"]\n')
    assert run("old.yaml", "new.yaml", "--exceptions", "ok.toml")[::2] == (
        2,
        "kubewright diff: ok.toml: there is no change D999\n",
    )


def test_states_come_out_of_git(removal: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words],
            check=True,
            capture_output=True,
        )

    git("init", "-q")
    Path("api.yaml").write_text(Path("old.yaml").read_text())
    git("add", "api.yaml")
    git("commit", "-qm", "old")
    Path("api.yaml").write_text(Path("new.yaml").read_text())
    assert run("git:HEAD:api.yaml", "api.yaml")[0] == 1
    code, _, err = run("git:nothing:api.yaml", "api.yaml")
    assert code == 2
    assert err.startswith("kubewright diff: git:nothing:api.yaml: git: fatal")
    assert run("git:--output=x:api.yaml", "api.yaml")[0] == 2
    assert not Path("x").exists()


def test_markdown_is_for_pull_requests_and_carries_no_markup_of_the_spec(removal: Path) -> None:
    code, out, _ = run("old.yaml", "new.yaml", "--format", "markdown")
    assert code == 1
    assert out.startswith(
        "## API changes\n\n### Breaking (1)\n\n| change | code | why it matters |\n|---|---|---|\n| things"
    )
    assert run("old.yaml", "old.yaml", "--format", "markdown")[1] == "## API changes\n\nNone.\n"
    assert json.loads(run("old.yaml", "new.yaml", "--format", "json")[1])["summary"]["error"] == 1


def test_known_removals_between_releases_are_found() -> None:
    code, out, _ = run("kubernetes:1.25", "kubernetes:1.26", "--least", "warning")
    assert code == 1
    for gone in (
        "flowschemas.flowcontrol.apiserver.k8s.io/v1beta1",
        "horizontalpodautoscalers.autoscaling/v2beta2",
    ):
        assert f"{gone}: version" in out
