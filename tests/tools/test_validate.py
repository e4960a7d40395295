"""``kubewright validate``: what it finds, where, and how it answers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from apimachinery.merge import json_patch
from apimachinery.wire import yaml as wire_yaml
from kubewright.tools.validate import check
from kubewright.tools.validate import run as judging
from tests.tools import command

ROOT = Path(__file__).parents[2]
SHARED = ROOT / "../shared"
CASES: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "validate_cases.yaml").read_text(), yaml.CSafeLoader
)
WIDGET = (Path(__file__).parent / "validate_widget_crd.yaml").read_text()


def kubewright(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
    return command.kubewright("validate", *arguments, stdin=stdin)


def findings(*arguments: str | Path, stdin: str = "") -> list[dict[str, Any]]:
    _, out, err = kubewright(*arguments, "--format", "json", stdin=stdin)
    assert out, err
    found: list[dict[str, Any]] = json.loads(out)["findings"]
    return found


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_fault_is_told_at_its_place(case: dict[str, Any], tmp_path: Path) -> None:
    crd = tmp_path / "crd.yaml"
    crd.write_text(WIDGET)
    found = findings("-", "--crds", crd, *case.get("options", []), stdin=case["input"])
    said = [f"{f['line']}:{f['column']} {f['severity']} {f['code']} {f['message']}" for f in found]
    assert said == case["findings"]
    code, _, err = kubewright("-", "--crds", crd, *case.get("options", []), stdin=case["input"])
    assert code == case.get("exit", 1 if any(f["severity"] == "error" for f in found) else 0), err


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, port: 1}]}\n"


def test_an_input_without_documents_is_refused_unless_allowed(tmp_path: Path) -> None:
    assert kubewright(tmp_path)[0] == 2
    assert kubewright(tmp_path, "--allow-empty")[0] == 0
    assert kubewright("-", stdin="---\n# nothing\n---\n")[0] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "--kubernetes", "1.2"], "no schemas of Kubernetes 1.2; there are: 1."),
        (["-", "-j", "-1"], "--jobs must not be negative"),
        (["no-such-file.yaml"], "no such file or folder"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(arguments: list[str], said: str) -> None:
    code, out, err = kubewright(*arguments)
    assert code == 2
    assert said in out + err


def test_crds_that_hold_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD)
    code, _, err = kubewright("-", "--crds", tmp_path, stdin=POD)
    assert code == 2
    assert "holds no CustomResourceDefinition" in err


def test_folders_are_walked_hidden_files_and_other_suffixes_are_not(tmp_path: Path) -> None:
    for name in ("b/x.yaml", "a.json", ".git/y.yaml", "note.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(yaml.safe_load(POD)) if name.endswith("json") else POD)
    found = findings(tmp_path)
    assert [Path(f["file"]).relative_to(tmp_path).as_posix() for f in found] == ["a.json", "b/x.yaml"]
    assert [(f["line"], f["message"]) for f in found] == [
        (1, 'unknown field "spec.containers[0].port"'),
        (4, 'unknown field "spec.containers[0].port"'),
    ]


def test_a_crd_among_the_manifests_counts_wherever_it_stands() -> None:
    widget = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 11, limit: 20}\n"
    found = findings("-", stdin=f"{widget}---\n{WIDGET}")
    assert [f["message"] for f in found] == [
        "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"
    ]


def test_every_form_of_output_tells_the_same(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(POD)
    line = f"{path}:4:41"
    assert line in kubewright(path, "--strict")[1]
    sarif = json.loads(kubewright(path, "--strict", "--format", "sarif")[1])
    region = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 4, "startColumn": 41}
    suite = ElementTree.fromstring(kubewright(path, "--strict", "--format", "junit")[1])
    assert suite.get("failures") == "1"
    assert ",line=4,col=41,title=V011::" in kubewright(path, "--strict", "--format", "github")[1]


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    many = "---\n".join(POD.replace("name: p", f"name: P{n}") for n in range(400))
    (tmp_path / "many.yaml").write_text(many)
    one, several = findings(tmp_path, "-j", "1"), findings(tmp_path, "-j", "3")
    assert len(one) == 800
    assert one == several


def test_equal_documents_are_judged_once_unless_there_are_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    real = check.judge

    def counted(chunk: Any, *rest: Any) -> Any:
        judged.append(Path(chunk.file).name)
        return real(chunk, *rest)

    monkeypatch.setattr(judging, "judge", counted)
    flow = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}"
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}-clean.yaml").write_text(flow)
        (tmp_path / f"{name}-wrong.yaml").write_text(POD.replace("name: p", "name: P"))
    (tmp_path / "d-broken.json").write_text(flow)  # YAML, but no JSON
    names = [f"{name}-wrong.yaml" for name in "aabbcc"]
    found = findings(*sorted(tmp_path.iterdir()), "-j", "1")
    assert sorted(Path(each["file"]).name for each in found) == [*names, "d-broken.json"]
    assert sorted(judged) == ["a-clean.yaml", *names[::2], "d-broken.json"]


def test_what_a_folder_is_read_for_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    real = wire_yaml.decode

    def counted(content: bytes, *rest: Any) -> Any:
        read.append(content)
        return real(content, *rest)

    monkeypatch.setattr(wire_yaml, "decode", counted)
    for number in range(3):
        pod = POD.replace("name: p", f"name: p-{number}")
        (tmp_path / f"{number}.yaml").write_text(f"{pod}# ${{NOT_IN_A_NAME}}\n")
    assert kubewright(tmp_path, "-j", "1")[1] != ""
    assert len(read) == 3


def deployment(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web-{number}", "labels": {"app": "web"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [
                        {"name": "web", "image": "web:1", "ports": [{"containerPort": 80}]},
                        {"name": "side", "image": "side:1", "env": [{"name": "A", "value": "b"}]},
                    ]
                },
            },
        },
    }


def _put(obj: dict[str, Any], path: str, value: Any) -> None:
    *way, last = [int(p) if p.isdigit() else p for p in path.split("/")]
    at: Any = obj
    for step in way:
        at = at[step]
    at[last] = value


FAULTS = [
    ("spec/replicas", "two", "spec.replicas"),
    ("spec/replicas", -1, "spec.replicas"),
    ("spec/replcas", 3, "spec.replcas"),
    ("metadata/name", "Not_A_Name", "metadata.name"),
    ("metadata/labels", {"app": "a b"}, "metadata.labels"),
    ("metadata/annotations", {"a": 5}, "metadata.annotations[a]"),
    ("spec/template/spec/restartPolicy", "Never", "spec.template.spec.restartPolicy"),
    ("spec/template/spec/containers/0/ports/0/containerPort", 0, "spec.template.spec.containers[0].ports[0]"),
    (
        "spec/template/spec/containers/0/imagePullPolicy",
        "Soon",
        "spec.template.spec.containers[0].imagePullPolicy",
    ),
    ("spec/template/spec/containers/1/image", 5, "spec.template.spec.containers[1].image"),
    ("spec/template/spec/containers/1/env/0/valu", "x", "spec.template.spec.containers[1].env[0].valu"),
    ("spec/strategy", {"type": "Sometimes"}, "spec.strategy: Unsupported"),
    ("spec/minReadySeconds", -5, "spec.minReadySeconds"),
    ("spec/paused", "yes", "spec.paused"),
    ("spec/template/spec/dnsPolicy", "Guess", "spec.template.spec.dnsPolicy"),
]


def test_five_faults_in_each_of_two_thousand_deployments_are_all_found(tmp_path: Path) -> None:
    documents, wanted = [], []
    for number in range(2000):
        chosen: dict[str, tuple[Any, str]] = {}
        step = 0
        while len(chosen) < 5:
            path, value, field = FAULTS[(number * 7 + step * (1 + number % 4)) % len(FAULTS)]
            chosen.setdefault(path, (value, field))
            step += 1 if step < 40 else 7
        obj = deployment(number)
        for path, (value, _) in chosen.items():
            _put(obj, path, value)
        documents.append(json.dumps(obj))
        wanted.append({field for _, field in chosen.values()})
    (tmp_path / "all.yaml").write_text("\n---\n".join(documents))
    found: list[list[str]] = [[] for _ in documents]
    for finding in findings(tmp_path, "--strict"):
        found[finding["line"] // 2].append(finding["message"])
    lacking = Counter(
        field
        for fields, messages in zip(wanted, found, strict=True)
        for field in fields
        if not any(field in message for message in messages)
    )
    assert lacking == {}
    # Nothing is told beyond the faults put in.
    assert {
        message
        for fields, messages in zip(wanted, found, strict=True)
        for message in messages
        if not any(field in message for field in fields)
    } == set()


@pytest.mark.parametrize("spec", ["null", "{names: null, versions: [null]}", "{versions: null, group: x}"])
def test_nulls_of_a_crd_are_faults_and_no_crash(spec: str) -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n"
    crd += f"spec: {spec}\n"
    found = findings("-", stdin=crd)
    assert {f["code"] for f in found} == {"V030"}
    assert any("spec.versions" in f["message"] for f in found)


VERDICTS = SHARED / "parity/crd-verdicts.json"


@pytest.mark.shared
@pytest.mark.skipif(not VERDICTS.exists(), reason="needs the ../shared folder of recordings")
@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.thorough)])
def test_verdicts_on_real_and_mutated_crds_in_one_run(tmp_path: Path, step: int) -> None:
    entries = json.loads(VERDICTS.read_text())[::step]
    read = {
        name: yaml.load((SHARED / "data/crds" / name).read_bytes(), Loader=yaml.CSafeLoader)
        for name in {entry["file"] for entry in entries}
    }
    for number, entry in enumerate(entries):
        crd = json_patch.apply(deepcopy(read[entry["file"]]), entry["patch"])
        (tmp_path / f"{number:04}.json").write_text(json.dumps(crd))
    causes: dict[int, list[str]] = {number: [] for number in range(len(entries))}
    for finding in findings(tmp_path):
        if finding["severity"] == "error":
            causes[int(Path(finding["file"]).stem)].append(finding["message"])
    wrong = [n for n, entry in enumerate(entries) if (entry["status"] == 201) == bool(causes[n])]
    counts = [n for n, entry in enumerate(entries) if len(entry["causes"]) != len(causes[n])]
    assert wrong == []
    assert len(counts) <= 1  # rules below a node with both properties and additionalProperties


IN_A_PROGRAM = """
import multiprocessing, signal, sys, threading
from kubewright import cli
signal.signal(signal.SIGTERM, lambda *_: None)
end = threading.Event()
other = threading.Thread(target=end.wait)
if sys.argv[1] == "threads":
    other.start()
    multiprocessing.get_context = None
