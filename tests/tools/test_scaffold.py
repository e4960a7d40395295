"""``kubewright scaffold``: a group, two kinds and three versions that lint, validate, generate and serve at once."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.config import FILE_NAME
from kubewright.ir.words import plural_of
from kubewright.testing import ApiServer
from kubewright.tools.scaffold.overrides import add_entry
from kubewright.tools.scaffold.versioning import add_version, succeeds
from kubewright.tools.scaffold.writing import FilePlan, RefusedError
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
GROUP = "shop.example.com"


def scaffold(*arguments: str | Path) -> None:
    code, _, err = kubewright("scaffold", *arguments)
    assert code == 0, err


def make_group(folder: Path) -> Path:
    scaffold("group", "shop", "--domain", "example.com", "--output", folder)
    return folder


def make_widget(folder: Path, version: str = "v1alpha1") -> Path:
    scaffold(
        "kind", "Widget", "--group", GROUP, "--version", version, "--short-name", "wd", "--output", folder
    )
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    return make_group(tmp_path / "shop")


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A group with Widget at three versions and the cluster-wide Policy at one."""
    folder = make_widget(make_group(tmp_path_factory.mktemp("grown") / "shop"))
    scaffold("kind", "Policy", "--group", GROUP, "--version", "v1", "--scope", "Cluster", "--output", folder)
    scaffold("version", "v1beta1", "--kind", "Widget", "--storage", "--output", folder)
    scaffold("version", "v1", "--kind", "Widget", "--storage", "--output", folder)
    return folder


@pytest.fixture(scope="module")
def server(grown: Path) -> Iterator[ApiServer]:
    with ApiServer(crds=[grown / "crds"]) as running:
        yield running


def versions(folder: Path) -> dict[str, Any]:
    crd = yaml.safe_load((folder / "crds/widgets.yaml").read_text())
    return {entry["name"]: entry for entry in crd["spec"]["versions"]}


def findings(folder: Path) -> list[str]:
    """Codes of all that lint has to say of the CRDs as a warning or error."""
    code, out, _ = kubewright("lint", folder / "crds")
    assert code in (0, 1)
    return re.findall(r"(?:warning|error) (L[0-9]+)", out)


def test_what_it_writes_is_valid_and_keeps_the_conventions(grown: Path) -> None:
    code, out, err = kubewright("validate", "--strict", grown / "crds", grown / "samples", grown / "rbac")
    assert (code, out) == (0, ""), out + err
    code, out, err = kubewright("lint", "--fail-on", "warning", grown / "crds")
    assert code == 0, out + err


def test_it_generates(grown: Path, tmp_path: Path) -> None:
    code, out, err = kubewright("generate", "--config", grown / FILE_NAME, "--output", tmp_path / "made")
    assert code == 0, out + err
    assert list((tmp_path / "made/shop_api").rglob("conversion.py")), "the stub of the conversion is read"


def test_its_own_tests_pass(grown: Path) -> None:
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])
    }
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=grown, env=environment, capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert answer.returncode == 0 and "8 passed" in answer.stdout, answer.stdout + answer.stderr


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1"])
def test_a_server_serves_every_version(server: ApiServer, grown: Path, version: str) -> None:
    sample = yaml.safe_load((grown / f"samples/widgets-{version}.yaml").read_text())
    assert sample["apiVersion"] == f"{GROUP}/{version}"
    with server.namespace() as namespace:
        place = f"apis/{GROUP}/{{}}/namespaces/{namespace}/widgets"
        server.request("POST", "/" + place.format(version), sample)
        for other in ("v1alpha1", "v1beta1", "v1"):
            found = server.request("GET", f"/{place.format(other)}/widget-sample")
            assert (found["apiVersion"], found["spec"]) == (f"{GROUP}/{other}", sample["spec"])


def test_a_server_serves_the_other_kind(server: ApiServer, grown: Path) -> None:
    sample = yaml.safe_load((grown / "samples/policies-v1.yaml").read_text())
    server.request("POST", f"/apis/{GROUP}/v1/policies", sample)
    assert server.request("GET", f"/apis/{GROUP}/v1/policies/policy-sample")["spec"] == sample["spec"]


