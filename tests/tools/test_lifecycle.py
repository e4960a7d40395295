"""``kubewright lifecycle``: plans that keep the deprecation policy, each way to break it, and the policy's timeline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.source.text import parse_documents
from kubewright.tools.lifecycle.plan import ReleasePlan, read_plan
from kubewright.tools.lifecycle.policy import RULES, lines_of
from kubewright.tools.lifecycle.timeline import TimelineRow, rows_of
from tests.tools.command import kubewright

HERE = Path(__file__).parent
CASES: list[dict[str, Any]] = yaml.load((HERE / "lifecycle_cases.yaml").read_text(), yaml.CSafeLoader)
POLICY = HERE / "plans" / "policy.yaml"
TABLE: list[dict[str, Any]] = yaml.load((HERE / "plans" / "policy-table.yaml").read_text(), yaml.CSafeLoader)


def plan_of(case: dict[str, Any]) -> dict[str, Any]:
    entries = [
        {"api_version": f"x/{entry['v']}", "kind": "A", **{k: v for k, v in entry.items() if k != "v"}}
        for entry in case["entries"]
    ]
    return {"resources": entries, **{k: case[k] for k in ("releases", "exceptions") if k in case}}


@pytest.mark.parametrize("case", CASES, ids=[case["name"].replace(" ", "-") for case in CASES])
def test_each_rule_of_the_policy(case: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan_of(case)))
    code, out, err = kubewright("lifecycle", path)
    told: dict[str, list[str]] = {"error": [], "note": []}
    for line in out.splitlines():
        if not line.startswith("  hint: "):
            severity, _, said = line.partition(": ")[2].partition(" ")
            told[severity].append(said)
    assert err == ""
    assert sorted(told["error"]) == sorted(case["said"])
    assert told["note"] == case.get("notes", [])
    assert code == (1 if case["said"] else 0)


def test_each_code_has_a_case() -> None:
    told = {said.partition(":")[0] for case in CASES for said in case["said"]}
    assert set(RULES) - told == {"P012", "P014", "P100"}  # of specs, and of plans that cannot be read


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "a plan has a list called resources"),
        ("resources: [x]", "an entry has api_version and kind"),
        ("resources: [{api_version: x/v1, kind: A}]", "an entry says in which release it was introduced"),
        ("resources: [{api_version: x/v1, kind: A, introduced: 1.30}]", "introduced: 1.3 is no release"),
        ("resources: [{api_version: x/v1, kind: A, introduced: X+01}]", "introduced: 'X+01' is no release"),
        ("resources: [{api_version: x/v1, kind: A, introduced: X, removd: X}]", "an entry has no 'removd'"),
        (
            "resources: [{api_version: x/v1, kind: A, introduced: X, replacement: v2}]",
            "replacement is group/version/Kind",
        ),
        ("resources: []\nrelease: 1", "a plan has no 'release'"),
        ("resources: []\nreleases: 1", "releases is a list of releases, or says the date of each"),
        ('resources: []\nreleases: {"1.1": soon}', "1.1: 'soon' is no date"),
        (
            "resources: []\nexceptions: [{code: P001}]",
            "an exception has code, of (patterns of group/version/Kind) and because",
        ),
        ("resources: []\nexceptions: 1", "an exception has code"),
        (
            "resources: [{api_version: x/v1, kind: A, introduced: X}, {api_version: x/v1, kind: A, introduced: X+1}]",
            "A of x/v1 stands twice",
        ),
        (
            "resources: [{api_version: x/v1, kind: A, introduced: X, deprecated: '1.2'}]",
            "releases counted from X and numbered ones do not go together",
        ),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    code, out, err = kubewright("lifecycle", path)
    assert (code, out) == (2, "")
    assert said in err
    assert kubewright("lifecycle", path, "--timeline")[0] == 2


def test_the_table_tells_when_a_deprecated_beta_may_go(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("resources: [{api_version: x/v1beta1, kind: A, introduced: '1.1', deprecated: '1.4'}]")
    out = kubewright("lifecycle", path, "--table")[1]
    assert out.splitlines()[-1] == "| A | x/v1beta1 | 1.1 | 1.4 | 1.7 at the earliest |  |"
    assert "| CronJob | batch/v1beta1 | 1.8 | 1.21 | 1.25 | batch/v1/CronJob |" in kubewright("lifecycle")[1]


def example() -> ReleasePlan:
    diagnostics = Diagnostics()
    (document,) = parse_documents(POLICY.read_bytes(), "policy.yaml", diagnostics)
    plan = read_plan(document, diagnostics)
    assert not [*diagnostics]
    return plan


def as_policy_says(row: TimelineRow) -> dict[str, Any]:
    """A row in the words of the recorded table."""
    assert row.preferred == row.storage
    said: dict[str, Any] = {
        "release": str(row.release),
        "served": [version for version, _ in row.served],
        "held": row.storage,
        "old": sorted(version for version, old in row.served if old),
    }
    for word in ("deprecated", "removed"):
        said[word] = sorted(note.split()[0] for note in row.notes if note.split()[1].rstrip(",") == word)
    return {key: value for key, value in said.items() if value}


def test_the_policys_own_example_keeps_the_policy_and_gives_its_table() -> None:
    plan = example()
    assert kubewright("lifecycle", POLICY) == (0, "", "")
    (line,) = lines_of(plan.entries).values()
    assert [as_policy_says(row) for row in rows_of(line, plan.calendar)] == TABLE


def test_the_timeline_says_what_a_plan_declares(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(
        "resources:\n"
        "- {api_version: x/v1beta1, kind: A, introduced: '1.9', deprecated: '1.10', removed: '2.0', storage: '1.9'}\n"
        "- {api_version: x/v1, kind: A, introduced: '1.10', storage: '1.11'}\n"
        "- {api_version: x/v1, kind: B, introduced: '1.10'}\n"
        "- {api_version: x/v1, kind: C, introduced: '1.10'}\n"
    )
    code, out, _ = kubewright("lifecycle", path, "--timeline")
    assert code == 0
    head, _, rest = out.partition("## x: B, C\n")
    assert head == (
        "## x: A\n\n"
        "| release | versions served | preferred | storage | what happens |\n"
        "|---|---|---|---|---|\n"
        "| 1.9 | v1beta1 | v1beta1 | v1beta1 | v1beta1 added |\n"
        "| 1.10 | v1, v1beta1 (deprecated) | v1beta1 | v1beta1 "
        "| v1 added; v1beta1 deprecated, use v1 (action required) |\n"
        "| 1.11 | v1, v1beta1 (deprecated) | v1 | v1 | preferred and storage version v1beta1 → v1 |\n"
        "| 2.0 | v1 | v1 | v1 | v1beta1 removed (action required) |\n\n"
    )
    assert rest.startswith("\nThe plan does not say what is preferred and stored")
    only = kubewright("lifecycle", path, "--timeline", "--only", "x/[BC]")[1]
    assert only == "## x: B, C\n" + rest
    assert kubewright("lifecycle", path, "--timeline", "--only", "y/*")[::2] == (
        2,
        "kubewright lifecycle: no kind is like y/*\n",
    )


def test_names_in_a_plan_are_no_markup(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    entry = {"api_version": "x/v1|`", "kind": "<b>[A](http://x) @you", "introduced": "1.1"}
    path.write_text(yaml.safe_dump({"resources": [entry]}))
    for form in ("--table", "--timeline"):
        out = kubewright("lifecycle", path, form)[1]
        assert not set(out) & set("<>`[]"), out
        assert "://" not in out and "@you" not in out
        lines = [line for line in out.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) == 1


def test_the_specs_of_a_plan_lose_no_field_between_versions(tmp_path: Path) -> None:
    plan = tmp_path / "plan.yaml"
    backup = HERE.parents[1] / "specs" / "backup"
    entries = [
        {"api_version": f"{crd['spec']['group']}/{version['name']}", "kind": crd["spec"]["names"]["kind"]}
        | {"introduced": "X"} | ({"deprecated": "X"} if version.get("deprecated") else {})
        for crd in (yaml.safe_load(path.read_text()) for path in (backup / "crds").iterdir())
        for version in crd["spec"]["versions"] if version["served"]
    ]  # fmt: skip
    plan.write_text(yaml.safe_dump({"resources": entries}))
    assert kubewright("lifecycle", plan, "--specs", backup / "crds", "--facts", backup) == (0, "", "")
    code, out, _ = kubewright("lifecycle", plan, "--specs", backup / "crds")
    assert (code, " error " in out) == (0, False)  # a webhook converts: nobody knows what it keeps
    assert "note P012: backupschedules.backup.kubewright.dev/v1: spec." in out
    crd = yaml.safe_load((backup / "crds" / "backupschedules.yaml").read_text())
    del crd["spec"]["conversion"]
    (tmp_path / "crd.yaml").write_text(yaml.safe_dump(crd))
    code, out, _ = kubewright("lifecycle", plan, "--specs", tmp_path / "crd.yaml")
    assert code == 1
    assert "error P012: backupschedules.backup.kubewright.dev/v1: spec." in out
    assert "has no place in v1alpha1, which is served too" in out
    code, _, err = kubewright("lifecycle", plan, "--specs", tmp_path / "nothing")
    assert (code, err) == (2, f"{tmp_path}/nothing: error K001: cannot read: no such file or folder\n")


AGREEMENT: dict[str, tuple[str, str, list[str]]] = {
    "they agree": ("", "", []),
    "a version that the plan took away": (
        'introduced: "1.1"', 'introduced: "1.1", removed: "1.3"',
        ["A of x.e.co/v1alpha1 is gone since 1.3 by the plan, and the specs of 1.3 serve it"],
    ),
    "a version that the specs lost": (
        "", "{name: v1, served: true, storage: false, schema: *s}",
        ["A of x.e.co/v1 is served in 1.2 by the plan, and the specs do not have it"],
    ),
    "a version that is not served": (
        "", "name: v1, served: true",
        ["A of x.e.co/v1 is served in 1.2 by the plan, and the specs do not serve it"],
    ),
    "a version that the plan does not know": (
        "{api_version: x.e.co/v1, kind: A, introduced: \"1.2\"}", "",
        ["A of x.e.co/v1 is in the specs, and the plan says nothing of it"],
    ),
    "a deprecation that nobody marked": (
        'introduced: "1.1"', 'introduced: "1.1", deprecated: "1.2"',
        ["A of x.e.co/v1alpha1 is deprecated since 1.2 by the plan, and the specs of 1.2 do not say so"],
    ),
    "another version is stored": (
        'introduced: "1.2"', 'introduced: "1.2", storage: "1.3"',
        ["A is stored as v1 in 1.3 by the plan, and as v1alpha1 by the specs"],
    ),
}  # fmt: skip
"""Name → what of the plan becomes what (of the specs where the first is empty), and what is said then."""


def agreement(case: str, folder: Path) -> tuple[int, list[str]]:
    was, now, _ = AGREEMENT[case]
    plan = (
        'resources:\n- {api_version: x.e.co/v1alpha1, kind: A, introduced: "1.1"}\n'
        '- {api_version: x.e.co/v1, kind: A, introduced: "1.2"}\n'
    )
    versions = [
        {"name": "v1alpha1", "served": True, "storage": True},
        {"name": "v1", "served": "name: v1" not in now, "storage": False},
    ]
    if now.startswith("{name: v1,"):
        del versions[1]
    if was:
        plan = plan.replace(f"- {was}\n" if not now else was, now)
    schema = {"openAPIV3Schema": {"type": "object"}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.x.e.co"},
        "spec": {
            "group": "x.e.co", "scope": "Cluster", "names": {"kind": "A", "plural": "as"},
            "versions": [{**version, "schema": schema} for version in versions],
        },
    }  # fmt: skip
    (folder / "plan.yaml").write_text(plan)
    (folder / "crd.yaml").write_text(yaml.safe_dump(crd))
    code, out, err = kubewright("lifecycle", folder / "plan.yaml", "--specs", folder / "crd.yaml")
    assert err == ""
    lines = out.splitlines()
    return code, [line.partition("error P014: ")[2] for line in lines if "P014" in line]


@pytest.mark.parametrize("case", AGREEMENT)
def test_a_plan_and_its_specs_say_the_same(case: str, tmp_path: Path) -> None:
    code, said = agreement(case, tmp_path)
    assert said == AGREEMENT[case][2]
    assert code == (1 if said else 0)


def test_the_release_of_the_specs_is_said_by_an_option(tmp_path: Path) -> None:
    agreement("a version that the plan took away", tmp_path)
    command = ("lifecycle", tmp_path / "plan.yaml", "--specs", tmp_path / "crd.yaml", "--release")
    assert kubewright(*command, "1.2") == (0, "", "")
    assert "v1 comes in 1.2 by the plan, and the specs of 1.1 serve it" in kubewright(*command, "1.1")[1]
    assert kubewright(*command, "soon") == (2, "", "kubewright lifecycle: 'soon' is no release\n")
    code, _, err = kubewright("lifecycle", tmp_path / "plan.yaml", "--release", "1.2")
    assert (code, err) == (2, "kubewright lifecycle: --release is that of --specs; give them too\n")


def test_the_built_in_kinds_keep_the_policy_but_for_what_is_explained() -> None:
    code, out, err = kubewright("lifecycle", "--check")
    findings = [line for line in out.splitlines() if not line.startswith("  hint")]
    assert (code, err) == (0, "")
    assert findings and all(" note P" in line for line in findings)
    assert out.count("  hint: known exception: ") == len(findings)
    assert "ClusterTrustBundle of certificates.k8s.io/v1beta1 is beta since 1.33, deprecated in 1.37" in out


def test_the_built_in_kinds_have_a_timeline() -> None:
    out = kubewright("lifecycle", "--timeline", "--only", "batch/CronJob")[1]
    assert (
        "| 1.21 | v1, v1beta1 (deprecated) | v1beta1 | v1beta1 "
        "| v1 added; v1beta1 deprecated, use v1 (action required) |" in out
    )
    assert out.splitlines()[-1] == "| 1.25 | v1 | v1 | v1 | v1beta1 removed (action required) |"
