"""CustomResourceDefinitions out of Python classes, faults at their lines, and the way there and back."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import field, make_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import msgspec
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apimachinery.typed.markers import KindMarker, kind
from kubewright.cli import main
from kubewright.config import Package, PathSource
from kubewright.diagnostics import Diagnostics
from kubewright.pipeline import build
from kubewright.source.python_classes import read_classes

ROOT = Path(__file__).parents[3]
HEAD = """
from __future__ import annotations
import dataclasses, enum, msgspec
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from msgspec import UNSET, Meta, UnsetType
from apimachinery.typed.markers import *
"""
MSGSPEC = """
class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"

class Port(msgspec.Struct, rename="camel"):
    \"\"\"A port.\"\"\"
    name: str
    port_number: Annotated[int, Meta(ge=1, lt=65536), FormatName("int32")]
    target: int | str | None = None

@rules(CelRule("self.minSize <= 9", message="too large", field_path=".minSize"))
class Spec(msgspec.Struct, rename="camel"):
    \"\"\"What is wanted.

    Fields:
        min_size: The least, of
            all.
    \"\"\"
    min_size: Annotated[int, Meta(gt=0)]
    gone: str | None
    colour: Colour = Colour.RED
    ports: Annotated[list[Port], ListMerge("map", ("name",)), Meta(max_length=10)] = []
    tags: set[str] = set()
    labels: Annotated[dict[str, str], MapMerge("atomic"), Meta(min_length=1)] = {}
    raw: dict[str, Any] | None = None
    note: str | UnsetType | None = UNSET
    name: Annotated[str, Meta(pattern="^[a-z]+$", max_length=20), CelRule("self != 'x'")] | None = None
    mode: Annotated[Literal["a", "b"], Default("b"), Meta(description="How.")] | None = None
    inner: Annotated[dict[str, Any], EmbeddedResource()] | None = None
    other: Annotated[str, Meta(extra_json_schema={"x-kubernetes-immutable": True})] = ""

@kind(
    group="example.com", version="v1", short_names=["wd"], categories=["all"], scope="Cluster", scale=ScalePaths(),
    columns=[Column("Size", ".spec.minSize", type="integer", priority=1)], selectable_fields=[".spec.name"],
)
class Widget(msgspec.Struct):
    \"\"\"A widget.\"\"\"
    spec: Spec
    status: dict[str, Any] | None = None
"""
SPEC = """
description: What is wanted.
type: object
required: [minSize, gone]
x-kubernetes-validations: [{rule: self.minSize <= 9, message: too large, fieldPath: .minSize}]
properties:
  minSize: {type: integer, minimum: 0, exclusiveMinimum: true, description: "The least, of all."}
  gone: {type: string, nullable: true}
  colour: {type: string, enum: [red, blue], default: red}
  ports:
    type: array
    maxItems: 10
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      description: A port.
      type: object
      required: [name, portNumber]
      properties:
        name: {type: string}
        portNumber: {type: integer, format: int32, minimum: 1, maximum: 65536, exclusiveMaximum: true}
        target: {x-kubernetes-int-or-string: true}
  tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
  labels: {type: object, additionalProperties: {type: string}, x-kubernetes-map-type: atomic, minProperties: 1}
  raw: {type: object, x-kubernetes-preserve-unknown-fields: true}
  note: {type: string, nullable: true}
  name: {type: string, pattern: "^[a-z]+$", maxLength: 20, x-kubernetes-validations: [{rule: self != 'x'}]}
  mode: {type: string, enum: [a, b], default: b, description: How.}
  inner: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}
  other: {type: string, default: "", x-kubernetes-immutable: true}
"""
DATACLASS = """
@dataclass
class Spec:
    min_size: Annotated[int, Meta(ge=1)]
    tags: list[str] = dataclasses.field(default_factory=list)
    step: Annotated[float, Meta(multiple_of=0.5)] = 1.5

@kind(group="example.com", version="v1")
@dataclass
class Widget:
    spec: Spec
"""
PYDANTIC = """
from pydantic import BaseModel, Field

class Spec(BaseModel):
    min_size: int = Field(ge=1)
    tags: list[str] = Field(default_factory=list)
    step: float = Field(1.5, multiple_of=0.5)

