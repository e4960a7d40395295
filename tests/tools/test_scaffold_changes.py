"""``kubewright scaffold rename``, ``split``, ``move`` and ``retire``, and ``version`` for a version that is there: what
they write, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubewright.tools.scaffold.conversion_rules import (
    Rule,
    UnchangeableError,
    inverse,
    joined,
    over,
    renamed,
    split,
)
from tests.tools.command import kubewright
from tests.tools.test_scaffold import GROUP, contents, make_group, make_widget, scaffold

ADDRESS = """\
              address:
                type: string
                description: address is host and port of the store.  # as people write it
                maxLength: 260
                default: "localhost:80"
"""
OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A group with Widget at v1alpha1, which is stored, and v1beta1."""
    folder = make_widget(make_group(tmp_path / "shop"))
    crd = folder / "crds/widgets.yaml"
    crd.write_text(crd.read_text().replace("              mode:\n", f"{ADDRESS}              mode:\n", 1))
    sample = folder / "samples/widgets-v1alpha1.yaml"
    sample.write_text(sample.read_text().replace("Active\n", "Active  # on\n  address: a.example.com:8080\n"))
    scaffold("version", "v1beta1", "--kind", "Widget", "--output", folder)
    return folder


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def rules(folder: Path) -> dict[str, Any]:
    spokes: dict[str, Any] = read(folder / "conversions/widgets.yaml")["spokes"]
    return spokes


def entry(folder: Path, version: str) -> Any:
    versions = read(folder / "crds/widgets.yaml")["spec"]["versions"]
    return next(each for each in versions if each["name"] == version)


def spec_of(folder: Path, version: str) -> Any:
    return entry(folder, version)["schema"]["openAPIV3Schema"]["properties"]["spec"]


def plan(folder: Path) -> dict[str, dict[str, str]]:
    return {each["api_version"]: each for each in read(folder / "lifecycle.yaml")["resources"]}


def is_sound(folder: Path) -> None:
    """What is there validates, lints, generates and converts, and the plan fits."""
    for command in (
        ("validate", "--strict", folder / "crds", folder / "samples", folder / "rbac"),
        ("lint", "--fail-on", "warning", folder / "crds"),
        ("lifecycle", folder / "lifecycle.yaml", "--specs", folder / "crds", "--facts", folder),
        ("generate", "--config", folder / "kubewright.yaml"),
    ):
        code, out, err = kubewright(*command)
        assert code == 0, (command, out, err)


def test_a_renamed_field_is_renamed_wherever_its_path_is(shop: Path) -> None:
    crd = shop / "crds/widgets.yaml"
    rule = (
        "            x-kubernetes-validations:\n            - rule: self.mode != 'Off' || !has(self.mode)\n"
    )
    head = "            description: spec is the desired state of the Widget.\n"
    crd.write_text(crd.read_text().replace(head, f"{head}{rule}            default: {{mode: Active}}\n"))
    scaffold("rename", "spec.mode", "spec.state", "--kind", "Widget", "--output", shop)
    spec = spec_of(shop, "v1beta1")
    assert [*spec["properties"]][:2] == ["address", "state"]
    assert spec["properties"]["state"]["description"].startswith("state ")
    assert spec["x-kubernetes-validations"] == [{"rule": "self.state != 'Off' || !has(self.state)"}]
    assert spec["default"] == {"state": "Active"}
    assert entry(shop, "v1beta1")["additionalPrinterColumns"][1]["jsonPath"] == ".spec.state"
    assert spec_of(shop, "v1alpha1")["default"] == {"mode": "Active"}
    assert rules(shop) == {OLD: [{"move": "spec.mode", "to": "spec.state"}]}
    assert "  state: Active  # on\n" in (shop / "samples/widgets-v1beta1.yaml").read_text()


