"""``kubewright crd --python``: classes that give the definition they were written from, whatever is in it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from kubewright.diagnostics import Diagnostics
from kubewright.source.python_classes import read_classes
from kubewright.tools.crd.classes import classes_of
from kubewright.tools.crd.inlining import UndefinableError
from tests.differential.draw import schemas
from tests.differential.draw.words import Dice
from tests.tools.command import kubewright

ROOT = Path(__file__).parents[2]
RECORDED = ROOT.parent / "shared/data/crds"
DRAWN = 60
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com, annotations: {example.com/owner: me}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        description: "A widget.\\n\\nWith \\"two\\" paragraphs."
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            description: What is wanted.
            required: [size, gone]
            x-kubernetes-validations: [{rule: self.size > 0, message: small}]
            properties:
              size: {type: integer, format: int32, minimum: 0, exclusiveMinimum: true, description: How many.}
              gone: {type: string, nullable: true}
              note: {type: string, nullable: true, default: ""}
              mode: {type: string, enum: [fast, safe], default: safe}
              x-y: {type: string, pattern: '^\\p{L}+$'}
              port: {x-kubernetes-int-or-string: true}
              tags: {type: array, items: {type: string}, x-kubernetes-list-type: set, default: [a]}
              any: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status:
            type: object
            properties: {size: {type: integer}}
  - name: v1beta1
    served: false
    storage: false
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec: {type: object, oneOf: [{required: [a]}], properties: {a: {type: string}}}
"""
CLASSES = '''from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, UnsetType, field

from apimachinery.typed.markers import CelRule, Column, Default, FormatName, ListMerge, ScalePaths, kind, rules


@rules(
    CelRule(rule="self.size > 0", message="small"),
)
class Spec(Struct, rename="camel", kw_only=True):
    """What is wanted.

    Fields:
        size: How many.
    """

    size: Annotated[int, FormatName("int32"), Meta(gt=0)]
    gone: str | None
    note: str | UnsetType | None = ""
    mode: Literal["fast", "safe"] = "safe"
    x_y: Annotated[str, Meta(extra_json_schema={"pattern": "^\\\\p{L}+$"})] | None = field(name="x-y", default=None)
    port: int | str | None = None
    tags: Annotated[list[str], ListMerge("set"), Default(["a"])] | None = None
    any: dict[str, Any] | None = None


class Status(Struct, rename="camel", kw_only=True):
    size: int | None = None


@kind(
    group="example.com",
    version="v1",
    short_names=["wd"],
    scale=ScalePaths(spec_replicas_path=".spec.size", status_replicas_path=".status.size"),
    columns=[Column(name="Size", json_path=".spec.size", type="integer")],
    annotations={"example.com/owner": "me"},
)
class Widget(Struct, rename="camel", kw_only=True):
    """A widget.

    With "two" paragraphs.
    """

    spec: Spec
    status: Status | None = None


class WidgetSpec(Struct, rename="camel", kw_only=True):
    a: str | None = None


@kind(
    group="example.com",
    version="v1beta1",
    kind="Widget",
    short_names=["wd"],
    served=False,
    storage=False,
    deprecated=True,
)
class WidgetV1beta1(Struct, rename="camel", kw_only=True):
    spec: Annotated[WidgetSpec, Meta(extra_json_schema={"oneOf": [{"required": ["a"]}]})] | None = None
'''


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    yield
    sys.modules.pop("written", None)


def given_back(manifest: Any) -> Any:
    """The definition of the classes of a definition."""
    module = ModuleType("written")
    sys.modules["written"] = module
    exec(classes_of([manifest]), vars(module))  # noqa: S102
    diagnostics = Diagnostics()
    documents = read_classes("written:*", diagnostics)
    assert [str(each) for each in diagnostics] == []
    (document,) = documents
    return document.value


def plain(value: Any) -> Any:
    """A part of a definition without empty parts, which say nothing; integers are no doubles."""
    if isinstance(value, dict):
        said = {key: plain(item) for key, item in value.items()}
        empty = (
            "required",
            "properties",
            "x-kubernetes-validations",
            "subresources",
            "additionalPrinterColumns",
        )
        said = {key: item for key, item in said.items() if item or key not in empty}
        return said | ({"required": sorted(said["required"])} if "required" in said else {})
    if isinstance(value, list):
        return [plain(item) for item in value]
    return (type(value).__name__, value) if isinstance(value, int | float) else value


