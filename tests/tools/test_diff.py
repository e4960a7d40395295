"""Every change that diff tells, one mutation at a time, and how the deprecation policy weighs it."""

from __future__ import annotations

import copy
import io
import json
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright import cli
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics, Severity
from kubewright.ir.api import Api, Resource
from kubewright.pipeline import read_api
from kubewright.tools.diff.change import KINDS
from kubewright.tools.diff.policy import weigh
from kubewright.tools.diff.resources import compare
from kubewright.tools.inputs.sources import with_facts
from tests.tools.test_lint import CLEAN, merge

CASES = yaml.load((Path(__file__).parent / "diff_cases.yaml").read_text(), yaml.CSafeLoader)


def version_of(version: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    changed = {**copy.deepcopy(version), **{k: v for k, v in change.items() if k != "x"}}
    if "x" in change:
        changed["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["x"] = change["x"]
    return {k: v for k, v in changed.items() if v is not None}


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
        crd["spec"]["versions"] = [version_of(version, change) for change in changes]
    changed: dict[str, Any] = merge(crd, case.get(f"crd_{side}", {}))
    return changed


ACTIONS = {"get": "get", "put": "put", "post": "post"}


def openapi(said: dict[str, Any]) -> dict[str, Any]:
    """A document with one kind: ``verbs`` of the resource, those of ``status`` and ``restart``, ``x`` and ``y``."""
    thing = {"group": "example.com", "version": "v1", "kind": "Thing"}

    def operations(verbs: list[str], kind: str = "Thing") -> dict[str, Any]:
        return {
            verb: {
                "x-kubernetes-action": ACTIONS[verb],
                "x-kubernetes-group-version-kind": {**thing, "kind": kind},
                "responses": {"200": {"description": "OK"}},
            }
            for verb in verbs
        }

    top = "/apis/example.com/v1/namespaces/{namespace}/things"
    name = {"name": "name", "in": "path", "required": True, "type": "string"}
    namespace = {**name, "name": "namespace"}
    verbs = said.get("verbs", ["get", "list"])
    listed = {"get": {**operations(["get"])["get"], "x-kubernetes-action": "list"}}
    paths: dict[str, Any] = {top: {"parameters": [namespace], **listed}}
    paths[f"{top}/{{name}}"] = {
        "parameters": [namespace, name],
        **operations([v for v in verbs if v != "list"]),
    }
    for part in ("status", "restart"):
        if part in said:
            given = operations(said[part], said.get(f"{part}_kind", "Thing"))
            paths[f"{top}/{{name}}/{part}"] = {"parameters": [namespace, name], **given}
    spec = {"type": "object", "properties": {"mode": {"type": "string"}}}
    spec["properties"] |= {key: said[key] for key in ("x", "y") if key in said}
    reference = {"$ref": "#/definitions/com.example.v1.ThingSpec"}
    texts = {key: {"type": "string"} for key in ("apiVersion", "kind")}
    return {
        "swagger": "2.0",
        "info": {"title": "Things", "version": "v1"},
        "paths": paths,
        "definitions": {
            "com.example.v1.ThingSpec": spec,
            "com.example.v1.Thing": {
                "type": "object",
                "properties": {**texts, "metadata": {"type": "object"}, "spec": reference},
                "x-kubernetes-group-version-kind": [thing],
            },
        },
    }


def state_of(case: dict[str, Any], side: str, folder: Path) -> Api:
    """One side of a case, read, with the rules beside it."""
    document = openapi(case[f"api_{side}"]) if f"api_{side}" in case else state(case, side)
    api = read(document, folder / f"{side}.yaml")
    facts = case.get(f"facts_{side}", {})
    for name, value in facts.items():
        place = folder / side
        place.mkdir(exist_ok=True)
        (place / f"{name}.yaml").write_text(yaml.safe_dump(value))
    if not facts:
        return api
    diagnostics = Diagnostics()
    api = with_facts(api, "", folder / side, ("conversions", "protobuf"), diagnostics)
    assert not [*diagnostics]
    return api


def read(document: dict[str, Any], path: Path) -> Api:
    path.write_text(json.dumps(document))
    diagnostics = Diagnostics()
    api = read_api(Package(name="x", sources=(PathSource(path),), documentation=True), diagnostics)
    assert not diagnostics.has_errors, [str(d) for d in diagnostics]
    return api


@pytest.mark.parametrize("case", CASES, ids=[c["name"].replace(" ", "-") for c in CASES])
def test_each_mutation_is_told_as_what_it_is(case: dict[str, Any], tmp_path: Path) -> None:
    old, new = (state_of(case, side, tmp_path) for side in ("before", "after"))
    assert sorted(c.kind.code for c in compare(old, new)) == case["codes"]
    assert compare(old, old) == compare(new, new) == []


def test_there_are_enough_mutations_and_no_code_is_given_twice() -> None:
    assert len(CASES) >= 80
    told = {code for case in CASES for code in case["codes"]}
    # Changed descriptions are told when asked for; OpenAPI 3 alone says that a field is deprecated.
    assert set(KINDS) - told == {"D259", "D263", "D264"}


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


def test_changes_name_their_kind(removal: Path) -> None:
    found = json.loads(run("old.yaml", "new.yaml", "--format", "json")[1])["findings"]
    assert found and all(each["message"].startswith(f"{each['object']['name']}: ") for each in found)
    kind, name = found[0]["object"]["kind"], found[0]["object"]["name"]
    assert f'name="{kind} {name}"' in run("old.yaml", "new.yaml", "--format", "junit")[1]
    assert f'name="{kind} {name}"' in run("new.yaml", "new.yaml", "--format", "junit")[1]
    assert f"{kind} {name}" not in run("old.yaml", "new.yaml")[1]


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
        "## API changes\n\n1 breaking.\n\n### Breaking (1)\n\n"
        "| change | code | why it matters |\n|---|---|---|\n| things"
    )
    assert run("old.yaml", "old.yaml", "--format", "markdown")[1] == "## API changes\n\nNone.\n"
    assert json.loads(run("old.yaml", "new.yaml", "--format", "json")[1])["summary"]["error"] == 1


def test_a_field_is_deprecated_in_openapi_3(tmp_path: Path) -> None:
    states = []
    for marked in ({}, {"deprecated": True}):
        document = openapi({"x": {"type": "string"}})
        text = json.dumps(document["definitions"]).replace("#/definitions/", "#/components/schemas/")
        schemas = json.loads(text)
        schemas["com.example.v1.ThingSpec"]["properties"]["x"] |= marked
        info = {"openapi": "3.0.0", "info": document["info"], "paths": {}}
        states.append(read({**info, "components": {"schemas": schemas}}, tmp_path / f"{len(states)}.yaml"))
    names = {d.name: d for d in states[0].definitions}
    resource = Resource(
        group="example.com",
        version="v1",
        kind="Thing",
        plural="things",
        singular="thing",
        namespaced=True,
        verbs=(),
        definition="com.example.v1.Thing",
        location=names["com.example.v1.Thing"].value.location,
    )
    old, new = (replace(api, resources=(resource,)) for api in states)
    assert [c.kind.code for c in compare(old, new)] == ["D263"]
    assert [c.kind.code for c in compare(new, old)] == ["D264"]


def test_changed_descriptions_are_told_when_asked_for(tmp_path: Path) -> None:
    case = {"before": {"type": "string", "description": "a"}, "after": {"type": "string", "description": "b"}}
    old, new = (state_of(case, side, tmp_path) for side in ("before", "after"))
    assert [c.kind.code for c in compare(old, new, documentation=True)] == ["D259"]


def test_text_of_a_spec_is_no_markup_in_a_pull_request(tmp_path: Path) -> None:
    evil = "`]|<img src=x>|[a](https://e.example) @maintainer #1 **b** \\| ~~c~~ www.e.example"
    old = state({"before": {"type": "string", "enum": ["A"]}}, "before")
    new = state({"after": {"type": "string", "enum": ["A", evil]}}, "after")
    for document, name in ((old, "old.yaml"), (new, "new.yaml")):
        (tmp_path / name).write_text(yaml.safe_dump(document))
    out = run(str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"), "--format", "markdown")[1]
    (row,) = (line for line in out.splitlines() if "enum value" in line)
    assert row.count("|") == 4
    cell = row.split("|")[1]
    assert not set(cell) & set("`<>*~[]\\")
    for live in ("://", "www.", "@maintainer", " #1 "):
        assert live not in cell


def test_rules_beside_the_specs_come_with_their_state(removal: Path) -> None:
    """A git state has the rules of its own revision; without any, or with other ones, there is no number to compare."""

    def git(*words: str) -> None:
        author = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *author, *words], check=True, capture_output=True)

    Path("api.yaml").write_text(yaml.safe_dump(openapi({"x": {"type": "integer"}})))
    git("init", "-q")
    git("add", "api.yaml")
    git("commit", "-qm", "no numbers")
    Path("facts").mkdir()
    numbers = Path("facts/protobuf.yaml")
    numbers.write_text("com.example.v1.ThingSpec: {x: 1}\n")
    git("add", "facts")
    git("commit", "-qm", "numbers")
    numbers.write_text("com.example.v1.ThingSpec: {x: 2}\n")
    assert run("git:HEAD~1:api.yaml", "api.yaml", "--facts", "facts")[0] == 0
    code, out, _ = run("git:HEAD:api.yaml", "api.yaml", "--facts", "facts")
    assert code == 1
    assert "error D311: com.example.v1.ThingSpec: x: protobuf number changed from 1 to 2" in out
    Path("was").mkdir()
    Path("was/protobuf.yaml").write_text("com.example.v1.ThingSpec: {x: 7}\n")
    assert "changed from 7 to 2" in run("api.yaml", "api.yaml", "--facts", "facts", "--old-facts", "was")[1]
    assert run("api.yaml", "api.yaml", "--facts", "nothing")[0] == 2