def test_fields_of_items_are_renamed_with_the_keys_of_their_list(shop: Path) -> None:
    for old, new in (("name", "key"), ("value", "text")):
        path = "spec.parameters[*]."
        scaffold("rename", path + old, path + new, "--kind", "Widget", "--output", shop)
    parameters = spec_of(shop, "v1beta1")["properties"]["parameters"]
    assert parameters["x-kubernetes-list-map-keys"] == parameters["items"]["required"] == ["key"]
    assert read(shop / "samples/widgets-v1beta1.yaml")["spec"]["parameters"] == [
        {"key": "greeting", "text": "hello"}
    ]
    is_sound(shop)


def test_a_split_field_has_its_parts_everywhere(shop: Path) -> None:
    scaffold(
        "split", "spec.address", "spec.host", "spec.port", "--separator", ":", "--kind", "Widget", "--output", shop
    )  # fmt: skip
    properties = spec_of(shop, "v1beta1")["properties"]
    assert [*properties][:2] == ["host", "port"]
    assert properties["host"] == {
        "type": "string", "description": "host is what address has before the first ':'.", "maxLength": 260,
        "pattern": "^[^:]*$", "default": "localhost",
    }  # fmt: skip
    assert properties["port"]["default"] == "80"
    assert rules(shop) == {
        OLD: [{"split": "spec.address", "to": ["spec.host", "spec.port"], "separator": ":"}]
    }
    sample = read(shop / "samples/widgets-v1beta1.yaml")["spec"]
    assert (sample["host"], sample["port"]) == ("a.example.com", "8080")
    is_sound(shop)
    options = ("--crds", shop / "crds", "--rules", shop)
    source = shop / "samples/widgets-v1beta1.yaml"
    code, out, err = kubewright("convert", "-f", source, "--output-version", OLD, *options)
    assert (code, yaml.safe_load(out)["spec"]["address"]) == (0, "a.example.com:8080"), err
    code, out, err = kubewright("convert", "-f", "-", "--output-version", NEW, *options, stdin=out)
    assert (code, yaml.safe_load(out)["spec"]) == (0, sample), err


def test_rules_of_older_versions_come_along(shop: Path) -> None:
    """Two renames in two versions: the oldest leads to the newest name."""
    scaffold("rename", "spec.mode", "spec.state", "--kind", "Widget", "--output", shop)
    scaffold("version", "v1", "--kind", "Widget", "--output", shop)
    assert rules(shop) == {OLD: [{"move": "spec.mode", "to": "spec.state"}], NEW: []}
    scaffold("rename", "spec.state", "spec.phase", "--kind", "Widget", "--output", shop)
    assert rules(shop) == {
        OLD: [{"move": "spec.mode", "to": "spec.phase"}],
        NEW: [{"move": "spec.state", "to": "spec.phase"}],
    }
    is_sound(shop)
    scaffold("version", "v1beta1", "--kind", "Widget", "--hub", "--output", shop)
    assert rules(shop) == {
        OLD: [{"move": "spec.mode", "to": "spec.state"}],
        f"{GROUP}/v1": [{"move": "spec.phase", "to": "spec.state"}],
    }
    is_sound(shop)


def test_another_version_is_stored_and_the_old_one_goes(shop: Path) -> None:
    scaffold("rename", "spec.mode", "spec.state", "--kind", "Widget", "--output", shop)
    scaffold("version", "v1beta1", "--kind", "Widget", "--storage", "--output", shop)
    assert (entry(shop, "v1alpha1")["storage"], entry(shop, "v1beta1")["storage"]) == (False, True)
    assert (plan(shop)[OLD]["storage"], plan(shop)[NEW]["storage"]) == ("0.1", "0.3")
    is_sound(shop)
    scaffold("retire", "v1alpha1", "--kind", "Widget", "--release", "0.4", "--output", shop)
    assert [each["name"] for each in read(shop / "crds/widgets.yaml")["spec"]["versions"]] == ["v1beta1"]
    assert plan(shop)[OLD]["removed"] == "0.4"
    assert rules(shop) == {OLD: {"removed": "0.4", "rules": [{"move": "spec.mode", "to": "spec.state"}]}}
    assert not (shop / "samples/widgets-v1alpha1.yaml").exists()
    assert not (shop / "generated/shop_api/shop_v1alpha1/hooks.py").exists()
    assert "Hooks()" in (shop / "generated/shop_api/shop_v1beta1/hooks.py").read_text()
    is_sound(shop)


