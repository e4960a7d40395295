"""Every lint rule on a CRD that breaks it alone, and on one that breaks none."""

from __future__ import annotations

import copy
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright import cli
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.pipeline import read_api
from kubewright.tools.lint.run import Settings, lint, load_rules

CASES = yaml.load((Path(__file__).parent / "lint_cases.yaml").read_text(), yaml.CSafeLoader)
CONDITION = {
    "type": {"type": "string", "description": "type names the condition", "maxLength": 60},
    "status": {
        "type": "string",
        "description": "status is True, False or Unknown",
        "enum": ["True", "False", "Unknown"],
    },
    "lastTransitionTime": {
        "type": "string",
        "format": "date-time",
        "description": "lastTransitionTime is when status changed",
    },
    "reason": {"type": "string", "description": "reason is a word for programs", "maxLength": 60},
    "message": {"type": "string", "description": "message is a sentence for people", "maxLength": 600},
}
CLEAN: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [
                    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "Thing is a thing.",
                        "required": ["spec"],
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": {
                                "type": "object",
                                "description": "spec is the desired state",
                                "properties": {
                                    "replicas": {
                                        "type": "integer",
                                        "format": "int32",
                                        "minimum": 0,
                                        "maximum": 100,
                                        "description": "replicas is how many are wanted",
                                    },
                                    "mode": {
                                        "type": "string",
                                        "enum": ["Fast", "Safe"],
                                        "description": "mode is Fast or Safe",
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "description": "status is what was observed",
                                "properties": {
                                    "observedGeneration": {
                                        "type": "integer",
                                        "format": "int64",
                                        "description": "observedGeneration is the generation observed",
                                    },
                                    "replicas": {
                                        "type": "integer",
                                        "format": "int32",
                                        "description": "replicas is how many there are",
                                    },
                                    "conditions": {
                                        "type": "array",
                                        "description": "conditions say how it is",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["type"],
                                        "items": {
                                            "type": "object",
                                            "required": ["type", "status"],
                                            "properties": CONDITION,
                                        },
                                    },
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}


def merge(target: Any, patch: Any) -> Any:
    """A merge patch in which a list changes item by item."""
    if isinstance(patch, dict) and isinstance(target, dict):
        changed = {k: v for k, v in target.items() if not (k in patch and patch[k] is None)}
        return changed | {k: merge(target.get(k), v) for k, v in patch.items() if v is not None}
    if isinstance(patch, list) and isinstance(target, list) and all(isinstance(p, dict) for p in patch):
        if target and isinstance(target[0], dict) and len(patch) <= len(target):
            return (
                [merge(t, p) for t, p in zip(target, patch, strict=False)]
                if len(patch) == len(target)
                else patch
            )
    return patch


def manifest(case: dict[str, Any]) -> dict[str, Any]:
    crd = copy.deepcopy(CLEAN)
    version = crd["spec"]["versions"][0]
    if "versions" in case:
        crd["spec"]["versions"] = [{**copy.deepcopy(version), **change} for change in case["versions"]]
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    for part in ("spec", "status"):
        properties[part]["properties"] = merge(properties[part]["properties"], case.get(part, {}))
    changed: dict[str, Any] = merge(crd, case.get("patch", {}))
    changed["metadata"]["name"] = f"{changed['spec']['names']['plural']}.{changed['spec']['group']}"
    return changed


def findings(document: dict[str, Any], folder: Path, **settings: Any) -> list[str]:
    path = folder / "crd.yaml"
    path.write_text(yaml.safe_dump(document))
    diagnostics = Diagnostics()
    api = read_api(Package(name="x", sources=(PathSource(path),), documentation=True), diagnostics)
    assert not diagnostics.has_errors, [str(d) for d in diagnostics]
    return [f.diagnostic.message for f in lint(api, Settings(**settings))]


@pytest.mark.parametrize("case", CASES, ids=[c["rule"] for c in CASES])
def test_each_rule_finds_its_fault_and_nothing_else(case: dict[str, Any], tmp_path: Path) -> None:
    profile = case.get("profile", "crd")
    found = findings(manifest(case), tmp_path, profile=profile, select=(case["rule"],))
    assert len(found) == len(case["finds"]), found
    for text in case["finds"]:
        assert any(text in message for message in found), found


def test_a_clean_kind_has_no_findings(tmp_path: Path) -> None:
    assert findings(CLEAN, tmp_path) == []


def native(**changed: Any) -> dict[str, Any]:
    """An OpenAPI document of one kind in a group of one's own."""
    meta = "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    said = {"group": "example.com", "version": "v1", "kind": "Thing"} | changed.pop("gvk", {})
    text = {"type": "string"}
    ports = {"type": "array", "items": {"$ref": "#/definitions/com.example.v1.Port"}} | changed.pop(
        "ports", {}
    )
    empty = {"$ref": "#/definitions/com.example.v1.Mode"}
    spec = {"type": "object", "properties": {"ports": ports, "mode": empty}}
    kind = {"apiVersion": text, "kind": text, "metadata": {"$ref": meta}, "spec": spec} | changed.pop(
        "fields", {}
    )
    thing = {
        "type": "object",
        "properties": {name: value for name, value in kind.items() if value is not None},
        "x-kubernetes-group-version-kind": [said],
    }
    base = f"/apis/{said['group']}/{said['version']}"
    reference = {"$ref": "#/definitions/com.example.v1.Thing"}
    answer = {"200": {"description": "OK", "schema": reference}}
    read = {"responses": answer, "x-kubernetes-action": "get", "x-kubernetes-group-version-kind": said}
    name = {"name": "name", "in": "path", "required": True, "type": "string"}
    paths = {f"{base}/things/{{name}}": {"get": read, "parameters": [name]}}
    definitions = {
        "com.example.v1.Thing": thing,
        "com.example.v1.Port": {"type": "object", "required": ["name"], "properties": {"name": text}},
        "com.example.v1.Mode": {"type": "object"},
        "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {"type": "object", "properties": {"name": text}},
    }
    about = {"title": "things", "version": "1"}
    return {"swagger": "2.0", "info": about, "paths": paths, "definitions": definitions}


MAP_LIST = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
MERGED = {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}
NATIVE: dict[str, tuple[dict[str, Any], str]] = {
    "L101": ({"gvk": {"group": "Example_Com"}}, 'group "Example_Com" is not a lower-case DNS subdomain'),
    "L104": ({"gvk": {"kind": "thing"}}, 'kind "thing" is not CamelCase'),
    "L212": ({"ports": MAP_LIST}, 'map list "ports" has no patch strategy merge'),
    "L320": ({"fields": {"metadata": None}}, "kind Thing has no metadata"),
}


@pytest.mark.parametrize("code", NATIVE)
def test_rules_that_crds_cannot_break_find_their_fault_in_openapi(code: str, tmp_path: Path) -> None:
    changed, said = NATIVE[code]
    found = findings(native(**copy.deepcopy(changed)), tmp_path, profile="native", select=(code,))
    assert [message.split(": ", 1)[1].removeprefix("spec.ports: ") for message in found] == [said]
    clean = native(ports=MAP_LIST | MERGED)
    assert findings(clean, tmp_path, profile="native", select=(code, "L215")) == []


SHOWN = yaml.load((Path(__file__).parent / "lint_examples.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("code", SHOWN)
def test_examples_of_the_documentation_are_bad_and_good(code: str, tmp_path: Path) -> None:
    for name, example in SHOWN[code].items():
        if "text" not in example:
            found = findings(manifest(example), tmp_path, select=(code,))
            assert bool(found) == (name == "bad"), (name, found)


def test_the_documentation_has_a_bad_and_a_good_example_of_every_rule() -> None:
    kept = {(case["rule"], bool(case["finds"])) for case in CASES if isinstance(case.get("rule"), str)}
    kept |= {(code, name == "bad") for code, given in SHOWN.items() for name in given}
    assert {(code, is_bad) for code in load_rules() for is_bad in (True, False)} - kept == set()


def test_every_rule_has_a_case_and_explains_itself() -> None:
    rules = load_rules()
    covered = {case["rule"] for case in CASES}
    # L001 and the rules of the house have tests of their own; the rest is what CRDs cannot break, or are refused for.
    alone = {"L001", "L601", "L602", "L603", "L604"}
    assert set(rules) - covered == set(NATIVE) | {"L505", "L506"} | alone
    for rule in rules.values():
        check = rule.of_place or rule.of_kind or rule.of_api
        assert check is not None
        assert check.__doc__
        assert rule.rationale.endswith(".")
        assert not rule.hint.endswith(".")
        assert rule.source


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = cli.main(["lint", *arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "crd.yaml"
    path.write_text(
        yaml.safe_dump(manifest({"spec": {"isReady": {"type": "boolean", "description": "isReady"}}}))
    )
    return path


def test_findings_name_file_line_and_hint(faulty: Path) -> None:
    code, out, err = run("crd.yaml", "--select", "L112")
    assert code == 1
    line = next(n for n, text in enumerate(faulty.read_text().splitlines(), 1) if "isReady:" in text)
    assert out.startswith((f"crd.yaml:{line + 1}:", f"crd.yaml:{line}:"))
    assert (
        'warning L112: things.example.com/v1: spec.isReady: boolean "isReady" begins with "is"\n  hint: drop'
        in out
    )
    assert err == "1 warning\n"
    assert run("crd.yaml", "--select", "L310, L112") == (code, out, err)
    assert run("crd.yaml", "--select", "L310,L999")[0] == 2


def test_a_file_that_cannot_be_read_does_not_keep_a_folder_from_being_judged(faulty: Path) -> None:
    Path("broken.yaml").write_text("kind: CustomResourceDefinition\na: [\n")
    code, out, _ = run(".", "--select", "L112")
    assert code == 2
    assert "broken.yaml:3:1: error K011" in out and "warning L112: things.example.com/v1" in out
    report = json.loads(run(".", "--select", "L112", "--format", "json")[1])
    assert [each["code"] for each in report["findings"]] == ["K011", "L112"]
    assert run("broken.yaml", "crd.yaml", "--select", "L112")[1].count(" L112") == 0, "both were named"


def test_without_an_api_description_lint_says_which_command_checks_manifests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    for path, error in (
        (".", ".: error K003: no OpenAPI document or CustomResourceDefinition here"),
        ("web.yaml", "web.yaml:2:1: error K004: wanted an OpenAPI document or a CustomResourceDefinition"),
    ):
        code, out, err = run(path)
        assert code == 2
        assert error in out + err and "`kubewright validate` checks" in out + err


def test_a_baseline_only_shrinks(faulty: Path) -> None:
    select = ("crd.yaml", "--select", "L112", "--baseline", "known.json")
    code, _, err = run(*select)
    assert (code, err) == (
        2,
        "kubewright lint: known.json: no such baseline; --update-baseline writes the first one\n",
    )
    assert run(*select, "--update-baseline")[0] == 0
    known = json.loads(Path("known.json").read_text())
    assert known == {"L112": {"things.example.com/v1: spec.isReady": 1}}
    assert run(*select)[:2] == (0, "")
    faulty.write_text(
        yaml.safe_dump(
            manifest({"spec": {"hasMore": {"type": "boolean", "description": "hasMore"}}}),
        )
    )
    code, out, err = run(*select)
    assert code == 1
    assert "spec.hasMore" in out
    assert "1 known finding is gone: run with --update-baseline" in err
    assert run(*select, "--update-baseline")[0] == 1  # the new finding is never taken in
    assert json.loads(Path("known.json").read_text()) == {}


def test_settings_come_from_pyproject(faulty: Path) -> None:
    settings = Path("pyproject.toml")
    settings.write_text('[tool.kubewright.lint]\nselect = ["L112"]\nseverity = { L112 = "error" }\n')
    assert "error L112" in run("crd.yaml")[1]
    settings.write_text('[tool.kubewright.lint]\nselect = ["L112"]\nexclude = ["*: spec.is*"]\n')
    assert run("crd.yaml")[:2] == (0, "")
    settings.write_text('[tool.kubewright.lint]\nselect = ["L112"]\nseverity = { L112 = "off" }\n')
    assert run("crd.yaml")[:2] == (0, "")


REFUSED = [
    (
        'colour = "red"',
        "unknown setting 'colour'; there are: apart, baseline, exclude, fail-on, forbidden, ignore, names, needed, "
        "profile, select, severity",
    ),
    ('profile = "x"', "profile: 'x' is neither crd nor native"),
    ('select = ["Q"]', "select: there is no rule Q; `--explain all` lists them"),
    ('select = "L1"', "select: must be a list of strings"),
    ('severity = { L101 = "loud" }', "severity.L101: 'loud' is none of error, warning, note, off"),
    ('names = { "[" = "x" }', "names: '[' is no regular expression: unterminated character set"),
    ('forbidden = "nullable"', "forbidden: must be a list of strings"),
    ("needed = { default = 1 }", "needed.default: must be a list of strings"),
    ('apart = ["a"]', "apart: must be a list of strings"),
    ('fail-on = "never"', "fail-on: 'never' is none of error, warning, note"),
]


@pytest.mark.parametrize(("line", "text"), REFUSED)
def test_unusable_settings_are_named(faulty: Path, line: str, text: str) -> None:
    Path("pyproject.toml").write_text(f"[tool.kubewright.lint]\n{line}\n")
    code, out, err = run("crd.yaml")
    assert (code, out) == (2, "")
    assert text in err


def test_nothing_to_lint_is_an_error_and_rules_explain_themselves(faulty: Path) -> None:
    assert run()[0] == 2
    code, out, _ = run("--explain", "L209")
    assert code == 0
    assert out.startswith(
        "L209 list-type (warning; profiles: crd, native)\n  Rule: Every list says how it merges."
    )
    assert run("--explain", "L999")[0] == 2
    assert len(run("--explain", "all")[1].splitlines()) == len(load_rules())


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
def test_machine_readable_forms_parse(faulty: Path, form: str) -> None:
    import xml.etree.ElementTree as ElementTree

    code, out, err = run("crd.yaml", "--select", "L112", "--format", form)
    assert (code, err) == (1, "")
    if form == "junit":
        assert ElementTree.fromstring(out).attrib["tests"] == "1"  # only errors fail
    elif form == "github":
        assert out.startswith("::warning file=crd.yaml,line=")
    else:
        assert "L112" in json.dumps(json.loads(out))


def test_findings_name_their_kind(faulty: Path) -> None:
    import xml.etree.ElementTree as ElementTree

    def report(form: str, *options: str) -> str:
        return run("crd.yaml", "--select", "L112", "--format", form, *options)[1]

    found = json.loads(report("json"))["findings"]
    kind, name = found[0]["object"]["kind"], found[0]["object"]["name"]
    assert found[0]["message"].startswith(f"{name}: ")
    places = json.loads(report("sarif"))["runs"][0]["results"][0]["locations"]
    assert places[0]["logicalLocations"][0]["fullyQualifiedName"] == f"{kind} {name}"
    assert f"{kind} {name}" not in report("text")  # the message begins with the name already
    # A kind has its case, with findings and without.
    for options in ((), ("--ignore", "L112")):
        cases = ElementTree.fromstring(report("junit", *options)).findall("testcase")
        assert f"{kind} {name}" in [case.attrib["name"] for case in cases]


HOUSE = """
[tool.kubewright.lint]
select = ["L6"]
forbidden = ["nullable"]
needed = { default = ["description"] }
apart = [["enum", "pattern"]]
[tool.kubewright.lint.names]
"(?i)fruit" = "say crop"
"""


def test_a_house_has_rules_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = {"type": "string"}
    spec = {
        "fruitSize": {**text, "description": "fruitSize"},
        "maybe": {**text, "nullable": True},
        "bare": {**text, "default": "x"},
        "told": {**text, "default": "x", "description": "told"},
        "both": {**text, "enum": ["a"], "pattern": "a"},
    }
    Path("crd.yaml").write_text(yaml.safe_dump(manifest({"spec": spec})))
    assert run("crd.yaml", "--select", "L6")[:2] == (0, "")
    Path("pyproject.toml").write_text(HOUSE)
    _, out, _ = run("crd.yaml")
    said = sorted(line.split(": ", 4)[-1] for line in out.splitlines() if "warning" in line)
    assert said == [
        '"bare" has default, but no description',
        '"both" has enum and pattern',
        '"fruitSize": say crop',
        '"maybe" has the keyword nullable',
    ]


def test_a_rule_that_waits_to_be_named_is_silent_until_then(faulty: Path) -> None:
    faulty.write_text(yaml.safe_dump(manifest({"spec": {"a": {"type": "string"}}})))
    assert "L231" not in run("crd.yaml")[1]
    assert "L231" not in run("crd.yaml", "--select", "L2")[1]
    assert '"a" has no minLength' in run("crd.yaml", "--select", "L231")[1]
    Path("pyproject.toml").write_text('[tool.kubewright.lint]\nseverity = { L231 = "error" }\n')
    assert "error L231" in run("crd.yaml")[1]
    assert "only where it is named" in run("--explain", "L231")[1]


@pytest.mark.parametrize(
    ("above", "beside", "found"),
    [
        ("", "", ["L112"]),
        ("", "# kubewright: ignore[L112] of old", []),
        ("# kubewright: ignore[L112]\n# for a reason", "", []),
        ("# kubewright: ignore[L113, L112]", "", ["L001"]),
        ("# kubewright: ignore[L999]", "", ["L112"]),
        ("", "# kubewright: ignore L112", ["L112"]),
    ],
)
def test_a_comment_passes_over_what_stands_there(
    faulty: Path, above: str, beside: str, found: list[str]
) -> None:
    lines = faulty.read_text().splitlines()
    at = next(n for n, text in enumerate(lines) if "isReady:" in text)
    lines[at] += f"  {beside}"
    lines[at:at] = above.splitlines()
    faulty.write_text("\n".join(lines) + "\n")
    _, out, _ = run("crd.yaml", "--select", "L11", "--select", "L001", "--format", "json")
    assert [each["code"] for each in json.loads(out)["findings"]] == found


def test_comments_of_rules_that_were_not_asked_for_are_left_alone(faulty: Path) -> None:
    faulty.write_text("# kubewright: ignore[L308] nothing here\n" + faulty.read_text())
    assert "L001" not in run("crd.yaml", "--select", "L112")[1]
    assert "crd.yaml:1:1: warning L001: nothing here for L308 to be passed over" in run("crd.yaml")[1]


def test_the_documentation_lists_every_rule() -> None:
    said = (ROOT / "docs/tools.md").read_text().splitlines()
    rows = []
    for rule in load_rules().values():
        check = rule.of_place or rule.of_kind or rule.of_api
        profile = "both" if len(rule.profiles) == 2 else next(iter(rule.profiles))
        waits = " (only where it is named)" if rule.opt_in else ""
        text = ((check.__doc__ if check else "") or "").strip().replace("\n   ", "")
        rows.append(f"| {rule.code} | {rule.name} | {rule.severity.value} | {profile} | {text}{waits} |")
    assert [line for line in said if line.startswith("| L")] == rows, "\n".join(rows)


ROOT = Path(__file__).parents[2]
EXAMPLES = [
    ROOT / "specs/backup/crds",
    ROOT / "specs/messaging/openapi.yaml",
    ROOT / "specs/flags/openapi.yaml",
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_example_groups_have_no_warning_but_those_given_a_reason(path: Path) -> None:
    code, out, err = run(str(path), "--config", str(ROOT / "specs/lint.toml"))
    assert (code, out) == (0, ""), err


def test_every_line_of_the_examples_exclusions_is_needed() -> None:
    import tomllib

    from kubewright.tools.lint.run import _excludes

    _, out, _ = run(*map(str, EXAMPLES), "--format", "json")
    found = [(f["code"], f["message"]) for f in json.loads(out)["findings"]]
    patterns = tomllib.loads((ROOT / "specs/lint.toml").read_text())["exclude"]
    places = [(code, ": ".join(message.split(": ")[:2])) for code, message in found]
    places += [(code, message.split(": ")[0]) for code, message in found]
    idle = [p for p in patterns if not any(_excludes(p, code, place) for code, place in places)]
    assert idle == []


def test_findings_that_were_judged_are_true() -> None:
    """The record of ``lint_judged.yaml``: how many there are, of what, and the share that is true."""
    judged = yaml.load((Path(__file__).parent / "lint_judged.yaml").read_text(), yaml.CSafeLoader)
    found = [
        (project, rule, finding)
        for project, rules in judged["findings"].items()
        for rule, findings in rules.items()
        for finding in findings
    ]
    assert (len(found), len(judged["projects"])) == (300, 40)
    assert {rule for _, rule, _ in found} == set(judged["reasons"]) <= set(load_rules())
    wrong = [(each["project"], each["rule"], each["finding"]) for each in judged["wrong"]]
    assert set(wrong) <= set(found)
    assert len(wrong) <= 0.03 * len(found)
