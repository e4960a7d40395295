"""``kubewright crd``: what each form of a description becomes, that servers take it; a CRD stays what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kubewright.diagnostics import Diagnostics
from kubewright.ir.api import Api
from kubewright.ir.link import find_difference
from kubewright.testing import ApiServer
from kubewright.tools.crd.defaults import drop_refused_defaults
from kubewright.tools.crd.manifests import DefinedKinds, define
from kubewright.tools.inputs.sources import read_states
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
DATA = ROOT / ".." / "shared" / "data"
SPECS = {name: ROOT / "specs" / name / "openapi.yaml" for name in ("messaging", "flags")}
CASES: list[dict[str, Any]] = yaml.load(
    (Path(__file__).parent / "crd_cases.yaml").read_text(), yaml.CSafeLoader
)
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
KNOWN = {
    META: {"type": "object", "properties": {"name": {"type": "string"}}},
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
}


def gvk(version: str, group: str = "example.com", kind: str = "Thing") -> list[dict[str, str]]:
    return [{"group": group, "version": version, "kind": kind}]


def thing(spec: dict[str, Any], version: str = "v1", **beside: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"#/definitions/{META}"},
            "spec": spec,
        },
        "x-kubernetes-group-version-kind": gvk(version),
        **beside,
    }


def document(tmp_path: Path, **definitions: Any) -> Path:
    path = tmp_path / "api.json"
    info = {"title": "Things", "version": "v1"}
    whole = {"openapi": "3.0.0", "info": info, "paths": {}, "components": {"schemas": KNOWN | definitions}}
    path.write_text(json.dumps(whole).replace("#/definitions/", "#/components/schemas/"))
    return path


def made(*arguments: str | Path) -> list[dict[str, Any]]:
    code, out, err = kubewright("crd", *arguments)
    assert code == 0, err
    return list(yaml.load_all(out, yaml.CSafeLoader))


def read(*states: str | Path) -> Api:
    diagnostics = Diagnostics()
    api = read_states([*map(str, states)], diagnostics)
    assert not diagnostics.has_errors, [*map(str, diagnostics)]
    return api


def defined(api: Api) -> tuple[dict[str, str], Diagnostics]:
    diagnostics = Diagnostics()
    return {m.file: m.text for m in define(api, DefinedKinds(), "1.37", diagnostics)}, diagnostics


def put(folder: Path, texts: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


def assert_same(before: Api, after: Api) -> None:
    """Resources and types alike, but for the order of fields."""
    old, new = ({d.name: d for d in api.definitions} for api in (before, after))
    assert old.keys() == new.keys()
    assert [n for n in old if find_difference(old[n].value, new[n].value)] == []
    bare = [
        [replace(r, location=before.resources[0].location) for r in api.resources] for api in (before, after)
    ]
    assert bare[0] == bare[1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_each_form(tmp_path: Path, case: dict[str, Any]) -> None:
    spec = {"type": "object", "properties": {"x": case["schema"]}} | (
        {"required": ["x"]} if case.get("required") else {}
    )
    api = read(document(tmp_path, **{"com.example.v1.Thing": thing(spec)}, **case.get("definitions", {})))
    texts, diagnostics = defined(api)
    (text,) = texts.values()
    (version,) = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    found = schema["properties"]["spec"]["properties"]["x"]
    assert found == case["becomes"]
    assert sorted({d.code for d in diagnostics}) == case["codes"]
    assert not diagnostics.has_errors
    (tmp_path / "crd.yaml").write_text(text)
    assert kubewright("validate", "--strict", tmp_path / "crd.yaml")[0] == 0


def test_defaults_that_a_server_refuses_are_taken_out() -> None:
    small = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "default": 1}}}
    number = {"type": "integer", "maximum": 3, "default": 4}
    schema = {
        "type": "object",
        "properties": {
            "list": {"type": "array", "default": [{}], "items": {**small, "default": {}}},
            "n": {**number, "maximum": 4},
            "o": {"type": "object", "default": {"n": 4, "z": 1}, "properties": {"n": number}},
        },
    }
    dropped = [(path, default) for path, default, _ in drop_refused_defaults(schema)]
    assert sorted(dropped, key=str) == [
        (".list", [{}]),
        (".list[]", {}),
        (".list[].a", 1),
        (".o", {"n": 4, "z": 1}),
        (".o.n", 4),
    ]
    assert "default" not in json.dumps(schema).replace('"default": 4', "", 1)


@pytest.mark.parametrize("name", SPECS)
def test_example_groups_become_crds_that_a_server_takes_with_their_samples(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "crds"
    code, _, err = kubewright("crd", SPECS[name], "--output", folder)
    assert code == 0, err
    assert kubewright("validate", "--strict", folder)[0] == 0
    crds = [yaml.load(path.read_text(), yaml.CSafeLoader)["spec"] for path in folder.glob("*.yaml")]
    scopes = {crd["names"]["plural"]: crd["scope"] for crd in crds}
    with ApiServer() as server:
        server.create_crds(folder)
        for sample in sorted((SPECS[name].parent / "samples").glob("*.yaml")):
            for obj in yaml.load_all(sample.read_text(), yaml.CSafeLoader):
                where = ""
                if scopes[sample.stem] == "Namespaced":
                    obj["metadata"]["namespace"], where = "default", "/namespaces/default"
                created = server.request("POST", f"/apis/{obj['apiVersion']}{where}/{sample.stem}", obj)
                assert created["metadata"]["uid"]


def test_a_description_made_into_crds_is_what_the_crds_are_made_into(tmp_path: Path) -> None:
    for name, spec in SPECS.items():
        once, _ = defined(read(spec))
        folder = put(tmp_path / name, once)
        twice, diagnostics = defined(read(folder))
        bodies = [{file: text.split("\n", 1)[1] for file, text in texts.items()} for texts in (once, twice)]
        assert bodies[0] == bodies[1]
        assert len(diagnostics) == 0


def test_the_queue_of_the_example_group() -> None:
    (crd,) = made(SPECS["messaging"], "--kind", "Queue")
    assert crd["metadata"]["name"] == "queues.messaging.kubewright.dev"
    (version,) = crd["spec"]["versions"]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    schema = version["schema"]["openAPIV3Schema"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    text = json.dumps(crd)
    assert "$ref" not in text
    assert "patch-" not in text


def test_crds_of_the_example_group_stay_what_they_are(tmp_path: Path) -> None:
    before = read(ROOT / "specs" / "backup" / "crds")
    texts, diagnostics = defined(before)
    assert len(diagnostics) == 0
    assert_same(before, read(put(tmp_path / "crds", texts)))


@pytest.mark.shared
@pytest.mark.parametrize("project", ["crds/flux", pytest.param("crds", marks=pytest.mark.thorough)])
def test_real_crds_stay_what_they_are(tmp_path: Path, project: str) -> None:
    if not (DATA / project).exists():
        pytest.skip("the ../shared folder of recordings is absent")
    before = read(DATA / project)
    texts, diagnostics = defined(before)
    assert [*map(str, diagnostics)] == []
    assert len(texts) == len(list((DATA / project).rglob("*.yaml")))
    assert_same(before, read(put(tmp_path / "crds", texts)))


def test_labels_annotations_and_conversion_of_a_crd_stay(tmp_path: Path) -> None:
    (crd,) = made(ROOT / "specs" / "backup" / "crds", "--kind", "BackupStore")
    crd["metadata"] |= {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    service = {"name": "n", "namespace": "m", "path": "/convert", "port": 8443}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service}}
    crd["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    properties["metadata"]["properties"] = {"name": {"type": "string", "maxLength": 9, "pattern": "^a"}}
    (tmp_path / "crd.json").write_text(json.dumps(crd))
    (again,) = made(tmp_path / "crd.json")
    assert again == crd


def test_built_in_kinds_in_a_group_of_their_own_are_accepted(tmp_path: Path) -> None:
    """The types of all stored kinds can be said: groups without a dot are what stands in the way."""
    api = read("kubernetes:1.37")
    resources = [replace(r, group=f"{(r.group or 'core').split('.')[0]}.example.com") for r in api.resources]
    texts, diagnostics = defined(replace(api, resources=tuple(resources)))
    assert [str(d) for d in diagnostics if d.code not in ("K701", "K702", "K703", "K705")] == []
    assert len(texts) > 60
    deployment = yaml.load(texts["apps.example.com_deployments.yaml"], yaml.CSafeLoader)
    version = deployment["spec"]["versions"][0]
    assert version["subresources"]["scale"]["specReplicasPath"] == ".spec.replicas"
    template = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"]
    assert template["properties"]["metadata"]["properties"]["creationTimestamp"]["nullable"] is True
    containers = template["properties"]["spec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("ConfigMap", "a server refuses its manifest: spec.group: Required value"),
        ("Deployment", "should be a domain with at least one dot"),
        ("Ingress", "protected groups must have approval annotation"),
        ("CustomResourceDefinition", "protected groups must have approval annotation"),
    ],
)
def test_a_kind_that_cannot_be_a_crd_is_told_and_nothing_written(
    tmp_path: Path, kind: str, said: str
) -> None:
    code, out, err = kubewright("crd", "kubernetes:1.37", "--kind", kind, "--output", tmp_path / "crds")
    assert (code, out) == (1, "")
    assert "error K706" in err
    assert said in err
    assert not (tmp_path / "crds").exists()


def test_a_kind_that_is_not_stored_is_passed_over() -> None:
    code, out, err = kubewright("crd", "kubernetes:1.37", "--kind", "TokenReview")
    assert (code, out) == (0, "")
    assert "warning K705: TokenReview of authentication.k8s.io is not stored" in err


def test_versions_of_one_kind_are_joined(tmp_path: Path) -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    more = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    definitions = {
        "com.example.v1.Thing": thing(more),
        "com.example.v1beta1.Thing": thing(spec, "v1beta1"),
        "com.example.v2alpha1.Thing": thing(spec, "v2alpha1"),
    }
    path = document(tmp_path, **definitions)
    (crd,) = made(path)
    assert [(v["name"], v["served"], v["storage"]) for v in crd["spec"]["versions"]] == [
        ("v1", True, True),
        ("v1beta1", True, False),
        ("v2alpha1", True, False),
    ]
    (crd,) = made(path, "--storage", "v1beta1")
    assert [v["name"] for v in crd["spec"]["versions"] if v["storage"]] == ["v1beta1"]


def test_what_openapi_has_no_words_for(tmp_path: Path) -> None:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}}}
    said = {
        "names": {"plural": "thingies", "shortNames": ["th"], "categories": ["all"]},
        "scope": "Cluster",
        "subresources": {"scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "selectableFields": [{"jsonPath": ".spec.size"}],
        "deprecated": True,
    }
    path = document(tmp_path, **{"com.example.v1.Thing": thing(spec, **{"x-kubewright-crd": said})})
    (crd,) = made(path)
    assert crd["spec"]["names"] == {
        "plural": "thingies",
        "singular": "thing",
        "kind": "Thing",
        "listKind": "ThingList",
        "shortNames": ["th"],
        "categories": ["all"],
    }
    assert crd["spec"]["scope"] == "Cluster"
    (version,) = crd["spec"]["versions"]
    for key in ("subresources", "additionalPrinterColumns", "selectableFields", "deprecated"):
        assert version[key] == said[key]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"shortNames": ["x"]}, "error K707: x-kubewright-crd has no 'shortNames'"),
        ({"names": {"short": "x"}}, "error K707: x-kubewright-crd has no 'short'"),
        ([], "error K707: x-kubewright-crd must be an object, and `names` in it too"),
        ({"additionalPrinterColumns": "x"}, "error K706: Thing: a server refuses its manifest:"),
        ({"subresources": {"scale": {"specReplicasPath": 1}}}, "error K706: Thing: a server refuses"),
        (
            {"scope": "Everywhere"},
            "error K706: Thing: a server refuses its manifest: spec.scope: Unsupported value",
        ),
        ({"names": {"plural": "../../x"}}, "error K706: Thing: a server refuses its manifest: metadata.name"),
        (
            {"additionalPrinterColumns": [{"name": "n", "type": "string", "jsonPath": ".a", "x": 1}]},
            "unknown field",
        ),
    ],
)
def test_wrong_words_there(tmp_path: Path, said: Any, message: str) -> None:
    path = document(
        tmp_path, **{"com.example.v1.Thing": thing({"type": "object"}, **{"x-kubewright-crd": said})}
    )
    code, out, err = kubewright("crd", path, "--output", tmp_path / "crds")
    assert (code, out) == (1, "")
    assert message in err
    assert not (tmp_path / "crds").exists()


@pytest.mark.parametrize("levels", [40, 400])
def test_a_small_description_cannot_unfold_into_an_endless_schema(tmp_path: Path, levels: int) -> None:
    """Two references at each level double it; a chain of many levels is refused as well."""
    names = ("a", "b") if levels == 40 else ("a",)
    chain = {
        f"L{n}": {
            "type": "object",
            "properties": {name: {"$ref": f"#/definitions/L{n + 1}"} for name in names},
        }
        for n in range(levels)
    }
    last = {f"L{levels}": {"type": "string"}}
    path = document(
        tmp_path, **{"com.example.v1.Thing": thing({"$ref": "#/definitions/L0"})}, **chain, **last
    )
    code, out, err = kubewright("crd", path)
    assert (code, out) == (1, "")
    wanted = "has more than 100,000 places" if levels == 40 else "nests deeper than 140 levels"
    assert f"error K704: Thing cannot be a CustomResourceDefinition: its schema {wanted}" in err


def test_files_made_before_are_replaced_and_others_never(tmp_path: Path) -> None:
    out = tmp_path / "crds"
    name = "messaging.kubewright.dev_queues.yaml"
    assert kubewright("crd", SPECS["messaging"], "--output", out)[0] == 0
    assert kubewright("crd", SPECS["messaging"], "--output", out, "--check")[0] == 0
    first = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / name).write_text("changed by hand")
    code, shown, _ = kubewright("crd", SPECS["messaging"], "--output", out, "--check")
    assert code == 1
    assert "-changed by hand" in shown
    assert kubewright("crd", SPECS["messaging"], "--output", out)[0] == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == first

    # One kind alone leaves the others, a whole run takes away what is made no more, and never what is somebody's own.
    (out / "own.yaml").write_text("mine")
    assert kubewright("crd", SPECS["messaging"], "--output", out, "--kind", "Queue")[0] == 0
    assert sorted(first) == sorted(path.name for path in out.iterdir() if path.name != "own.yaml")
    assert kubewright("crd", SPECS["flags"], "--output", out)[0] == 0
    assert not (out / name).exists()
    (out / name).write_text("mine too")
    code, _, err = kubewright("crd", SPECS["messaging"], "--output", out)
    assert code == 1
    assert f"error K403: {name} is in the way: it was not generated" in err
    assert (out / name).read_text() == "mine too"
    assert kubewright("crd", SPECS["messaging"], "--output", out, "--replace")[0] == 0
    assert (out / name).read_bytes() == first[name]
    assert (out / "own.yaml").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: error K001: cannot read: no such file or folder"),
        (["git:HEAD"], "git:HEAD: write git:REVISION:PATH"),
        (
            [SPECS["flags"], "--kind", "Queue"],
            "there is no kind Queue; there are: FeatureFlag (flags.kubewright.dev)",
        ),
        ([SPECS["flags"], "--group", "x"], "there is no kind of the group x"),
        ([SPECS["flags"], "--storage", "v9"], "no kind has the version v9"),
        ([SPECS["flags"], "--kubernetes", "1.2"], "--kubernetes 1.2: one of 1.25"),
        ([SPECS["flags"], "--check"], "--check compares with the folder of --output"),
        ([SPECS["flags"], "--output", "."], "this folder, or one above it, cannot be exchanged"),
        ([SPECS["flags"], "--output", __file__], "not a folder"),
        (
            [ROOT / "specs" / "flags" / "samples"],
            "error K003: no OpenAPI document or CustomResourceDefinition here",
        ),
    ],
)
def test_misuse(arguments: list[str | Path], message: str) -> None:
    code, out, err = kubewright("crd", *arguments)
    assert (code, out) == (2, "")
    assert message in err


TEXT = st.text("aZ9 é\n\"'<&:#-{}[]*!|>%@`\\\u2028\u202e", max_size=12)
SCALARS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "description": TEXT,
            "default": TEXT,
            "minLength": st.just(0),
            "maxLength": st.integers(12, 99),
            "format": st.sampled_from(["byte-like", "hostname-like"]),
            "nullable": st.just(True),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={"minimum": st.integers(-9, 0), "maximum": st.integers(1, 9), "default": st.integers(0, 1)},
    ),
    st.fixed_dictionaries({"type": st.just("string"), "enum": st.lists(TEXT, min_size=1, unique=True)}),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
    st.just({"x-kubernetes-int-or-string": True}),
    st.just({"x-kubernetes-preserve-unknown-fields": True}),
    st.just(
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        }
    ),
)
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {
        "type": "object",
        "required": ["k"],
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
    },
}
NAMES = st.text("abcXYZ$-_.é<'\" ", min_size=1, max_size=6)


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, min_size=1, max_size=4)},
            optional={
                "x-kubernetes-map-type": st.sampled_from(["atomic", "granular"]),
                "description": TEXT.filter(bool),
                "x-kubernetes-preserve-unknown-fields": st.just(True),
                "required": st.lists(NAMES, min_size=1, unique=True),
            },
        ),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner}),
        st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={"x-kubernetes-list-type": st.just("atomic"), "maxItems": st.integers(0, 9)},
        ),
        st.just(KEYED),
    )


@given(st.recursive(SCALARS, objects, max_leaves=8))
def test_any_structural_schema_comes_out_as_it_went_in(
    tmp_path_factory: pytest.TempPathFactory, schema: Any
) -> None:
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    whole = {"type": "object", "properties": {**properties, "x": schema}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": whole}}
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
    path = tmp_path_factory.mktemp("crd") / "crd.json"
    path.write_text(json.dumps(crd))
    texts, _ = defined(read(path))
    (text,) = texts.values()
    assert _ordered(yaml.load(text, yaml.CSafeLoader)) == _ordered(crd)


def _ordered(value: Any) -> Any:
    """Without the order of ``required``, which is a set, and without empty descriptions."""
    if isinstance(value, dict):
        kept = {k: _ordered(v) for k, v in value.items() if not (k == "description" and v == "")}
        if isinstance(kept.get("required"), list):
            kept["required"] = sorted(kept["required"])
        return kept
    return [_ordered(item) for item in value] if isinstance(value, list) else value
