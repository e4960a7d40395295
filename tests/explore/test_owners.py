"""Who owns each line of an object, and that its lines are the object."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apimachinery.merge.owners import Ownership
from apimachinery.wire import yaml
from kubewright.testing.server import ApiServer
from kubewright.tools.explore.lines import OwnedLine, lines_of
from tests.tools.command import kubewright

EVIL = "a\x1b[31m\x9b2J\x85\u202eb\u2028c\x07\u200e\u200f\u061c"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def owned(obj: dict[str, Any], **sets: dict[str, Any]) -> dict[str, Any]:
    """``obj`` with a manager for each set."""
    entries = [
        {
            "manager": name,
            "operation": "Apply",
            "apiVersion": "v1",
            "fieldsType": "FieldsV1",
            "fieldsV1": fields,
        }
        for name, fields in sets.items()
    ]
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": entries}}


def by_field(obj: dict[str, Any]) -> dict[str, tuple[list[str], bool]]:
    """Field → the names of its owners, and whether they own it as a part of something whole."""
    ownership = Ownership.of(obj)
    names = [manager.owner.manager for manager in ownership.managers]
    return {line.field: ([names[n] for n in line.owners], line.whole) for line in lines_of(obj, ownership)}


def test_fields_items_and_sets() -> None:
    obj = {
        "spec": {
            "replicas": 1,
            "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP", "name": "u"}],
            "finalizers": ["a", "b"],
        }
    }
    keyed = 'k:{"port":80,"protocol":"UDP"}'
    shown = by_field(
        owned(
            obj,
            me={"f:spec": {"f:replicas": {}, "f:finalizers": {'v:"b"': {}}}},
            you={"f:spec": {"f:replicas": {}, "f:ports": {keyed: {".": {}, "f:port": {}, "f:name": {}}}}},
        )
    )
    assert shown["spec.replicas"] == (["me", "you"], False)
    assert shown["spec.finalizers[0]"] == ([], False)
    assert shown["spec.finalizers[1]"] == (["me"], False)
    assert shown["spec.ports[0].port"] == ([], False)
    assert shown["spec.ports[1].port"] == (["you"], False)
    assert shown["spec.ports[1].protocol"] == ([], False)
    assert shown["spec.ports[1].name"] == (["you"], False)


def test_what_is_atomic_is_owned_as_a_whole() -> None:
    obj = {"spec": {"selector": {"a": {"b": 1}}, "labels": {"x": "1", "y": "2"}, "args": ["p", "q"]}}
    shown = by_field(
        owned(
            obj,
            me={"f:spec": {"f:selector": {}, "f:args": {}, "f:labels": {}}},
            you={"f:spec": {"f:labels": {"f:y": {}}}},
        )
    )
    assert shown["spec.selector"] == (["me"], False)
    assert shown["spec.selector.a.b"] == (["me"], True)
    assert shown["spec.args[1]"] == (["me"], True)
    assert shown["spec.labels.x"] == (["me"], True)
    assert shown["spec.labels.y"] == (["you"], False), "what is a member itself is not a part of the whole"


def test_a_map_that_is_owned_itself_says_nothing_of_its_members() -> None:
    shown = by_field(owned({"data": {"a": "1", "b": "2"}}, me={"f:data": {".": {}, "f:a": {}}}))
    assert shown["data"] == (["me"], False)
    assert shown["data.a"] == (["me"], False)
    assert shown["data.b"] == ([], False)


def test_a_struct_names_the_owners_of_what_is_below() -> None:
    obj = owned({"spec": {"a": 1, "b": 2}}, me={"f:spec": {"f:a": {}}}, you={"f:spec": {"f:b": {}}})
    lines = {line.field: line for line in lines_of(obj, Ownership.of(obj))}
    assert lines["spec"].owners == () and lines["spec"].below == (0, 1)


def test_ten_thousand_managers() -> None:
    obj: dict[str, Any] = {"data": {f"k{number}": "v" for number in range(10_000)}}
    obj = owned(obj, **{f"m{number}": {"f:data": {f"f:k{number}": {}}} for number in range(10_000)})
    lines = lines_of(obj, Ownership.of(obj))
    assert [line.owners for line in lines if line.field.startswith("data.")] == [
        (number,) for number in range(10_000)
    ]


texts = st.text(max_size=8) | st.sampled_from(
    [
        "",
        "y",
        "010",
        "1e3",
        "a: b",
        "# c",
        "x\ny",
        "x\ny\n",
        "\n",
        " x\n",
        "x\n\n",
        "-",
        "~",
        "<<",
        EVIL,
        "k" * 1000,
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | texts
    | st.floats(-1e9, 1e9).map(lambda f: f + 0.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(texts, values, min_size=1, max_size=3))
def test_the_lines_are_the_object(obj: dict[str, Any]) -> None:
    lines = lines_of(obj, Ownership({}))
    written = "\n".join(line.text for line in lines)
    assert STEERS.findall(written) == []
    assert yaml.decode(written.encode()) == obj
    assert all("\n" not in line.text for line in lines)


def _line(lines: list[OwnedLine], text: str) -> OwnedLine:
    return next(line for line in lines if line.text.strip() == text)


def test_paths_name_what_conflicts_and_causes_name() -> None:
    obj = owned(
        {"spec": {"ports": [{"port": 80, "name": "web"}]}},
        me={"f:spec": {"f:ports": {'k:{"port":80}': {"f:name": {}}}}},
    )
    line = _line(lines_of(obj, Ownership.of(obj)), "name: web")
    assert line.name == ".spec.ports[port=80].name"
    assert line.field == "spec.ports[0].name"


@pytest.fixture
def live(tmp_path: Path) -> Path:
    obj = owned(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1", "b": EVIL}},
        **{"me": {"f:data": {"f:a": {}}}, EVIL: {"f:data": {"f:b": {}}}},
    )
    path = tmp_path / "live.json"
    path.write_text(json.dumps(obj))
    return path


def test_the_command(live: Path) -> None:
    code, out, err = kubewright("owners", "-f", live)
    assert (code, err) == (0, "")
    assert re.search(r'^me +\|   a: "1"$', out, re.M)
    assert re.search(r"^ +\| apiVersion: v1$", out, re.M)
    assert "me: Apply of v1, 1 field\n" in out
    assert STEERS.findall(out) == []
    code, out, _ = kubewright("owners", "-f", live, "--format", "json")
    shown = json.loads(out)
    assert [line["owners"] for line in shown["lines"] if line["field"] == "data.a"] == [[0]]
    assert kubewright("owners", "-f", live, "--manager", "me") == (0, ".data.a\n", "")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["-f", "LIVE", "--manager", "nobody"], 1, "owns nothing of it; the managers are"),
        (["-f", "LIVE", "pods/x"], 2, "exclude each other"),
        ([], 2, "which object?"),
        (["pods"], 1, "names no object: write TYPE/NAME"),
    ],
)
def test_refusals(live: Path, words: list[str], code: int, said: str) -> None:
    got, out, err = kubewright("owners", *(str(live) if word == "LIVE" else word for word in words))
    assert (got, out) == (code, "")
    assert said in err


def test_unreadable_managed_fields(tmp_path: Path) -> None:
    path = tmp_path / "live.json"
    obj = owned({"apiVersion": "v1", "kind": "ConfigMap"}, me={"data": {}})
    path.write_text(json.dumps(obj))
    code, _, err = kubewright("owners", "-f", path)
    assert code == 2
    assert ".metadata.managedFields: managed fields entry 0: path element" in err


def test_an_object_of_a_cluster() -> None:
    with ApiServer() as server:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "web", "namespace": "default"},
            "data": {"a": "1"},
        }
        server.request("POST", "/api/v1/namespaces/default/configmaps?fieldManager=me", body)
        for word in ("configmaps/web", "cm/web", "ConfigMap/web"):
            code, out, err = kubewright("owners", word, "-n", "default", "--kubeconfig", server.kubeconfig)
            assert (code, err) == (0, "")
            assert re.search(r'^me +\|   a: "1"$', out, re.M)
        code, _, err = kubewright("owners", "cm/none", "--kubeconfig", server.kubeconfig)
        assert code == 1 and 'configmaps "none" not found' in err
        code, _, err = kubewright("owners", "confg/web", "--kubeconfig", server.kubeconfig)
        assert code == 1 and "serves no resource 'confg'; there are configmaps" in err
