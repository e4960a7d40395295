"""``kubewright migrate`` and ``kubewright convert``: what they find, what they write, and what they leave alone."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.wire import yaml as wire_yaml
from kubewright.source.lifecycle import read_lifecycles, release_of
from kubewright.tools.migrate.rewrite import rewrite
from kubewright.tools.outputs.reporting import Progress
from tests.tools.command import kubewright

CASES: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "migrate_cases.yaml").read_text(), yaml.CSafeLoader
)
ROOT = Path(__file__).parents[2]
FOLDERS: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "migrate_folders.yaml").read_text(), yaml.CSafeLoader
)
GUIDE: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "migration_guide.yaml").read_text(), yaml.CSafeLoader
)
ROWS = {"1.16": 11, "1.22": 23, "1.25": 7, "1.26": 3, "1.27": 1, "1.29": 2, "1.32": 2}
"""Release → kinds of an API version that the guide lists as gone with it."""


def test_the_guide_is_complete() -> None:
    assert Counter(row["release"] for row in GUIDE) == ROWS
    assert len({(row["api_version"], row["kind"]) for row in GUIDE}) == sum(ROWS.values())


@pytest.mark.parametrize("row", GUIDE, ids=[f"{row['api_version']} {row['kind']}" for row in GUIDE])
def test_each_row_of_the_guide_before_and_after(row: dict[str, Any]) -> None:
    assert yaml.safe_load(row["before"])["apiVersion"] == row["api_version"]
    findings = json.loads(kubewright("migrate", "-", "--format", "json", stdin=row["before"])[1])["findings"]
    code, out, err = kubewright("migrate", "-", "--write", stdin=row["before"])
    said = f"{row['kind']} of {row['api_version']} is gone since {row['release']}"
    assert [f["message"].startswith(said) for f in findings] == [True]
    assert [told for told in row.get("tells", ()) if told not in findings[0]["hint"]] == []
    assert out == row.get("after", row["before"])
    if "after" not in row:
        assert (code, findings[0]["code"]) == (1, "M003")
        return
    assert (code, findings[0]["code"]) == (0, "M001")
    assert err == "1 fixed in 1 of 1 documents, 0 left\n"
    for command in (("validate", "-", "--strict"), ("migrate", "-")):
        code, out, _ = kubewright(*command, stdin=row["after"])
        assert (code, out) == (0, ""), command


@pytest.mark.parametrize("case", FOLDERS, ids=[case["name"] for case in FOLDERS])
def test_folders_as_people_have_them(
    case: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in case["files"].items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    _, out, err = kubewright("migrate", ".", "--format", "json")
    kubewright("migrate", ".", "--write")
    said = [
        f"{f['file']}:{f['line']} {f['severity']} {f['code']} {f['message']}"
        for f in json.loads(out)["findings"]
    ]
    assert said == case["findings"], err
    after = case["files"] | case.get("after", {})
    assert {name: Path(name).read_text() for name in after} == after


def test_a_release_without_schemas_refuses_nothing() -> None:
    text = "apiVersion: extensions/v1beta1\nkind: Ingress\nmetadata: {name: a}\nspec: {nonsense: true}\n"
    _, out, _ = kubewright("migrate", "-", "--kubernetes", "1.24", "--format", "json", stdin=text)
    assert [f["code"] for f in json.loads(out)["findings"]] == ["M001"]
    _, out, _ = kubewright("migrate", "-", "--kubernetes", "v1.25", "--format", "json", stdin=text)
    assert [f["code"] for f in json.loads(out)["findings"]] == ["M001", "M007", "M007"]


@pytest.mark.parametrize(
    "odd",
    [
        "metadata: [null]\nspec: {template: {spec: null}}",
        "metadata: {ownerReferences: {a: 1}}\nspec: 5",
        "metadata: {ownerReferences: [3, {kind: 4, apiVersion: []}]}\nspec: {scaleTargetRef: x}",
        "rules: [5, {apiGroups: x, resources: [1, null]}]",
        "webhooks: {rules: 1}\nspec: {template: {spec: {containers: [], resourceClaims: [4]}}}",
    ],
)
@pytest.mark.parametrize(
    "head",
    [
        "apiVersion: apps/v1beta2\nkind: DaemonSet",
        "apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role",
        "apiVersion: admissionregistration.k8s.io/v1beta1\nkind: MutatingWebhookConfiguration",
    ],
)
def test_odd_objects_are_answered(head: str, odd: str) -> None:
    code, out, err = kubewright("migrate", "-", "--write", stdin=f"{head}\n{odd}\n")
    assert code == 1 and "Traceback" not in err and "/v1\n" in out


def test_progress_is_for_terminals(capfd: pytest.CaptureFixture[str]) -> None:
    shown = Progress(200)
    for done in (1, 2, 3, 200):
        shown(done)
    shown.clear()
    Progress(200, shown=False)(1)
    assert (
        capfd.readouterr().err
        == "\r1/200 documents (0 %)\r2/200 documents (1 %)\r200/200 documents (100 %)\r\x1b[K"
    )


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_each_manifest_before_and_after(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(case["before"])
    code, out, err = kubewright("migrate", path, "--kubernetes", case.get("to", "1.37"), "--format", "json")
    said = [f"{f['line']} {f['severity']} {f['code']} {f['message']}" for f in json.loads(out)["findings"]]
    assert said == case["findings"], err
    assert code == (1 if any(" note " not in line for line in said) else 0)
    assert path.read_text() == case["before"], "only --write writes"
    kubewright("migrate", path, "--kubernetes", case.get("to", "1.37"), "--write")
    assert path.read_text() == case.get("after", case["before"])
    again = kubewright(
        "migrate", path, "--kubernetes", case.get("to", "1.37"), "--write", "--format", "json"
    )[1]
    assert not {"M001", "M002"} & {f["code"] for f in json.loads(again)["findings"]}, (
        "written twice, changed once"
    )


SOUND = [c for c in CASES if "after" in c and not c.get("refused") and not c.get("custom")]


@pytest.mark.parametrize("case", SOUND, ids=[case["name"] for case in SOUND])
def test_what_is_written_is_valid_in_the_newest_release(case: dict[str, Any]) -> None:
    code, out, _ = kubewright("validate", "-", "--strict", stdin=case["after"])
    assert (code, out) == (0, "")


NO_MANIFEST = {
    "Scale",
    "DeploymentRollback",
    "Eviction",
    "AdmissionReview",
    "APIGroupDiscovery",
    "ConversionReview",
}


def gone_by_the_newest() -> list[tuple[str, str]]:
    """Every kind that a manifest may hold and that 1.37 does not have any more."""
    return sorted(
        (api_version, kind)
        for (api_version, kind), life in read_lifecycles().items()
        if life.removed and release_of(life.removed) <= (1, 37) and kind not in NO_MANIFEST
    )


@pytest.mark.parametrize(("api_version", "kind"), gone_by_the_newest(), ids=lambda text: text)
def test_every_kind_that_is_gone_is_found_and_what_has_a_successor_is_rewritten(
    api_version: str, kind: str
) -> None:
    manifest = f"# kept\napiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: a # kept too\n"
    err = kubewright("migrate", "-", stdin=manifest)[1]
    out = kubewright("migrate", "-", "--write", stdin=manifest)[1]
    life = read_lifecycles()[api_version, kind]
    assert f"{kind} of {api_version} is gone since {life.removed}" in err
    if "M001" in err:
        assert "# kept\n" in out
        assert f"apiVersion: {api_version}\n" not in out
        assert "M001" not in kubewright("migrate", "-", stdin=out)[1]
    else:
        assert "M003" in err
        assert out == manifest


def test_a_release_that_is_none_is_refused() -> None:
    code, _, err = kubewright("migrate", "-", "--kubernetes", "newest", stdin="a: 1")
    assert code == 2
    assert "is no release" in err


def test_convert_keeps_comments_converts_lists_and_tells_what_it_cannot(tmp_path: Path) -> None:
    text = "# c\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler # k\nmetadata: {name: h}\n"
    text += "spec: {maxReplicas: 2}\n"
    code, out, err = kubewright("convert", "-f", "-", "--output-version", "autoscaling/v1", stdin=text)
    assert (code, out) == (0, text.replace("autoscaling/v2", "autoscaling/v1")), err
    code, out, err = kubewright(
        "convert", "-f", "-", "--output-version", "apps/v1", stdin=f"{text}---\n{text}"
    )
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        f"<stdin>:{line}: error: no conversion from autoscaling/v2 to apps/v1 for HorizontalPodAutoscaler"
        for line in (1, 7)
    ]
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(text)]})
    out = kubewright("convert", "-f", "-", "--output-version", "autoscaling/v1", stdin=items)[1]
    assert json.loads(out)["items"][0]["apiVersion"] == "autoscaling/v1"
    assert kubewright("convert", "-f", tmp_path, "--output-version", "v1")[0] == 2


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab:#-{ '\"\n", max_size=6)
VALUES = st.recursive(
    SCALARS,
    lambda v: (
        st.lists(v, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=2), v, max_size=4)
    ),
)


@given(
    old=st.dictionaries(st.sampled_from("abcd"), VALUES, min_size=1), data=st.data(), seed=st.integers(0, 99)
)
def test_an_edited_text_says_the_new_value(old: dict[str, Any], data: st.DataObject, seed: int) -> None:
    new = {**old, **data.draw(st.dictionaries(st.sampled_from("abcdef"), VALUES))}
    for name in random.Random(seed).sample(sorted(new), k=len(new) // 3):
        del new[name]
    done = rewrite(wire_yaml.encode(old).decode(), old, new)
    assert wire_yaml.decode(done.text.encode()) == new


def test_what_is_fixed_is_counted_and_what_is_left_is_printed(tmp_path: Path) -> None:
    old = "apiVersion: batch/v1beta1\nkind: CronJob\nmetadata: {name: a, namespace: b}\nspec: {schedule: x}\n"
    gone = "---\napiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: p}\n"
    (tmp_path / "a.yaml").write_text(old + gone)
    out = kubewright("migrate", tmp_path)[1]
    assert "CronJob b/a: CronJob of batch/v1beta1 is gone" in out and "PodSecurityPolicy p: " in out
    code, out, err = kubewright("migrate", tmp_path, "--write")
    left = [line for line in out.splitlines() if not line.startswith(" ")]
    assert code == 1 and "M001" not in out and any("M003" in line for line in left)
    assert err.startswith(f"1 fixed in 1 of 2 documents, {len(left)} left: ")


def test_a_release_that_nobody_knows_yet_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    for release, is_told in (("1.37", False), ("1.99", True)):
        code, _, err = kubewright("migrate", "--kubernetes", release, tmp_path / "a.yaml")
        assert (code, "what releases after 1.37 remove is not all known yet" in err) == (0, is_told)