def test_the_kustomization_lists_every_manifest(grown: Path) -> None:
    listed = yaml.safe_load((grown / "kustomization.yaml").read_text())["resources"]
    standing = [
        path.relative_to(grown).as_posix() for name in ("crds", "rbac") for path in (grown / name).iterdir()
    ]
    assert sorted(listed) == sorted(standing)


def test_roles_of_the_group_select_those_of_the_kinds(grown: Path) -> None:
    for role in ("viewer", "editor", "admin"):
        whole = yaml.safe_load((grown / f"rbac/{role}.yaml").read_text())
        own = yaml.safe_load((grown / f"rbac/widgets-{role}.yaml").read_text())
        assert [own["metadata"]["labels"]] == [
            selector["matchLabels"] for selector in whole["aggregationRule"]["clusterRoleSelectors"]
        ]
        assert ("delete" in own["rules"][0]["verbs"]) == (role != "viewer")
        assert ("update" in own["rules"][1]["verbs"]) == (role == "admin")


def test_a_new_version_deprecates_the_one_it_follows(grown: Path) -> None:
    found = versions(grown)
    assert [*found] == ["v1alpha1", "v1beta1", "v1"]
    assert {name: entry.get("deprecationWarning") for name, entry in found.items()} == {
        "v1alpha1": f"{GROUP}/v1alpha1 Widget is deprecated; use {GROUP}/v1beta1 Widget",
        "v1beta1": f"{GROUP}/v1beta1 Widget is deprecated; use {GROUP}/v1 Widget",
        "v1": None,
    }
    assert [name for name, entry in found.items() if entry["storage"]] == ["v1"], "one alone is stored"
    assert found["v1"]["schema"] == found["v1alpha1"]["schema"]
    rules = yaml.safe_load((grown / "conversions/widgets.yaml").read_text())
    assert (rules["hub"], [*rules["spokes"]]) == (f"{GROUP}/v1", [f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"])


def test_a_less_stable_version_deprecates_nothing(group: Path) -> None:
    make_widget(group, "v1")
    code, _, err = kubewright("scaffold", "version", "v2alpha1", "--kind", "Widget", "--output", group)
    assert code == 0 and "v1 is not deprecated" in err
    assert not any("deprecated" in entry for entry in versions(group).values())
    rules = yaml.safe_load((group / "conversions/widgets.yaml").read_text())
    assert rules["hub"] == f"{GROUP}/v1"
    code, out, _ = kubewright("lint", "--fail-on", "warning", group / "crds")
    assert code == 0, out


@pytest.mark.parametrize(
    ("new", "old", "answer"),
    [
        ("v1", "v1beta1", True),
        ("v1beta1", "v1alpha1", True),
        ("v1beta2", "v1beta1", True),
        ("v2", "v1", True),
        ("v1beta1", "v1beta2", False),
        ("v2alpha1", "v1", False),
        ("v2beta1", "v1", False),
        ("v1", "v2", False),
    ],
)
def test_who_succeeds_whom(new: str, old: str, answer: bool) -> None:
    assert succeeds(new, old) is answer


def stored(folder: Path) -> list[str]:
    return [name for name, entry in versions(folder).items() if entry["storage"]]


def test_the_storage_version_moves_by_flag_alone(group: Path) -> None:
    make_widget(group)
    scaffold("version", "v1alpha2", "--kind", "Widget", "--output", group)
    assert (stored(group), findings(group)) == (["v1alpha1"], [])
    scaffold("version", "v1beta1", "--kind", "Widget", "--output", group)
    assert (stored(group), findings(group)) == (["v1alpha1"], [])
    assert "note L507" in kubewright("lint", "--least", "note", group / "crds")[1], (
        "lint reminds of the move, no more"
    )
    scaffold("version", "v1", "--kind", "Widget", "--storage", "--output", group)
    assert (stored(group), findings(group)) == (["v1"], [])
    code, out, _ = kubewright("validate", "--strict", group / "crds", group / "samples")
    assert code == 0, out


def test_an_edit_keeps_comments_and_order(group: Path) -> None:
    crd = make_widget(group) / "crds/widgets.yaml"
    text = crd.read_text().replace(
        "                minimum: 1\n", "                minimum: 1  # never zero\n"
    )
    crd.write_text("# ours\n" + text + "  # the end\n")
    scaffold("version", "v1beta1", "--kind", "Widget", "--output", group)
    after = crd.read_text()
    assert (
        after.startswith("# ours\n") and after.endswith("  # the end\n") and after.count("# never zero") == 2
    )
    kept = iter(after.splitlines())
    assert all(line in kept for line in (f"# ours\n{text}").splitlines()), "every line stands, in its order"


def test_a_style_that_cannot_be_edited_is_refused(group: Path) -> None:
    crd = make_widget(group) / "crds/widgets.yaml"
    crd.write_text(yaml.safe_dump(yaml.safe_load(crd.read_text()), default_flow_style=True))
    before = contents(group)
    code, _, err = kubewright("scaffold", "version", "v1beta1", "--kind", "Widget", "--output", group)
    assert code == 2 and "block style" in err
    assert contents(group) == before


def test_keys_in_another_order_are_edited_too() -> None:
    text = (
        "metadata: {name: ds.e.co}\nspec:\n  group: e.co\n  names: {kind: D}\n  versions:\n"
        "    - schema: {}\n      storage: true\n      name: v1beta1\n      deprecated: true\n"
        "      served: false\n    - name: v1alpha1\n      served: true\n      storage: false\n  scope: Cluster"
    )
    made = add_version(text, yaml.safe_load(text), "v1beta2", True, "crd.yaml")
    assert made.copied == "v1beta1" and made.deprecates
    after = yaml.safe_load(made.text)["spec"]
    assert after["scope"] == "Cluster"
    assert after["versions"][2] == {"schema": {}, "storage": True, "name": "v1beta2", "served": True}


REFUSALS = {
    "the kind is there": (1, ["kind", "Widget", "--group", GROUP, "--version", "v1"], "already exists"),
    "the version is there": (1, ["version", "v1alpha1", "--kind", "Widget"], "already has v1alpha1"),
    "the group is there": (1, ["group", "shop", "--domain", "example.com"], "already exists"),
    "no such kind": (2, ["version", "v1", "--kind", "Gadget"], "no CRD of kind Gadget"),
    "no version": (2, ["version", "1.0", "--kind", "Widget"], "must be a version"),
    "no kind": (2, ["kind", "widget", "--group", GROUP, "--version", "v1"], "CamelCase"),
    "a kind that is YAML": (
        2,
        ["kind", "Null", "--group", GROUP, "--version", "v1"],
        "would not read this as text",
    ),
    "no group": (2, ["kind", "Gadget", "--group", "shop", "--version", "v1"], "DNS subdomain"),
    "a path for a plural": (
        2,
        ["kind", "Gadget", "--group", GROUP, "--version", "v1", "--plural", "../x"],
        "--plural '../x'",
    ),
    "code for a name": (2, ["group", "a\n- b", "--domain", "example.com"], "lower-case word"),
    "a column of no field": (
        2,
        ["kind", "Gadget", "--version", "v1", "--column", "Size=.spec.size"],
        "no field with a single value",
    ),
    "a column that is a list": (
        2,
        ["kind", "Gadget", "--version", "v1", "--column", "P=.spec.parameters"],
        "no field with a single value",
    ),
    "a column twice": (
        2,
        ["kind", "Gadget", "--version", "v1", "--column", "Age=.spec.mode"],
        "must be unique",
    ),
    "a release that is none": (
        2,
        ["kind", "Gadget", "--version", "v1", "--release", "soon"],
        "a release such as 1.4",
    ),
    "a value is missing": (2, ["kind", "Gadget", "--group", GROUP], "--version is required"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals_write_nothing(case: str, group: Path) -> None:
    make_widget(group)
    before = contents(group)
    wanted, arguments, said = REFUSALS[case]
    code, out, err = kubewright("scaffold", *arguments, "--output", group)
    assert (code, out) == (wanted, "") and said in err and "Traceback" not in err
    assert contents(group) == before


def test_what_serve_writes_is_kept_out_of_git(group: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=group, check=True)
    written = ["kubeconfig", "kubewright.db", "kubewright.db-wal", "tls.key", "admin-token"]
    for name in written:
        (group / name).write_text("")
    subprocess.run(["git", "add", "-A"], cwd=group, check=True)
    added = subprocess.run(
        ["git", "ls-files"], cwd=group, check=True, capture_output=True, text=True
    ).stdout.split()
    assert "kubewright.yaml" in added and ".gitignore" in added
    assert {*written} & {*added} == set()


def test_a_gitignore_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    code, out, err = kubewright("scaffold", "group", "shop", "--domain", "example.com", "--output", tmp_path)
    assert code == 0 and (tmp_path / ".gitignore").read_text() == "*.pyc\n"
    assert "add kubeconfig to" in out + err


def test_a_folder_that_is_no_group_is_refused(tmp_path: Path) -> None:
    code, _, err = kubewright(
        "scaffold", "kind", "Widget", "--group", GROUP, "--version", "v1", "--output", tmp_path
    )
    assert code == 2 and "kubewright scaffold group" in err
    assert not contents(tmp_path)


def test_one_file_in_the_way_stops_all(group: Path) -> None:
    (group / "tests").mkdir()
    (group / "tests/test_widgets.py").write_text("mine\n")
    before = contents(group)
    code, _, err = kubewright(
        "scaffold", "kind", "Widget", "--group", GROUP, "--version", "v1", "--output", group
    )
    assert code == 1 and "tests/test_widgets.py" in err
    assert contents(group) == before


def test_a_fault_on_the_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edited = tmp_path / "edited"
    edited.write_text("before")
    plan = FilePlan({tmp_path / "a/b/one": "1", tmp_path / "a/two": "2"}, {edited: ("before", "after")})

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        plan.write()
    assert [path.name for path in tmp_path.iterdir()] == ["edited"] and edited.read_text() == "before"


def test_an_edit_of_what_somebody_changed_is_refused(tmp_path: Path) -> None:
    edited = tmp_path / "edited"
    edited.write_text("theirs")
    with pytest.raises(RefusedError, match="changed while"):
        FilePlan({tmp_path / "new": "1"}, {edited: ("before", "after")}).write()
    assert edited.read_text() == "theirs" and not (tmp_path / "new").exists()


def on_a_terminal(answers: str, *arguments: str | Path) -> tuple[int, str]:
    """Exit code and screen of a command whose three streams are a pseudo-terminal."""
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "kubewright", *map(str, arguments)],
        stdin=theirs, stdout=theirs, stderr=theirs, env=ENVIRONMENT,
    ) as child:  # fmt: skip
        os.close(theirs)
        os.write(mine, answers.encode())
        screen = b""
        with suppress(OSError):  # Linux says EIO where the other side is closed
            while select.select([mine], [], [], PATIENCE_SECONDS)[0] and (chunk := os.read(mine, 65536)):
                screen += chunk
        os.close(mine)
        try:
            child.wait(PATIENCE_SECONDS)
        finally:
            child.kill()
    return child.returncode, screen.decode().replace("\r\n", "\n")


PATIENCE_SECONDS = 60.0
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT / "generated")])}