def test_a_definition_of_several_versions_weighs_as_the_most_stable_of_them(tmp_path: Path) -> None:
    """Whatever the order of versions: what a stable version shares with an alpha is no alpha's change."""
    states = []
    for extra in ({"gone": {"type": "string"}}, {}):
        document = openapi({"x": {"type": "object", "properties": {"kept": {"type": "string"}, **extra}}})
        paths = document["paths"]
        for path in [*paths]:
            twin = json.loads(json.dumps(paths[path]).replace('"v1"', '"v1alpha1"'))
            paths[path.replace("/v1/", "/v1alpha1/").replace("example.com", "a.example.com")] = json.loads(
                json.dumps(twin).replace("example.com", "a.example.com")
            )
        thing = json.loads(json.dumps(document["definitions"]["com.example.v1.Thing"]))
        thing["x-kubernetes-group-version-kind"] = [
            {"group": "a.example.com", "version": "v1alpha1", "kind": "Thing"}
        ]
        document["definitions"]["com.example.a.v1alpha1.Thing"] = thing
        states.append(read(document, tmp_path / f"{len(states)}.yaml"))
    (change,) = compare(*states)
    assert (change.path, weigh(change)) == ("things.example.com/v1: spec.x.gone", Severity.ERROR)


def limited(fields: int, most: int | None) -> dict[str, Any]:
    text = {"type": "string"} if most is None else {"type": "string", "maxLength": most}
    return {"type": "object", "properties": {f"f{number}": {**text} for number in range(fields)}}