def test_functions_of_hooks_pass_to_the_version_that_took_them(shop: Path) -> None:
    old = shop / "generated/shop_api/shop_v1alpha1/hooks.py"
    new = shop / "generated/shop_api/shop_v1beta1/hooks.py"
    text = old.read_text().replace(
        "HOOKS: dict", "def _check(obj: object) -> None:\n    pass\n\n\nHOOKS: dict"
    )
    old.write_text(text.replace("Hooks(),", "Hooks(admit=_check),"))
    scaffold("version", "v1beta1", "--kind", "Widget", "--storage", "--release", "0.3", "--output", shop)
    before = contents(shop)
    mine = new.read_text()
    new.write_text(mine + "\n\ndef mine() -> None:\n    pass\n")
    code, _, err = kubewright("scaffold", "retire", "v1alpha1", "--kind", "Widget", "--output", shop)
    assert code == 2 and f"{new} takes the hooks of Widget from {old}, which goes" in err
    new.write_text(mine)
    assert contents(shop) == before
    scaffold("retire", "v1alpha1", "--kind", "Widget", "--output", shop)
    assert "def _check" in new.read_text() and "v1alpha1" not in new.read_text()


def test_hooks_of_a_version_that_is_not_generated_are_an_error(shop: Path) -> None:
    crd = shop / "crds/widgets.yaml"
    text = crd.read_text()
    crd.write_text(text[: text.index("  - name: v1beta1")])
    (shop / "conversions/widgets.yaml").unlink()
    code, _, err = kubewright("generate", "--config", shop / "kubewright.yaml")
    assert (
        code == 2
        and "shop_v1beta1/hooks.py: error K405: the hooks of shop_v1beta1 belong to no version" in err
    )
    assert "then delete the file" in err


def test_a_kind_moves_to_another_group_and_the_old_one_goes(shop: Path) -> None:
    platform = "platform.example.com/v1beta1"
    scaffold("rename", "spec.mode", "spec.state", "--kind", "Widget", "--output", shop)
    scaffold("move", "Widget", "--to-group", "platform.example.com", "--to-kind", "Gizmo", "--output", shop)
    is_sound(shop)
    assert read(shop / "crds/gizmos.yaml")["spec"]["names"]["listKind"] == "GizmoList"
    assert plan(shop)[NEW]["replacement"] == f"{platform}/Gizmo"
    assert "use platform.example.com/v1beta1 Gizmo" in entry(shop, "v1beta1")["deprecationWarning"]
    code, out, err = kubewright(
        "convert", "-f", shop / "samples/widgets-v1alpha1.yaml", "--output-version", platform,
        "--crds", shop / "crds", "--rules", shop,
    )  # fmt: skip
    assert code == 0, err
    assert (yaml.safe_load(out)["kind"], yaml.safe_load(out)["spec"]["state"]) == ("Gizmo", "Active")
    scaffold("retire", "--kind", "Widget", "--release", "0.5", "--output", shop)
    left = [name for name in contents(shop) if "widget" in name and not name.startswith("generated")]
    assert left == ["conversions/widgets.yaml"]
    assert "widget" not in (shop / "kustomization.yaml").read_text()
    is_sound(shop)


def test_a_kind_keeps_its_name_in_another_group(shop: Path) -> None:
    scaffold("move", "Widget", "--to-group", "platform.example.com", "--output", shop)
    assert (shop / "samples/widgets.platform-v1beta1.yaml").is_file()
    scaffold("version", "v1", "--kind", "Widget", "--group", "platform.example.com", "--output", shop)
    assert read(shop / "conversions/widgets.yaml")["hub"] == "platform.example.com/v1"
    is_sound(shop)