@kind(group="example.com", version="v1")
class Widget(BaseModel):
    spec: Spec
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("shapes", None)


def crd(folder: Path, source: str) -> tuple[Any, list[str]]:
    (folder / "shapes.py").write_text(HEAD.lstrip() + source)
    diagnostics = Diagnostics()
    documents = read_classes("shapes.py:Widget", diagnostics)
    return documents[0].value if documents else None, [str(each) for each in diagnostics]


def schema_of(manifest: Any) -> Any:
    return manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_a_class_says_all_of_a_definition(folder: Path) -> None:
    manifest, said = crd(folder, MSGSPEC)
    assert said == []
    schema = schema_of(manifest)
    assert schema["properties"]["spec"] == yaml.safe_load(SPEC)
    assert (schema["description"], schema["required"]) == ("A widget.", ["spec"])
    version = manifest["spec"]["versions"][0]
    assert version["additionalPrinterColumns"] == [
        {"name": "Size", "jsonPath": ".spec.minSize", "type": "integer", "priority": 1}
    ]
    assert version["subresources"].keys() == {"status", "scale"}
    assert version["selectableFields"] == [{"jsonPath": ".spec.name"}]
    assert manifest["spec"]["names"] == {
        "kind": "Widget",
        "listKind": "WidgetList",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "categories": ["all"],
    }


@pytest.mark.parametrize("source", [DATACLASS, PYDANTIC], ids=["dataclass", "pydantic"])
def test_other_libraries(folder: Path, source: str) -> None:
    if source is PYDANTIC:
        pytest.importorskip("pydantic")
    manifest, said = crd(folder, source)
    assert said == []
    assert schema_of(manifest)["properties"]["spec"] == {
        "type": "object",
        "required": ["minSize"],
        "properties": {
            "minSize": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string"}},
            "step": {"type": "number", "multipleOf": 0.5, "default": 1.5},
        },
    }


KIND = '@kind(group="example.com", version="v1")\n'
FAULTS = {
    "int | list[str]": (4, "Widget.spec: int | list has no structural schema"),
    "tuple[int, str]": (4, "Widget.spec: tuple[int, str] has no structural schema"),
    "dict[int, str]": (4, "Widget.spec: the keys of a map are text"),
    "complex": (4, "Widget.spec: complex has no schema"),
    'Literal["a", 1]': (4, "Widget.spec: the members of an enum are of one type"),
    "Widget": (4, "Widget.spec: a type inside itself cannot be written out: Widget → Widget"),
    "Annotated[int, Meta(max_length=3)]": (4, "Widget.spec: max_length says nothing of an integer"),
    "Annotated[list[int], Meta(ge=3)]": (4, "Widget.spec: ge says nothing of a list"),
    "Annotated[int, Meta(pattern='a')]": (4, "Widget.spec: pattern says nothing of an integer"),
    "object = complex(1)": (4, "Widget.spec: its default is no JSON: TypeError: "),
    "int = msgspec.field(default_factory=lambda: 1 // 0)": (
        4,
        "Widget.spec: its default is no JSON: ZeroDivision",
    ),
}


@pytest.mark.parametrize("given_type", FAULTS)
def test_faults_are_at_the_line_of_the_field(folder: Path, given_type: str) -> None:
    _, said = crd(folder, f"{KIND}class Widget(msgspec.Struct):\n    # a comment\n    spec: {given_type}\n")
    line, message = FAULTS[given_type]
    assert len(said) == 1
    assert said[0].startswith(f"shapes.py:{HEAD.strip().count(chr(10)) + 1 + line}:5: error K018: {message}")


def test_two_fields_of_one_name_in_json(folder: Path) -> None:
    _, said = crd(folder, f"{KIND}@dataclass\nclass Widget:\n    pod_ip: int\n    podIp: int\n")
    assert len(said) == 1 and "Widget.podIp: another field is podIp in JSON" in said[0]


CLASS_FAULTS = {
    "class Widget(msgspec.Struct):\n    spec: Nowhere": "the types of Widget cannot be found: name 'Nowhere' is not",
    "class Widget(msgspec.Struct, array_like=True):\n    spec: int": "Widget is an array in JSON",
}