code = cli.main(["validate", "--jobs", "2", sys.argv[2]])
end.set()
sys.exit(code)
"""


@pytest.mark.parametrize("threads", ["alone", "threads"])
def test_a_program_with_a_handler_or_threads_gets_its_verdicts(threads: str, tmp_path: Path) -> None:
    """A handler would keep workers alive, and a program with threads cannot be forked: it judges by itself."""
    text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {'x' * 300_000}}}\n"
    (tmp_path / "maps.yaml").write_text("---\n".join([text] * 3))
    command = [sys.executable, "-c", IN_A_PROGRAM, threads, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr


GEARS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.example.com}
spec:
  group: example.com
  names: {kind: Gear, plural: gears, singular: gear, listKind: GearList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          status: {type: object, properties: {a: {type: integer}}}
          spec:
            type: object
            properties:
              few: {type: object, minProperties: 5, additionalProperties: {type: integer}}
              many: {type: object, maxProperties: 1, additionalProperties: {type: integer}}
---
apiVersion: example.com/v1
kind: Gear
metadata: {name: a}
"""


def test_a_status_that_a_server_drops_is_not_judged() -> None:
    text = f"{GEARS}status: {{a: x}}\n"
    assert kubewright("-", stdin=text)[0] == 0
    judged = text.replace("    subresources: {status: {}}\n", "")
    assert kubewright("-", stdin=judged)[0] == 1