def test_one_idea_at_many_places_is_one_finding(tmp_path: Path) -> None:
    for side, most in (("old", None), ("new", 9)):
        (tmp_path / f"{side}.yaml").write_text(yaml.safe_dump(state({"x": limited(9, most)}, "x")))
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    code, out, _ = run(str(old), str(new), "-q")
    assert code == 1 and out.count("D214") == 1
    assert "spec.x.f0: length is limited now: at most 9 (at 9 places: also " in out and "and 4 more)" in out
    assert run(str(old), str(new), "-q", "--each")[1].count("D214") == 9


def test_errors_between_releases_are_few_and_true() -> None:
    """The record of ``diff_judged.yaml``: 25 pairs of releases, how many errors, and the share that is true."""
    pairs = yaml.load((Path(__file__).parent / "diff_judged.yaml").read_text(), yaml.CSafeLoader)
    errors = [error for pair in pairs for error in pair.get("errors", ())]
    assert len(pairs) == 25
    assert {error["code"] for error in errors} <= set(KINDS)
    assert max(len(pair.get("errors", ())) for pair in pairs) <= 4
    assert all(error["true"] for error in errors)


def test_releases_are_named_as_elsewhere() -> None:
    code, out, err = run("kubernetes:v1.37", "kubernetes:1.37.2")
    assert (code, out) == (0, ""), err