@pytest.mark.parametrize("source", CLASS_FAULTS)
def test_faults_of_a_whole_class_are_at_its_line(folder: Path, source: str) -> None:
    manifest, said = crd(folder, KIND + source)
    line = HEAD.strip().count(chr(10)) + 3
    assert manifest is None
    assert [each.partition(CLASS_FAULTS[source])[0] for each in said] == [f"shapes.py:{line}:1: error K018: "]


def test_a_fault_of_an_inherited_field_is_where_it_is_written(folder: Path) -> None:
    _, said = crd(
        folder, f"class Base(msgspec.Struct):\n    spec: complex\n{KIND}class Widget(Base):\n    b: int = 0\n"
    )
    assert [each.partition(": error")[0] for each in said] == [
        f"shapes.py:{HEAD.strip().count(chr(10)) + 3}:5"
    ]


DEFAULTS = """
@dataclass
class Port:
    port_number: int = 80
    note: str | None = None

class Inner(msgspec.Struct, rename="camel"):
    max_size: int = 1

@dataclass
class Spec:
    port: Port = dataclasses.field(default_factory=Port)
    ports: list[Port] = dataclasses.field(default_factory=lambda: [Port(), Port(8080, "x")])
    inner: Inner = dataclasses.field(default_factory=Inner)

@kind(group="example.com", version="v1")
@dataclass
class Widget:
    spec: Spec
"""


def test_defaults_have_the_names_of_json(folder: Path) -> None:
    manifest, said = crd(folder, DEFAULTS)
    assert said == []
    found = schema_of(manifest)["properties"]["spec"]["properties"]
    assert {name: each.get("default") for name, each in found.items()} == {
        "port": {"portNumber": 80},
        "ports": [{"portNumber": 80}, {"portNumber": 8080, "note": "x"}],
        "inner": {"maxSize": 1},
    }


INSIDE = """
from pydantic import BaseModel, Field, RootModel

class Spec(BaseModel, extra="allow"):
    \"\"\"Fields:
        sizes: What is wanted.
    \"\"\"
    sizes: list[Annotated[int, Field(ge=1, description="One.")]]
    secret: str = Field("", exclude=True)

@kind(group="example.com", version="v1")
class Widget(BaseModel):
    \"\"\"One.

    Two.

    Fields:
        spec: Three.
    \"\"\"
    spec: Spec
"""


def test_what_stands_inside_types_of_pydantic(folder: Path) -> None:
    pytest.importorskip("pydantic")
    manifest, said = crd(folder, INSIDE)
    assert said == []
    schema = schema_of(manifest)
    assert schema["description"] == "One.\n\nTwo."
    assert schema["properties"]["spec"] == {
        "type": "object",
        "description": "Three.",
        "required": ["sizes"],
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            "sizes": {
                "type": "array",
                "description": "What is wanted.",
                "items": {"type": "integer", "minimum": 1, "description": "One."},
            }
        },
    }
    manifest, said = crd(folder, INSIDE.replace("spec: Spec", "spec: RootModel[int]"))
    assert ["is no object in JSON" in each for each in said] == [True]


TAGGED = """
class Spec(msgspec.Struct, tag="one", tag_field="sort"):
    size: int = 1

@kind(group="example.com", version="v1")
class Widget(msgspec.Struct):
    spec: Spec
"""


def test_the_tag_of_a_struct_is_a_field(folder: Path) -> None:
    manifest, said = crd(folder, TAGGED)
    assert said == []
    assert schema_of(manifest)["properties"]["spec"] == {
        "type": "object",
        "required": ["sort"],
        "properties": {
            "sort": {"type": "string", "enum": ["one"]},
            "size": {"type": "integer", "default": 1},
        },
    }


VERSIONS = """
class Spec(msgspec.Struct):
    size: int

class OldSpec(msgspec.Struct):
    length: STALE

@kind(group="example.com", version="v1")
class Widget(msgspec.Struct):
    spec: Spec

@kind(group="example.com", version="v1beta1", kind="Widget", storage=False, deprecated=True)
class WidgetV1Beta1(msgspec.Struct):
    spec: OldSpec

@kind(group="example.com", version="v1")
class Gadget(msgspec.Struct):
    spec: Spec
"""