REFUSALS = {
    "no such field": (
        ["rename", "spec.mod", "spec.x"],
        "there is no spec.mod\n  hint: did you mean spec.mode?",
    ),
    "a name that is there": (["rename", "spec.mode", "spec.address"], "spec.address is there already"),
    "another struct": (["rename", "spec.mode", "status.mode"], "status.mode is not next to spec.mode"),
    "no path": (["rename", "spec..mode", "spec.x"], "'spec..mode' is no path of a field"),
    "the name of every object": (["rename", "metadata.name", "metadata.x"], "is the same in every version"),
    "the stored version": (
        ["rename", "spec.mode", "spec.x", "--version", "v1alpha1"],
        "widgets.yaml:15:5: v1alpha1 is the storage version: objects are stored with spec.mode",
    ),
    "no such version": (["rename", "spec.mode", "spec.x", "--version", "v9"], "Widget has no version v9"),
    "a number is not split": (
        ["split", "spec.intervalSeconds", "spec.a", "spec.b", "--separator", ":"],
        "spec.intervalSeconds is no string",
    ),
    "a pattern is not split": (
        [
            "split",
            "spec.parameters[*].name",
            "spec.parameters[*].a",
            "spec.parameters[*].b",
            "--separator",
            ":",
        ],
        "spec.parameters[*].name has pattern, minLength",
    ),
    "one part": (["split", "spec.address", "spec.a", "--separator", ":"], "in two parts or more"),
    "no separator": (["split", "spec.address", "spec.a", "spec.b"], "--separator is required"),
    "stored objects need it": (
        ["retire", "v1alpha1"],
        "widgets.yaml:15:5: v1alpha1 is the storage version\n  hint: store another one first: "
        "kubewright scaffold version v1beta1 --kind Widget --storage",
    ),
    "the hub": (
        ["retire", "v1beta1"],
        "conversions/widgets.yaml:5:1: shop.example.com/v1beta1 is the hub: all other versions are converted "
        "through it\n  hint: make another version the hub first: kubewright scaffold version v1alpha1 --kind Widget "
        "--hub",
    ),
    "a kind that is not deprecated": (["retire"], "v1beta1 of Widget is not deprecated"),
    "no version of that name": (["retire", "v2"], "Widget has no version v2"),
    "stored too soon": (
        ["version", "v1beta1", "--storage", "--release", "0.2"],
        "P007 the storage version of Widget moves from v1alpha1 to v1beta1 in 0.2: 0.2 is the first release",
    ),
    "stored already": (["version", "v1alpha1", "--storage"], "v1alpha1 is stored already"),
    "the hub already": (["version", "v1beta1", "--hub"], "v1beta1 is the hub already"),
    "two steps": (["version", "v1alpha1", "--hub", "--storage"], "two steps"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_wrong_turns_write_nothing(case: str, shop: Path) -> None:
    before = contents(shop)
    arguments, said = REFUSALS[case]
    code, out, err = kubewright("scaffold", *arguments, "--kind", "Widget", "--output", shop)
    assert (code in (1, 2), out) == (True, "") and said in err and "hint: " in err + "hint: ", err
    assert "Traceback" not in err and contents(shop) == before


def test_a_kind_stays_in_its_group(shop: Path) -> None:
    before = contents(shop)
    for arguments, said in (
        (["--to-group", GROUP], "Widget is of shop.example.com already"),
        (["--to-group", "shop.example.org"], "the groups begin with one word"),
        (["--to-group", "platform"], "must be a DNS subdomain"),
    ):
        code, _, err = kubewright("scaffold", "move", "Widget", *arguments, "--output", shop)
        assert code in (1, 2) and said in err, err
        assert contents(shop) == before


def test_a_beta_stays_as_long_as_the_policy_says(shop: Path) -> None:
    scaffold("version", "v1", "--kind", "Widget", "--storage", "--release", "0.4", "--output", shop)
    scaffold("retire", "v1alpha1", "--kind", "Widget", "--output", shop)
    code, _, err = kubewright("scaffold", "retire", "v1beta1", "--kind", "Widget", "--output", shop)
    assert code == 2 and "is beta: deprecated in 0.4, may go with 0.7 at the earliest, not 0.4" in err
    assert "lifecycle.yaml:" in err and "--release" in err
    scaffold("retire", "v1beta1", "--kind", "Widget", "--release", "0.7", "--output", shop)
    is_sound(shop)


def test_a_manifest_from_a_cluster_says_what_is_stored(shop: Path) -> None:
    scaffold("version", "v1beta1", "--kind", "Widget", "--storage", "--output", shop)
    crd = shop / "crds/widgets.yaml"
    crd.write_text(crd.read_text() + "status:\n  storedVersions: [v1alpha1, v1beta1]\n")
    code, _, err = kubewright("scaffold", "retire", "v1alpha1", "--kind", "Widget", "--output", shop)
    assert code == 2 and "objects are stored as v1alpha1\n  hint: write them again first: " in err


# Rules: what a version says is found again, whatever was renamed, split or made the hub.

FIELDS = ("a", "b", "c", "d")


@given(st.lists(st.tuples(st.sampled_from(FIELDS), st.integers(0, 2)), max_size=6))
def test_renames_lead_where_the_last_name_is(steps: list[tuple[str, int]]) -> None:
    """Each field is followed by its name in the hub; a field that keeps its name has no rule."""
    names = {field: f"spec.{field}" for field in FIELDS}
    said: list[Rule] = []
    for field, number in steps:
        new = f"spec.{field}{number or ''}"
        if new not in names.values():
            said = renamed(said, "hub", names[field], new)
            names[field] = new
    moves = {rule["move"]: rule["to"] for rule in said}
    assert moves == {f"spec.{f}": name for f, name in names.items() if name != f"spec.{f}"}
    assert {rule["to"]: rule["move"] for rule in inverse(said)} == moves
    assert over(said, said) == [] or not said


def test_splitting_and_joining_again_says_nothing() -> None:
    parts = ["spec.x", "spec.y"]
    there = split([{"move": "spec.s", "to": "spec.t"}], "hub", "spec.t", parts, ":")
    assert there == [{"split": "spec.s", "to": parts, "separator": ":"}]
    assert joined(there, "hub", parts, "spec.t", ":") == [{"move": "spec.s", "to": "spec.t"}]
    assert over(there, inverse([{"join": parts, "to": "spec.s", "separator": ":"}])) in ([], [
        {"move": "spec.s", "to": "spec.s"}
    ])  # fmt: skip


@pytest.mark.parametrize(
    "rule",
    [
        {"wrap": "spec.s", "to": "spec.t[*].name"},
        {"call": "own.convert", "spoke": "spec.s", "hub": "spec.t"},
        {"constant": "spec.t", "value": 1},
        {"group": "spec.s", "to": "spec.t", "version": "v1"},
    ],
)
def test_a_rule_that_has_no_other_way_is_left_to_a_person(rule: Rule) -> None:
    with pytest.raises(UnchangeableError):
        inverse([rule])
    with pytest.raises(UnchangeableError):
        over([{"move": "spec.o", "to": "spec.t"}], [rule])


def test_rules_inside_a_renamed_struct_follow_it() -> None:
    inner: list[Rule] = [{"move": "spec.old", "to": "spec.box.size"}, {"keep": ["spec.box.lid"], "of": "hub"}]
    assert renamed(inner, "hub", "spec.box", "spec.crate") == [
        {"move": "spec.old", "to": "spec.crate.size"},
        {"keep": ["spec.crate.lid"], "of": "hub"},
        {"move": "spec.box", "to": "spec.crate"},
    ]