def test_too_many_and_too_few_hide_nothing_below() -> None:
    code, out, _ = kubewright("-", stdin=f"{GEARS}spec: {{few: {{a: x}}, many: {{a: x, b: 1}}}}\n")
    places = [line.split("V020: ")[1].split(": ")[1] for line in out.splitlines() if "V020" in line]
    assert (code, sorted(places)) == (1, ["spec.few", "spec.few.a", "spec.many", "spec.many.a"])


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ([], ["a.yaml", "charts/b.yaml", "charts/deep/c-ci.yaml"]),
        (["*/charts"], ["a.yaml"]),
        (["charts"], ["a.yaml"]),
        (["*-ci.yaml"], ["a.yaml", "charts/b.yaml"]),
        (["deep", "a.yaml"], ["charts/b.yaml"]),
    ],
)
def test_files_can_be_left_out(patterns: list[str], left: list[str], tmp_path: Path) -> None:
    for name in ("a.yaml", "charts/b.yaml", "charts/deep/c-ci.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: 1\n")
    words = [word for pattern in patterns for word in ("--exclude", pattern)]
    found = json.loads(kubewright(tmp_path, *words, "--format", "json")[1])["findings"]
    assert [Path(f["file"]).relative_to(tmp_path).as_posix() for f in found] == left


def test_plain_misspellings_are_named_and_mended(tmp_path: Path) -> None:
    text = """\
# kept
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  repliacs: 2   # two
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: a, imagePullpolicy: Always, "tyt": true, zebra: 1}]}
"""
    path = tmp_path / "web.yaml"
    path.write_text(text)
    code, out, _ = kubewright(path, "--strict")
    assert code == 1
    assert (
        "did you mean replicas?" in out
        and "did you mean imagePullPolicy?" in out
        and "did you mean tty?" not in out
    )
    code, out, err = kubewright(path, "--strict", "--fix")
    assert (code, "2 fields renamed" in err) == (1, True) and "zebra" in out
    mended = text.replace("repliacs", "replicas").replace("imagePullpolicy", "imagePullPolicy")
    assert path.read_text() == mended


def test_misspellings_in_custom_resources(tmp_path: Path) -> None:
    path = tmp_path / "gear.yaml"
    path.write_text(f"{GEARS}spec: {{manny: {{a: 1}}}}\n")
    assert kubewright(path, "--strict", "--fix")[0] == 0
    assert "{many: {a: 1}}" in path.read_text()