def test_the_versions_of_a_kind_are_of_one_definition(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "shapes.py").write_text(HEAD.lstrip() + VERSIONS.replace("STALE", "int"))
    assert main(["crd", "shapes.py:*"]) == 0
    gadgets, widgets = yaml.safe_load_all(capsys.readouterr().out)
    assert [each["name"] for each in widgets["spec"]["versions"]] == ["v1", "v1beta1"]
    assert [each["storage"] for each in widgets["spec"]["versions"]] == [True, False]
    assert gadgets["metadata"]["name"] == "gadgets.example.com"
    bad = HEAD.lstrip() + VERSIONS.replace("STALE", "Annotated[list[str], ListMerge('map', ('a',))]")
    (folder / "shapes.py").write_text(bad)
    sys.modules.pop("shapes", None)
    assert main(["crd", "shapes.py:*"]) == 2
    line = bad[: bad.index("length")].count("\n") + 1
    assert f"shapes.py:{line}:5: error K105" in capsys.readouterr().err
    (folder / "shapes.py").write_text(
        HEAD.lstrip() + VERSIONS.replace("STALE", "int").replace("storage=False", "scope='Cluster'")
    )
    sys.modules.pop("shapes", None)
    assert main(["crd", "shapes.py:*"]) == 2
    assert "Widget has other scope in v1beta1" in capsys.readouterr().err


def test_what_a_server_refuses_is_at_a_line_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (
        f"{KIND}class Widget(msgspec.Struct):\n    spec: Annotated[list[str], ListMerge('map', ('a',))]\n"
    )
    (folder / "shapes.py").write_text(HEAD.lstrip() + source)
    assert main(["crd", "shapes.py:Widget"]) == 2
    assert (
        "shapes.py:9:5: error K105: Widget.spec is a map list, but its items are no objects"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("target", "source", "said"),
    [
        ("shapes.py:None_", "", "shapes.py has no class None_"),
        ("shapes.py:HEAD", "class HEAD: pass", "HEAD is no class of fields"),
        ("shapes.py:A", "class A(msgspec.Struct): pass", "shapes.py:7:1: error K017: A is no kind"),
        ("shapes.py:*", "", "shapes.py has no class with @kind"),
        ("shapes.py:A", "1/0", "shapes.py cannot be imported: ZeroDivisionError: division by zero"),
        ("nowhere.shapes:A", "", "nowhere.shapes cannot be imported: ModuleNotFoundError"),
        ("none.py:A", "", "none.py: error K001: cannot read: no such file"),
    ],
)
def test_what_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str], target: str, source: str, said: str
) -> None:
    (folder / "shapes.py").write_text(HEAD.lstrip() + source)
    assert main(["crd", target]) == 2
    assert said in capsys.readouterr().err


# there and back

SCALARS: list[Any] = [str, int, bool, float, bytes, int | str, Any, Literal["a", "b"], dict[str, Any]]
NAMES = st.sampled_from(["size", "min_size", "class_", "pod_ip", "a1", "kind_of", "spec_", "url", "x"])


def classes(depth: int) -> st.SearchStrategy[Any]:
    """Dataclasses of random fields; the classes of two fields may be the same."""
    fields = st.lists(
        st.tuples(NAMES, types(depth), st.booleans()), min_size=1, max_size=5, unique_by=lambda f: f[0]
    )
    return fields.map(made)


def types(depth: int) -> st.SearchStrategy[Any]:
    leaf: st.SearchStrategy[Any] = st.sampled_from(SCALARS)
    if not depth:
        return leaf
    inner = types(depth - 1)
    return (
        leaf
        | inner.map(list.__class_getitem__)
        | inner.map(lambda t: dict.__class_getitem__((str, t)))
        | classes(depth - 1)
    )


def made(fields: list[tuple[str, Any, bool]]) -> type:
    needed = [(name, each) for name, each, required in fields if required]
    others = [
        (name, each | None if each is not Any else Any, field(default=None))
        for name, each, req in fields
        if not req
    ]
    return make_dataclass("Part", [*needed, *others])