def test_a_terminal_is_asked_for_every_value_with_its_default(tmp_path: Path) -> None:
    folder = tmp_path / "shop"
    code, screen = on_a_terminal(f"shop\nexample.com\n{folder}\n", "scaffold", "group")
    assert code == 0, screen
    assert all(prompt in screen for prompt in ("NAME: ", "--domain: ", "--output [shop]: "))

    answers = "widget\nWidget\n\n1\nv1beta1\n\nwd\nnowhere\nCluster\nInterval=.spec.intervalSeconds\n1.4\n"
    code, screen = on_a_terminal(answers, "scaffold", "kind", "--output", folder)
    assert code == 0, screen
    assert "'widget': must be a word in CamelCase" in screen and "must be Namespaced or Cluster" in screen
    assert all(
        prompt in screen
        for prompt in ("KIND: ", f"--group [{GROUP}]: ", "--version [v1alpha1]: ", "--plural [widgets]: ",
                       "--short-name []: ", "--scope [Namespaced]: ", "--column []: ", "--release [0.1]: ")
    ), screen  # fmt: skip
    crd = yaml.safe_load((folder / "crds/widgets.yaml").read_text())
    assert (crd["spec"]["scope"], crd["spec"]["names"]["shortNames"]) == ("Cluster", ["wd"])
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    assert [(c["name"], c["type"]) for c in columns] == [
        ("Ready", "string"),
        ("Interval", "integer"),
        ("Age", "date"),
    ]

    code, screen = on_a_terminal("Widget\nv1\nmaybe\ny\n\n", "scaffold", "version", "--output", folder)
    assert code == 0, screen
    assert "'maybe': answer yes or no" in screen and "--release [1.5]: " in screen
    assert stored(folder) == ["v1"]


