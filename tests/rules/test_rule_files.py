"""Rule files that are wrong give diagnostics; hostile ones never become code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.diagnostics import Diagnostics
from kubewright.emit.interface import Options
from kubewright.emit.python.parts import load_part
from kubewright.ir.api import Api
from kubewright.ir.check_rules import check_rules
from kubewright.ir.paths import Items, Key, Values, parse_path
from kubewright.ir.types import Definition, Field, ListOf, Primitive, Ref, Scalar, Struct, Value
from kubewright.location import NOWHERE
from kubewright.source.rules import read_rules

CASES = yaml.load((Path(__file__).parent / "cases/diagnostics.yaml").read_text(), yaml.CSafeLoader)


def field(name: str, node: Any) -> Field:
    return Field(wire_name=name, required=False, value=Value(type=node, location=NOWHERE))


def definition(version: str, *fields: Field) -> Definition:
    head = [field(name, Scalar(Primitive.STRING)) for name in ("apiVersion", "kind", "name")]
    return Definition(
        name=f"g.{version}.Thing",
        group="g",
        version=version,
        value=Value(type=Struct((*head, *fields)), location=NOWHERE),
        kinds=(("g", version, "Thing"),),
    )


DEFINITIONS = (
    definition(
        "v1",
        field("size", Scalar(Primitive.INTEGER)),
        field("parts", ListOf(Value(type=Ref("g.v1.Thing"), location=NOWHERE))),
    ),
    definition(
        "v2",
        field("old", Scalar(Primitive.STRING)),
        field("parts", ListOf(Value(type=Ref("g.v2.Thing"), location=NOWHERE))),
    ),
)


def api_with(folder: Path, diagnostics: Diagnostics) -> Api:
    facts = read_rules(folder, diagnostics)
    api = Api(name="test_api", definitions=DEFINITIONS, resources=(), facts=facts)
    check_rules(api, diagnostics)
    return api


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / case["kind"]
    folder.mkdir()
    (folder / "rules.yaml").write_text(case["file"])
    diagnostics = Diagnostics()
    api_with(tmp_path, diagnostics)
    said = [str(item).replace(f"{folder}/", "").partition("\n")[0] for item in diagnostics]
    assert len(said) == len(case["says"]), said
    for text, wanted in zip(said, case["says"], strict=True):
        assert text.endswith(wanted)


PATHS = {
    "": (),
    "a": (Key("a"),),
    "a.b": (Key("a"), Key("b")),
    "a[*].b": (Key("a"), Items(), Key("b")),
    "a[name=x].b": (Key("a"), Items("name", "x"), Key("b")),
    "a[on=true]": (Key("a"), Items("on", True)),
    "a{*}": (Key("a"), Values()),
    'a["b.c/d"]': (Key("a"), Key("b.c/d")),
    r'a["q\"x"]': (Key("a"), Key('q"x')),
    "$.a": (Key("a"),),
    "a-b.$ref": (Key("a-b"), Key("$ref")),
}


@pytest.mark.parametrize("text", PATHS)
def test_paths(text: str) -> None:
    path = parse_path(text)
    assert path.steps == PATHS[text]
    assert path.absolute == text.startswith("$.")


@pytest.mark.parametrize(
    "text", ["a.", ".a", "a b", "a[", "a[0]", "a[]", "a{", "a..b", "1a", 'a["b', "a[b=c", "é"]
)
def test_what_is_no_path(text: str) -> None:
    with pytest.raises(ValueError, match=r"at '|expected"):
        parse_path(text)


TEXTS = st.text(min_size=1, max_size=12) | st.sampled_from(
    ['"); import os #', "{x}", "\n", "'", "\\", '"""', "__class__"]
)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.dictionaries(TEXTS, TEXTS, max_size=2))
def test_texts_of_rules_never_become_code(key: str, value: str, words: dict[str, str]) -> None:
    """Whatever rules say, what is generated parses, and calls nothing but what the emitter writes."""
    import tempfile

    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    rules: dict[str, Any] = {
        "defaults": {
            "group": "g",
            "version": "v1",
            "types": {"Thing": [{"default": "name", "value": value, "when": {"name": {"in": [key, value]}}}]},
        },
        "validation": {
            "group": "g",
            "version": "v1",
            "types": {"Thing": [{"check": "one_of", "at": "name", "values": [key, value]}]},
        },
        "conversions": {
            "kind": "Thing",
            "hub": "g/v1",
            "spokes": {
                "g/v2": [{"move": "old", "to": "name", "values": words}, {"constant": "size", "value": value}]
            },
        },
    }
    rules["defaults"]["types"]["Thing"].append({"set": f'["{quoted}"]', "value": {key: value}})
    with tempfile.TemporaryDirectory() as name:
        for kind, content in rules.items():
            folder = Path(name, kind)
            folder.mkdir()
            (folder / "rules.yaml").write_text(yaml.safe_dump(content))
        facts = read_rules(Path(name), Diagnostics())
    api = Api(name="test_api", definitions=DEFINITIONS, resources=(), facts=facts)
    known = {
        "begin",
        "through_hub",
        "Spoke",
        "move",
        "map_words",
        "put",
        "drop",
        "list",
        "items",
        "is_set",
        "lookup",
    }
    for emitter in ("defaults", "validation", "conversion"):
        for file in load_part(emitter, Options(package="test_api")).emit(api):
            for node in ast.walk(ast.parse(file.content)):
                if isinstance(node, ast.Call):
                    called = ast.unparse(node.func)
                    assert (
                        called in known
                        or called.startswith(("default_", "check_", "checks."))
                        or called.endswith((".get", ".removesuffix"))
                        or called in ("numbered", "struct")
                    ), called


def test_checks_of_a_type_and_of_a_subresource_have_different_names(tmp_path: Path) -> None:
    """ThingStatus is a type, and the status of Thing a subresource."""
    status = Definition(
        name="g.v1.ThingStatus",
        group="g",
        version="v1",
        value=Value(type=Struct((field("size", Scalar(Primitive.INTEGER)),)), location=NOWHERE),
    )
    (tmp_path / "validation").mkdir()
    (tmp_path / "validation/rules.yaml").write_text(
        "group: g\nversion: v1\ntypes:\n"
        "  Thing: {on_subresource: {status: [{check: required, at: name}]}}\n"
        "  ThingStatus: [{check: minimum, at: size}]\n"
    )
    facts = read_rules(tmp_path, Diagnostics())
    api = Api(name="test_api", definitions=(*DEFINITIONS, status), resources=(), facts=facts)
    (file,) = load_part("validation", Options(package="test_api")).emit(api)
    functions = [node.name for node in ast.parse(file.content).body if isinstance(node, ast.FunctionDef)]
    assert len(functions) == len(set(functions)), functions