def spec_of(manifest: Any) -> Any:
    """The spec, without what is as it mostly is."""
    spec = plain(copy.deepcopy(manifest["spec"]))
    spec.pop("preserveUnknownFields", None)
    kind = spec["names"]["kind"]
    spec["names"] = {"listKind": f"{kind}List", "singular": kind.lower(), **spec["names"]}
    if spec.get("conversion") == {"strategy": "None"}:
        del spec["conversion"]
    for version in spec["versions"]:
        properties = version["schema"]["openAPIV3Schema"].get("properties", {})
        for name, its_type in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
            if properties.get(name) == {"type": its_type}:
                del properties[name]
    return spec


def test_classes_read_as_people_write_them() -> None:
    manifest = yaml.safe_load(DEFINITION)
    assert classes_of([manifest]) == CLASSES
    assert spec_of(given_back(manifest)) == spec_of(manifest)


def drawn(seed: int) -> Any:
    schema = schemas.root(Dice(seed))
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if "status" in schema["properties"]:
        version["subresources"] = {"status": {}}
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


@pytest.mark.parametrize("first", range(0, DRAWN, 20))
def test_any_schema_comes_back(first: int) -> None:
    for seed in range(first, first + 20):
        manifest = drawn(seed)
        assert spec_of(given_back(manifest)) == spec_of(manifest), seed


@pytest.mark.thorough
def test_thousands_of_schemas_come_back() -> None:
    for seed in range(DRAWN, 4000):
        manifest = drawn(seed)
        assert spec_of(given_back(manifest)) == spec_of(manifest), seed


@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the ../shared folder of recordings")
def test_definitions_of_real_projects_come_back() -> None:
    paths = sorted(RECORDED.rglob("*.yaml"))[::12]
    found = [yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader) for path in paths]
    assert len(found) > 10
    for manifest in found:
        assert spec_of(given_back(manifest)) == spec_of(manifest), manifest["metadata"]["name"]


def test_what_no_class_says_is_refused() -> None:
    manifest = drawn(0)
    manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {'a"b': {"type": "string"}},
    }
    with pytest.raises(UndefinableError, match="is no name of a field in Python"):
        classes_of([manifest])


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("crd.yaml").write_text(DEFINITION)
    code, manifest, _ = kubewright("crd", "crd.yaml")
    assert code == 0
    code, _, said = kubewright("crd", "crd.yaml", "--python", "--output", "made")
    assert code == 0, said
    code, again, _ = kubewright("crd", "made/classes.py:*")
    assert code == 0
    assert again.partition("\n")[2] == manifest.partition("\n")[2]


FAULTY = """\
from typing import Annotated

from msgspec import Meta, Struct

from apimachinery.typed.markers import CelRule, Default, kind, rules


@rules(CelRule("self.nope > 1"))
class Port(Struct):
    number: Annotated[int, CelRule("self.foo > 1")]


class Spec(Struct):
    ports: list[Port]
    others: dict[str, Port]
    mode: Annotated[str, Meta(max_length=2), Default("abc")]


@kind(group="example.com", version="v1")
class Widget(Struct):
    spec: Spec
"""


def test_faults_that_a_server_finds_are_at_the_line_of_the_class_or_field(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faulty.py").write_text(FAULTY)
    code, _, err = kubewright("crd", "faulty.py:Widget")
    found = [line.split(": ")[:2] for line in err.splitlines() if line.startswith("faulty.py")]
    lines = FAULTY.splitlines()
    shown = sorted({(lines[int(place.split(":")[1]) - 1].strip(), what) for place, what in found})
    assert (code, shown) == (
        1,
        [
            ("class Port(Struct):", "error K706"),
            ('mode: Annotated[str, Meta(max_length=2), Default("abc")]', "warning K708"),
            ('number: Annotated[int, CelRule("self.foo > 1")]', "error K706"),
        ],
    )