def test_who_gives_what_is_required_is_asked_nothing(group: Path) -> None:
    arguments = ("scaffold", "kind", "Widget", "--version", "v1", "--output", group)
    code, screen = on_a_terminal("", *arguments)
    assert code == 0 and ": \n" not in screen and "--plural" not in screen


def test_an_end_of_input_is_an_answer_too(group: Path) -> None:
    before = contents(group)
    code, screen = on_a_terminal("\x04", "scaffold", "kind", "--output", group)
    assert code == 2 and "KIND is required" in screen and "Traceback" not in screen
    assert contents(group) == before


def plan(folder: Path) -> list[dict[str, str]]:
    entries: list[dict[str, str]] = yaml.safe_load((folder / "lifecycle.yaml").read_text())["resources"]
    return entries


def test_the_release_plan_is_kept(grown: Path) -> None:
    assert plan(grown) == [
        {"api_version": f"{GROUP}/v1alpha1", "kind": "Widget", "introduced": "0.1", "deprecated": "0.2",
         "replacement": f"{GROUP}/v1beta1/Widget"},
        {"api_version": f"{GROUP}/v1", "kind": "Policy", "introduced": "0.1"},
        {"api_version": f"{GROUP}/v1beta1", "kind": "Widget", "introduced": "0.2", "deprecated": "0.3",
         "replacement": f"{GROUP}/v1/Widget"},
        {"api_version": f"{GROUP}/v1", "kind": "Widget", "introduced": "0.3"},
    ]  # fmt: skip
    code, out, err = kubewright("lifecycle", grown / "lifecycle.yaml")
    assert (code, out) == (0, ""), err


