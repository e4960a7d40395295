"""What lies among CRDs in the folders of projects: patches, leftovers, manifests, CRDs of built-in kinds."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.compiler.emit.test_shapes import crd, record

from kubewright.cli import main
from kubewright.config import KubernetesSource, Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.pipeline import read_api
from kubewright.source.text import files_in, read_documents
from kubewright.tools.inputs.crds import read_crds

PATCH = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "cups.example.com"},
}
WEBHOOK_PATCH = PATCH | {"spec": {"conversion": {"strategy": "Webhook"}, "preserveUnknownFields": False}}
LEFTOVER = PATCH | {
    "metadata": {"creationTimestamp": None},
    "spec": {"group": "", "names": {"kind": "", "plural": ""}, "scope": "", "versions": None},
}
OLD = {**crd(v1=record()), "apiVersion": "apiextensions.k8s.io/v1beta1"}
JSON_PATCH = [{"op": "add", "path": "/spec/preserveUnknownFields", "value": False}]
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
BESIDE = {
    "patch": (PATCH, "a kustomize patch"),
    "webhook": (WEBHOOK_PATCH, "a kustomize patch"),
    "leftover": (LEFTOVER, "what controller-gen writes for a package without kinds"),
    "v1beta1": (OLD, "CustomResourceDefinition of 'apiextensions.k8s.io/v1beta1'"),
}


def write(folder: Path, **documents: Any) -> Path:
    folder.mkdir(exist_ok=True)
    for name, document in documents.items():
        several = document if isinstance(document, tuple) else (document,)
        (folder / f"{name}.yaml").write_text(yaml.safe_dump_all(several))
    return folder


def kinds(path: Path, diagnostics: Diagnostics, *more: KubernetesSource) -> set[str]:
    api = read_api(Package(name="x", sources=(*more, PathSource(path))), diagnostics)
    return {resource.kind for resource in api.resources if resource.group == "example.com"}


@pytest.mark.parametrize("name", BESIDE)
def test_what_tools_leave_beside_crds_is_passed_over_with_a_note(name: str, tmp_path: Path) -> None:
    other, said = BESIDE[name]
    folder = write(tmp_path / "crds", cups=crd(v1=record()), other=other)
    diagnostics = Diagnostics()
    assert kinds(folder, diagnostics) == {"Cup"}
    assert [item.location.file for item in diagnostics] == [str(folder / "other.yaml")]
    assert said in str(next(iter(diagnostics)))
    assert not diagnostics.has_errors
    given = read_crds([folder], Diagnostics())
    assert [each.value["metadata"]["name"] for each in given] == ["cups.example.com"]


@pytest.mark.parametrize("name", BESIDE)
def test_a_file_that_is_named_is_read_or_refused(name: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "crds", other=BESIDE[name][0])
    diagnostics = Diagnostics()
    kinds(folder / "other.yaml", diagnostics)
    assert diagnostics.has_errors


def test_other_manifests_in_a_named_file_are_passed_over(tmp_path: Path) -> None:
    folder = write(tmp_path / "all", install=(DEPLOYMENT, crd(v1=record())), alone=DEPLOYMENT)
    diagnostics = Diagnostics()
    assert kinds(folder / "install.yaml", diagnostics) == {"Cup"}
    assert not len(diagnostics)
    kinds(folder / "alone.yaml", diagnostics)
    assert [item.code for item in diagnostics] == ["K004"]


def test_a_kustomization_that_names_no_description_is_passed_over(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "manifests",
        cups=crd(v1=record()),
        deployment=DEPLOYMENT,
        kustomization={"resources": ["deployment.yaml"]},
    )
    diagnostics = Diagnostics()
    assert kinds(folder, diagnostics) == {"Cup"}
    assert [(item.code, item.severity.value) for item in diagnostics] == [("K015", "note")]
    assert len(read_crds([folder], Diagnostics())) == 1


def test_a_kustomization_is_read_alike_by_every_command(tmp_path: Path) -> None:
    other = copy.deepcopy(crd(v1=record()))
    other["metadata"]["name"] = "mugs.example.com"
    other["spec"]["names"] = {"plural": "mugs", "kind": "Mug"}
    folder = write(
        tmp_path / "crd", cups=crd(v1=record()), mugs=other, kustomization={"resources": ["mugs.yaml"]}
    )
    assert kinds(folder, Diagnostics()) == {"Mug"}
    given = read_crds([folder], Diagnostics())
    assert [each.value["spec"]["names"]["kind"] for each in given] == ["Mug"]


def test_a_crd_of_a_built_in_kind_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shadow = crd(v1=record(spec=record(only={"type": "string"})))
    shadow["metadata"]["name"] = "deployments.apps"
    shadow["spec"] |= {"group": "apps", "names": {"plural": "deployments", "kind": "Deployment"}}
    folder = write(tmp_path / "crds", deployments=shadow, cups=crd(v1=record()))
    diagnostics = Diagnostics()
    assert kinds(folder, diagnostics, KubernetesSource("1.37")) == {"Cup"}
    assert [item.code for item in diagnostics] == ["K015"]
    objects = write(
        tmp_path / "objects",
        good={**DEPLOYMENT, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}},
    )
    assert main(["validate", "--strict", "--crds", str(folder), str(objects)]) == 0, capsys.readouterr()


POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}


def test_a_repository_may_hold_what_is_no_yaml(tmp_path: Path) -> None:
    """`lint .` and `diff git:main:. .` read the descriptions among charts, tests and broken files."""
    folder = write(tmp_path / "all", cups=crd(v1=record()))
    (folder / "broken.yaml").write_text("a: [")
    (folder / "values.json").write_text("{{ not json")
    (folder / "schema.json").write_text('{"definitions": {"a": {"type": "object"}}}')
    (folder / "chart.yaml").write_text(
        "kind: CustomResourceDefinition\n{{ if .Values.crds }}\na: [\n{{ end }}\n"
    )
    diagnostics = Diagnostics()
    assert kinds(folder, diagnostics) == {"Cup"}
    assert [(item.code, item.location.file) for item in diagnostics] == [("K015", str(folder / "chart.yaml"))]
    (folder / "wrong.yaml").write_text("kind: CustomResourceDefinition\na: [\n")
    diagnostics = Diagnostics()
    kinds(folder, diagnostics)
    assert diagnostics.has_errors, "a definition that cannot be read is no passing over"


def described(tmp_path: Path, **variants: Any) -> tuple[set[str], list[str]]:
    """The fields of the spec that is taken of a folder, and what is said."""
    diagnostics = Diagnostics()
    package = Package(name="x", sources=(PathSource(write(tmp_path / "crds", **variants)),))
    api = read_api(package, diagnostics)
    cup = next(d for d in api.definitions if d.name == "com.example.v1.Cup")
    spec = next(f.value.type for f in cup.value.type.fields if f.wire_name == "spec")  # type: ignore[union-attr]
    return {f.wire_name for f in spec.fields}, [str(item) for item in diagnostics]  # type: ignore[union-attr]


def test_of_several_definitions_of_one_name_the_fullest_is_taken(tmp_path: Path) -> None:
    text = {"type": "string"}
    plain, full = crd(v1=record(size=text)), crd(v1=record(size=text, colour=text))
    fields, said = described(tmp_path, default=plain, preview=full, stable=plain)
    assert fields == {"size", "colour"}
    assert len(said) == 1
    assert "preview.yaml" in said[0]
    assert "warning K209: 3 different definitions of cups.example.com, of which a cluster has one" in said[0]


def test_definitions_that_differ_in_annotations_alone_are_variants_too(tmp_path: Path) -> None:
    plain = crd(v1=record(size={"type": "string"}))
    marked = copy.deepcopy(plain)
    marked["metadata"]["annotations"] = {"for": "others"}
    fields, said = described(tmp_path, a=plain, b=marked)
    assert fields == {"size"}
    assert [item.split(": ")[1] for item in said] == ["warning K209"]


def test_a_definition_that_lies_twice_in_a_folder_is_one(tmp_path: Path) -> None:
    plain = crd(v1=record(size={"type": "string"}))
    assert described(tmp_path, a=plain, b=plain) == ({"size"}, [])


def test_definitions_of_files_that_were_named_must_agree(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "crds",
        a=crd(v1=record(size={"type": "string"})),
        b=crd(v1=record(colour={"type": "string"})),
    )
    diagnostics = Diagnostics()
    sources = tuple(PathSource(folder / name) for name in ("a.yaml", "b.yaml"))
    read_api(Package(name="x", sources=sources), diagnostics)
    assert {"K204"} <= {item.code for item in diagnostics}


def test_installed_dependencies_are_left_out(tmp_path: Path) -> None:
    for name in ("node_modules/a", "go/vendor/b", "vendor/own", "src"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.yaml").write_text("a: 1\n")
    (tmp_path / "go/vendor/modules.txt").touch()
    diagnostics = Diagnostics()
    found = [path.relative_to(tmp_path).parent.as_posix() for path in files_in(tmp_path, diagnostics)]
    assert found == ["src", "vendor/own"]
    assert [path.name for path in files_in(tmp_path / "node_modules", diagnostics)] == ["x.yaml"], (
        "it is named"
    )


PART = """swagger: "2.0"
info: {title: a, version: v1}
paths: {}
definitions:
  v1.Cup:
    type: object
    properties:
      metadata: {$ref: "#/definitions/v1.ObjectMeta"}
      time: {$ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Time"}
      other: {$ref: "#/definitions/v1.Saucer"}
"""


def test_parts_of_descriptions_next_to_code_are_passed_over(tmp_path: Path) -> None:
    folder = write(tmp_path / "all", cups=crd(v1=record()))
    (folder / "swagger.yaml").write_text(PART)
    diagnostics = Diagnostics()
    assert kinds(folder, diagnostics) == {"Cup"}
    [note] = diagnostics
    assert (note.code, note.severity.value, note.location.line) == ("K015", "note", 8)
    assert note.message == "passed over: 2 types are missing, such as 'v1.ObjectMeta'"
    (folder / "others.yaml").write_text(
        PART.replace("v1.Cup:", "v1.ObjectMeta: {type: object}\n  v1.Saucer:").split("    type: object")[0]
        + "    type: object\n"
    )
    diagnostics = Diagnostics()
    kinds(folder, diagnostics)
    assert not len(diagnostics), "documents of a folder may refer to each other's types"


def test_a_part_of_a_description_is_an_error_where_it_is_all_there_is(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "swagger.yaml").write_text(PART)
    for path in (folder, folder / "swagger.yaml"):
        diagnostics = Diagnostics()
        kinds(path, diagnostics)
        assert {each.code for each in diagnostics} == {"K201"}


def test_an_anchor_may_be_used_again(tmp_path: Path) -> None:
    """YAML 1.2.2, section 7.1; go-yaml reads it so."""
    file = tmp_path / "a.yaml"
    file.write_text("a: &x 1\nb: *x\nc: &x [2]\nd: *x\n!!merge <<: &y {e: *x}\n")
    diagnostics = Diagnostics()
    [document] = read_documents(file, diagnostics)
    assert document.value == {"a": 1, "b": 1, "c": [2], "d": [2], "e": [2]}
    assert document.at("/c").line == 3
