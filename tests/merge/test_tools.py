"""``kubewright patch`` and ``kubewright apply3`` as people call them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright import cli
from tests.crds import crd_text

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: '1'}\n"
CRD = crd_text(
    "Bag",
    "{type: object, properties: {tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}}}",
)
NOW = "2026-01-01T00:00:00Z"


@pytest.fixture
def call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Calls the command line; keywords become files, whose paths stand for ``@name`` in the arguments."""

    def call(*arguments: str, **files: str) -> tuple[int, str, str]:
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text)
        words = [str(tmp_path / f"{word[1:]}.yaml") if word.startswith("@") else word for word in arguments]
        code = cli.main(words)
        out, err = capsys.readouterr()
        return code, out, err.replace(f"{tmp_path}/", "")

    return call


def test_apply_creates_and_owns(call: Any) -> None:
    code, out, err = call(
        *("patch", "--type", "apply", "--field-manager", "m", "-p", "@applied", "--now", NOW),
        applied=CONFIG_MAP,
    )
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["metadata"]["managedFields"] == [
        {
            "manager": "m",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:k": {}}},
        }
    ]


def test_conflicts_are_listed_by_manager_and_path(call: Any) -> None:
    _, live, _ = call(
        "patch", "--type", "apply", "--field-manager", "m", "-p", "@applied", applied=CONFIG_MAP
    )
    arguments = ("patch", "--type", "apply", "--field-manager", "other", "-f", "@live", "-p", "@wanted")
    wanted = CONFIG_MAP.replace("'1'", "'2'")
    assert call(*arguments, live=live, wanted=wanted) == (
        1,
        "",
        'kubewright patch: 1 conflict; --force takes the fields over\n  .data.k: owned by "m"\n',
    )
    code, out, _ = call(*arguments, "--force", "--format", "json", live=live, wanted=wanted)
    assert code == 0
    assert json.loads(out)["data"] == {"k": "2"}
    assert [entry["manager"] for entry in json.loads(out)["metadata"]["managedFields"]] == ["other"]


@pytest.mark.parametrize(
    ("kind", "patch", "data"),
    [
        ("strategic", "data: {k: null, j: '2'}", {"j": "2"}),
        ("merge", "data: {j: '2'}", {"k": "1", "j": "2"}),
        ("json", "- {op: move, from: /data/k, path: /data/j}", {"j": "1"}),
    ],
)
def test_each_kind_of_patch(call: Any, kind: str, patch: str, data: dict[str, str]) -> None:
    code, out, err = call(
        "patch", "--type", kind, "-f", "@live", "-p", "@patch", live=CONFIG_MAP, patch=patch
    )
    assert (code, err) == (0, "")
    assert yaml.safe_load(out)["data"] == data


def test_a_custom_resource_merges_by_its_crd(call: Any) -> None:
    live = "apiVersion: example.com/v1\nkind: Bag\nmetadata: {name: b}\nspec: {tags: [a]}\n"
    applied = live.replace("[a]", "[b]")
    arguments = ("patch", "--crds", "@crd", "-f", "@live", "-p", "@applied")
    code, out, _ = call(*arguments, "--type", "apply", crd=CRD, live=live, applied=applied)
    assert code == 0
    assert yaml.safe_load(out)["spec"] == {"tags": ["a", "b"]}
    code, _, err = call(*arguments, crd=CRD, live=live, applied=applied)
    assert code == 2
    assert "custom resources know no strategic merge patch: use --type merge, json or apply" in err


@pytest.mark.parametrize(
    ("files", "code", "text"),
    [
        ({"live": "a: [", "patch": "{}"}, 2, "live.yaml:2:1: error K011: broken YAML"),
        ({"live": "[]", "patch": "{}"}, 2, "object live.yaml: an object is wanted, with apiVersion and kind"),
        ({"live": "kind: Pod", "patch": "{}"}, 2, "object live.yaml: .apiVersion is missing"),
        (
            {"live": "apiVersion: v2\nkind: ConfigMap", "patch": "{}"},
            2,
            "no kind ConfigMap in v2: it is served as v1",
        ),
        (
            {"live": "apiVersion: e.com/v1\nkind: Odd", "patch": "{}"},
            2,
            "no kind Odd in e.com/v1: give the CRD of a custom resource by --crd",
        ),
        (
            {
                "live": "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a}]}",
                "patch": "spec: {containers: [{image: x}]}",
            },
            1,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        ({"live": CONFIG_MAP, "patch": "[]"}, 2, "cannot unmarshal array"),
    ],
)
def test_bad_input_is_an_error_with_its_place(call: Any, files: dict[str, str], code: int, text: str) -> None:
    got, out, err = call("patch", "-f", "@live", "-p", "@patch", **files)
    assert (got, out) == (code, "")
    assert text in err
    assert "Traceback" not in err


def test_a_failed_json_patch_says_which_operation(call: Any) -> None:
    patch = "- {op: test, path: /data/k, value: '1'}\n- {op: remove, path: /data/none}"
    code, _, err = call(
        "patch", "--type", "json", "-f", "@live", "-p", "@patch", live=CONFIG_MAP, patch=patch
    )
    assert (code, err) == (1, "kubewright patch: operation 1: nothing to remove at '/data/none'\n")


def test_a_misfit_names_its_field(call: Any) -> None:
    arguments = ("patch", "--type", "apply", "-f", "@live", "-p", "@patch")
    patch = CONFIG_MAP.replace("\ndata:", "\nnosuch: 1\ndata:")
    code, _, err = call(*arguments, live=CONFIG_MAP, patch=patch)
    assert code == 1
    assert ".nosuch: field not declared in schema" in err


def test_three_way(call: Any) -> None:
    original = CONFIG_MAP.replace("{k: '1'}", "{k: '1', gone: '1'}")
    current = CONFIG_MAP.replace("{k: '1'}", "{k: '1', gone: '1', theirs: '1'}")
    modified = CONFIG_MAP.replace("{k: '1'}", "{k: '2'}")
    arguments = ("apply3", "--original", "@original", "-m", "@modified", "-c", "@current")
    files = {"original": original, "current": current, "modified": modified}
    code, out, _ = call(*arguments, **files)
    assert (code, yaml.safe_load(out)) == (0, {"data": {"k": "2", "gone": None}})
    _, out, _ = call(*arguments, "--result", **files)
    assert yaml.safe_load(out)["data"] == {"k": "2", "theirs": "1"}
    files["current"] = current.replace("k: '1'", "k: '3'")
    assert call(*arguments, "--no-overwrite", **files) == (
        1,
        "",
        "kubewright apply3: others changed the same fields since they were applied last\n  .data.k\n",
    )


def test_three_way_of_a_custom_resource_is_a_merge_patch(call: Any) -> None:
    bag = "apiVersion: example.com/v1\nkind: Bag\nmetadata: {name: b}\nspec: {tags: [a], x: '1'}\n"
    files = {
        "original": bag,
        "current": bag,
        "modified": bag.replace(", x: '1'", "").replace("[a]", "[b]"),
        "crd": CRD,
    }
    code, out, _ = call(
        "apply3", "--crds", "@crd", "--original", "@original", "-m", "@modified", "-c", "@current", **files
    )
    assert (code, yaml.safe_load(out)) == (0, {"spec": {"tags": ["b"], "x": None}})