def test_the_release_is_said_by_a_flag_and_the_plan_keeps_its_comments(group: Path) -> None:
    scaffold("kind", "Widget", "--version", "v1beta1", "--release", "1.9", "--output", group)
    path = group / "lifecycle.yaml"
    path.write_text(
        path.read_text().replace('introduced: "1.9"', 'introduced: "1.9"  # with the big release')
    )
    scaffold("version", "v1", "--kind", "Widget", "--release", "2.0", "--output", group)
    assert "# with the big release" in path.read_text()
    assert [entry.get("deprecated") for entry in plan(group)] == ["2.0", None]
    before = contents(group)
    code, _, err = kubewright(
        "scaffold", "version", "v2", "--kind", "Widget", "--release", "1.0", "--output", group
    )
    assert code == 2 and f"{GROUP}/v1 Widget is introduced after 1.0" in err and contents(group) == before


def test_a_group_without_a_plan_gets_one(group: Path) -> None:
    make_widget(group)
    (group / "lifecycle.yaml").unlink()
    scaffold("version", "v1beta1", "--kind", "Widget", "--release", "1.3", "--output", group)
    assert plan(group) == [
        {"api_version": f"{GROUP}/v1alpha1", "kind": "Widget", "deprecated": "1.3",
         "replacement": f"{GROUP}/v1beta1/Widget"},
        {"api_version": f"{GROUP}/v1beta1", "kind": "Widget", "introduced": "1.3"},
    ]  # fmt: skip