@given(spec=classes(3))
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_classes_made_of_the_definition_give_it_again(folder: Path, spec: type) -> None:
    module = ModuleType("shapes")
    widget = make_dataclass("Widget", [("spec", spec)])
    module.Widget = kind(group="example.com", version="v1")(widget)  # type: ignore[attr-defined]
    sys.modules["shapes"] = module
    first = manifest_of("shapes:Widget")
    (folder / "crd.yaml").write_text(yaml.safe_dump(first))
    package = Package(name="made_api", sources=(PathSource(folder / "crd.yaml"),), documentation=False)
    built = build(package, folder / "made_api")
    assert not built.diagnostics.has_errors, [*built.diagnostics]
    made_module = ModuleType("made_models")
    sys.modules["made_models"] = made_module
    exec(built.tree.files["example_v1/models.py"].decode(), vars(made_module))  # noqa: S102
    assert expressible(schema_of(manifest_of("made_models:Widget"))) == expressible(schema_of(first))
    del sys.modules["made_models"]


def manifest_of(target: str) -> Any:
    diagnostics = Diagnostics()
    (document,) = read_classes(target, diagnostics)
    assert not [*diagnostics]
    return document.value


def expressible(schema: Any) -> Any:
    """What a generated class says of a schema: prose, and the format of bytes (its text), it does not."""
    if isinstance(schema, dict):
        return {
            key: sorted(item) if key == "required" else expressible(item)
            for key, item in schema.items()
            if key != "description" and (key, item) != ("format", "byte")
        }
    return schema


SHAPE = {"type", "required", "items", "additionalProperties", "nullable", "enum"} | {
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
}
LOST = {
    # Types of the built-in groups are used where they are alike, and their enums are open.
    "/spec/target/selector/matchExpressions[]/operator enum",
    "/status/conditions[]/status enum",
    # One type in Python: a map of anything, an object without fields, anything and null.
    "/spec/overrides/properties additionalProperties",
    "/spec/overrides/properties x-kubernetes-preserve-unknown-fields",
    "/spec/mode/skip x-kubernetes-preserve-unknown-fields",
    "/spec/extra nullable",
    # Fields besides the declared ones are kept by the client, not by the class.
    "/spec/options x-kubernetes-preserve-unknown-fields",
}
"""What models do not say of the shape of the definitions in specs/backup; bounds, rules and markers they never say."""


def differences(first: Any, second: Any, place: str = "") -> Iterator[str]:
    for key in sorted((first.keys() | second.keys()) & SHAPE - {"items", "additionalProperties", "required"}):
        if first.get(key) != second.get(key):
            yield f"{place} {key}"
    if set(first.get("required", ())) != set(second.get("required", ())):
        yield f"{place} required"
    one, other = first.get("properties", {}), second.get("properties", {})
    for name in sorted((one.keys() | other.keys()) - {"apiVersion", "kind", "metadata"}):
        yield from differences(one.get(name, {}), other.get(name, {}), f"{place}/{name}")
    for key, step in (("items", "[]"), ("additionalProperties", "{}")):
        if key in first and key in second:
            yield from differences(first[key], second[key], place + step)
        elif key in first or key in second:
            yield f"{place} {key}"


def test_models_give_their_definition_again_as_far_as_they_say_it(folder: Path) -> None:
    found, versions = set[str](), 0
    for number, path in enumerate(sorted((ROOT / "specs/backup/crds").glob("*.yaml"))):
        name = f"again{number}_api"
        assert main(["generate", str(path), "--package", name, "--output", str(folder), "-q", "-j1"]) == 0
        sys.path.insert(0, str(folder))
        spec = yaml.safe_load(path.read_text())["spec"]
        for version in spec["versions"]:
            made_again = manifest_of(f"{name}.backup_{version['name']}.models:{spec['names']['kind']}")
            found |= set(differences(version["schema"]["openAPIV3Schema"], schema_of(made_again)))
            versions += 1
    assert versions == 6
    assert found - {"/spec/selector/matchExpressions[]/operator enum"} == LOST


def test_a_kind_is_what_the_decorator_says() -> None:
    class Thing(msgspec.Struct):
        a: int = 0

    marked = kind(group="g.example", version="v2", short_names=["t"])(Thing)
    assert marked is Thing
    assert vars(Thing)["__kubewright_kind__"] == KindMarker(
        group="g.example", version="v2", short_names=("t",)
    )