def test_hooks_survive_generation_and_pass_to_the_next_version(group: Path) -> None:
    make_widget(group)
    hooks = group / "generated/shop_api/shop_v1alpha1/hooks.py"
    mine = hooks.read_text().replace("Hooks(),", "Hooks(orphans=True),")
    hooks.write_text(mine)
    scaffold("version", "v1beta1", "--kind", "Widget", "--output", group)
    scaffold("kind", "Gadget", "--version", "v1beta1", "--output", group)
    for _ in range(2):
        code, out, err = kubewright("generate", "--config", group / FILE_NAME)
        assert code == 0, out + err
    assert "nothing changed" in out + err, "what was generated is no source of itself"
    assert hooks.read_text() == mine
    said = run_python(
        group / "generated",
        "from shop_api.shop_v1beta1.hooks import HOOKS; print({k: h.orphans for k, h in HOOKS.items()})",
    )
    assert said == "{'Widget': True, 'Gadget': False}\n"


def test_a_hand_written_conversion_takes_the_place_of_the_generated_one(group: Path) -> None:
    make_widget(group)
    scaffold("version", "v1beta1", "--kind", "Widget", "--output", group)
    hooks = group / "generated/shop_api/shop_v1beta1/hooks.py"
    table = f'{{("Widget", "{GROUP}/v1alpha1", "{GROUP}/v1beta1"): lambda obj: {{**obj, "spec": {{}}}}}}'
    hooks.write_text(hooks.read_text().replace("CONVERSIONS: Table = {}", f"CONVERSIONS: Table = {table}"))
    assert kubewright("generate", "--config", group / FILE_NAME)[0] == 0
    said = run_python(
        group / "generated",
        "from kubewright.tools.migrate.conversions import converter_of\n"
        "from apimachinery.server.catalog.from_packages import ServedPackage, convert\n"
        f"old = {{'apiVersion': '{GROUP}/v1alpha1', 'kind': 'Widget', 'spec': {{'mode': 'Active'}}}}\n"
        f"print(converter_of('shop_api').convert(old, '{GROUP}/v1beta1')['spec'],"
        f" convert(ServedPackage('shop_api'), 'Widget', '{GROUP}/v1alpha1', '{GROUP}/v1beta1', old)['spec'])",
    )
    assert said == "{} {}\n"


def run_python(folder: Path, code: str) -> str:
    path = os.pathsep.join([str(folder), ENVIRONMENT["PYTHONPATH"]])
    answer = subprocess.run(
        [sys.executable, "-c", code],
        env=ENVIRONMENT | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('HOOKS = {\n    "A": a,\n}\n', 'HOOKS = {\n    "A": a,\n    "B": Hooks(),\n}\n'),
        ("HOOKS = {}\n", None),
        ("HOOKS = dict(A=a)\n", None),
        ("HOOKS = {**OTHER,\n}\n", None),
        ('HOOKS = {\n    "A": a  # last\n}\n', None),
        ("HOOKS = {\n", None),
    ],
)
def test_only_a_plain_table_of_hooks_is_edited(text: str, after: str | None) -> None:
    assert add_entry(text, "B", "Hooks()", "") == after


def test_a_table_of_hooks_that_cannot_be_edited_is_left_alone(group: Path) -> None:
    hooks = make_widget(group) / "generated/shop_api/shop_v1alpha1/hooks.py"
    hooks.write_text("HOOKS = dict()\n")
    code, _, err = kubewright("scaffold", "kind", "Gadget", "--version", "v1alpha1", "--output", group)
    assert code == 0 and "hooks.py was not edited: add Gadget" in err
    assert hooks.read_text() == "HOOKS = dict()\n"


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Widget", "widgets"),
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Ingress", "ingresses"),
        ("Box", "boxes"),
    ],
)
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural
