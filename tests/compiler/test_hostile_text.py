"""No string of a spec becomes code in a generated module.

A CRD and an OpenAPI document are filled with hostile text, and with harmless text in the same places; every
emitter makes modules of both. Where the text is data in both (descriptions, enum members, defaults, patterns,
rules), the two modules must be the same program: equal syntax trees once string constants are blanked. Where it
decides names (properties, definitions, kinds), equal trees cannot be asked for; there the hostile module may
contain no kind of statement, no called function and no attribute access that the harmless one lacks.
"""

from __future__ import annotations

import ast
import json
import keyword
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubewright.config import FLAVOURS, Package, PathSource
from kubewright.pipeline import Built, build
from tests.compiler.real.constructed import construct, write
from tests.tools.command import kubewright

PAYLOADS = [
    '"""\nimport os\nos.system("true")\n"""',
    "'''; __import__('os').system('true'); '''",
    '\\"""\nraise SystemExit\n"""',
    "{{ 7 * 7 }}{% for x in y %}{{ x }}{% endfor %}{# c #}",
    "{x!r:{y}}",
    "line\rimport os",
    "line\x0cimport os\x0b\x1c\x1d\x1e\x85import os\u2028import os\u2029import os",
    "\\",
    "\\\\",
    'ends with a quote"',
    "ends with a quote'",
    "ends with a backslash\\",
    "# type: ignore\n# fmt: off\n# pragma",
    "\x00\x01\x1b[31m\x7f",
    "\u202eradcifisrever\u202c\u2066hidden\u2069",
    "\u0430\u0440\u0456 \uff49\uff4d\uff50\uff4f\uff52\uff54 \u2024\u037e",
    "\ufeff\u200b\u00ad",
    "\N{PILE OF POO}\U000e0001",
    "$(true) `true` %s %(x)s ${HOME}",
    "*/ // <!-- --> ]]>",
    "__class__.__mro__[1].__subclasses__()",
]
PIECES = [*PAYLOADS, '"', "'", "\n", "\\", "{{", "}}", "#", " ", "x"]
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40),
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join),
)  # never empty: what is empty is left out
SETTINGS = settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def crd(text: str, name: str = "note", default: Any = None, pattern: str | None = None) -> Any:
    """A CRD with ``text`` wherever free text may stand and ``name`` as the name of some properties."""
    leaf = {"type": "string", "description": text, "enum": [text, "b"], "default": text}
    keyed = {"type": "string", "description": text, "default": text}
    schema = {
        "type": "object",
        "description": text,
        "properties": {
            "spec": {
                "type": "object",
                "description": text,
                "x-kubernetes-validations": [{"rule": text or "true", "message": text or "no"}],
                "properties": {
                    name: leaf,
                    "plain": {
                        "type": "string",
                        "pattern": text if pattern is None else pattern,
                        "title": text,
                        "example": text,
                    },
                    "object": {
                        "type": "object",
                        "description": text,
                        "default": {text or "k": [text, None, 1.5, True]},
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {name: {"type": "integer"}},
                    },
                    "list": {
                        "type": "array",
                        "description": text,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": [name],
                        "items": {"type": "object", "properties": {name: keyed, "value": {"type": "string"}}},
                    },
                },
            }
        },
    }
    column = {"name": text or "c", "type": "string", "jsonPath": ".spec.plain", "description": text}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "deprecated": True,
        "deprecationWarning": text,
        "additionalPrinterColumns": [column],
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.hostile.example"},
        "spec": {
            "group": "hostile.example",
            "scope": "Namespaced",
            "names": {**names, "categories": [text or "c"], "shortNames": [text or "s"]},
            "versions": [version],
        },
    }


def openapi(text: str, name: str) -> Any:
    """An OpenAPI v2 document whose definitions and properties are called ``name``."""
    gvk = {"group": "hostile.example", "version": "v1", "kind": "Thing"}
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "spec": {"$ref": "#/definitions/example.hostile.v1." + pointer(name)},
    }
    return {
        "swagger": "2.0",
        "info": {"title": text, "version": "v1"},
        "paths": {},
        "definitions": {
            "example.hostile.v1.Thing": {
                "type": "object",
                "description": text,
                "properties": properties,
                "x-kubernetes-group-version-kind": [gvk],
            },
            "example.hostile.v1." + name: {
                "type": "object",
                "description": text,
                "properties": {name: {"type": "object", "properties": {name: {"type": "string"}}}},
                "required": [name],
                "x-" + name: text,
            },
        },
    }


NAMED = [
    pytest.param(
        document,
        models,
        id=f"{document.__name__}-{models}",
        # The layout names things for all flavours alike, and has not seen which document they are from.
        marks=[pytest.mark.thorough] if document is openapi and models in ("dataclass", "typeddict") else [],
    )
    for document in (crd, openapi)
    for models in FLAVOURS
]


# Three flavours write literals and names by the same code; the drawn texts below go through all of them.
ALIKE = ("dataclass", "typeddict")
LITERALS_ALIKE = [
    pytest.param(each, marks=[pytest.mark.thorough] if each in ALIKE else []) for each in FLAVOURS
]
NAMED_ALIKE = [
    pytest.param(*each.values, id=each.id, marks=[pytest.mark.thorough] if each.values[1] in ALIKE else [])
    for each in NAMED
]


# Another generator makes pydantic's modules, slowly: every third attack here, in `make test-real` all of them.
ATTACKS = [
    pytest.param(1, id="all", marks=pytest.mark.thorough),
    pytest.param(3, id="some"),
]


def some(attacks: list[str], models: str, of: int) -> list[str]:
    return attacks[::of] if models == "pydantic" else attacks


def pointer(text: str) -> str:
    from urllib.parse import quote

    return quote(text.replace("~", "~0").replace("/", "~1"))


def make(folder: Path, spec: Any, models: str = "msgspec", package: str = "hostile_api") -> Built:
    path = folder / "spec.json"
    path.write_text(json.dumps(spec))
    settings = Package(name=package, sources=(PathSource(path),), documentation=True, models=models)
    return build(settings, folder / "out")


def modules(built: Built) -> dict[str, ast.Module]:
    """Every generated module as a tree; other files must be readable as what they are."""
    found = {}
    for path, content in built.tree.files.items():
        if path.endswith(".py"):
            found[path] = ast.parse(content)
        elif path.endswith(".json"):
            json.loads(content)
    return found


class Blank(ast.NodeTransformer):
    """Takes the content out of string constants, and docstrings with them."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("") if isinstance(node.value, str) else node


def program(tree: ast.Module) -> str:
    return ast.dump(Blank().visit(tree))


def powers(tree: ast.Module) -> set[str]:
    """What a module can do: its kinds of nodes, what it calls, what it imports, what attributes it reads."""
    found = set()
    for node in ast.walk(tree):
        found.add(type(node).__name__)
        if isinstance(node, ast.Call):
            found.add(f"call {ast.unparse(node.func)}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.add(re.sub(r" (import|as) .*", "", ast.unparse(node)))
    return found


@cache
def harmless(models: str) -> tuple[dict[str, str], ...]:
    """The programs that harmless text gives: with a pattern, and with one that is none, which models leave out."""
    found = []
    for pattern in ("harmless", "("):
        with TemporaryDirectory() as folder:
            built = make(Path(folder), crd("harmless", pattern=pattern), models)
            found.append({path: program(tree) for path, tree in modules(built).items()})
    return tuple(found)


@cache
def harmless_powers(document: Callable[..., Any], models: str) -> frozenset[str]:
    """What modules can do whose names are two that cannot be attributes, and some that can."""
    found: set[str] = set()
    for name in ("from", "not a name", "simple", "someName", "$ref"):
        with TemporaryDirectory() as folder:
            for tree in modules(make(Path(folder), document("harmless", name), models)).values():
                found |= powers(tree)
    return frozenset(found)


def refused(built: Built) -> bool:
    """Whether the spec was refused, which is an answer too: then nothing may have been made of it."""
    if any(item.severity.value == "error" for item in built.diagnostics):
        assert not built.tree.files
        return True
    return False


def check_text(folder: Path, models: str, text: str) -> None:
    built = make(folder, crd(text), models)
    if not refused(built):
        assert {path: program(tree) for path, tree in modules(built).items()} in harmless(models)


def check_name(folder: Path, models: str, document: Callable[..., Any], text: str) -> None:
    built = make(folder, document("harmless", text), models)
    if refused(built):
        return
    for path, tree in modules(built).items():
        assert powers(tree) - harmless_powers(document, models) == set(), path
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                assert node.name.isascii() and not keyword.iskeyword(node.name)


@pytest.mark.parametrize("models", LITERALS_ALIKE)
@pytest.mark.parametrize("of", ATTACKS)
def test_known_attacks_are_data(tmp_path: Path, models: str, of: int) -> None:
    for payload in some(PAYLOADS, models, of):
        check_text(tmp_path, models, payload)


@pytest.mark.parametrize("models", FLAVOURS)
@given(text=texts)
@SETTINGS
def test_any_text_is_data(tmp_path: Path, models: str, text: str) -> None:
    check_text(tmp_path, models, text)


@pytest.mark.parametrize(("document", "models"), NAMED_ALIKE)
@pytest.mark.parametrize("of", ATTACKS)
def test_known_attacks_as_names_give_no_power(
    tmp_path: Path, models: str, document: Callable[..., Any], of: int
) -> None:
    words = ["class", "__init__", "__class__", "self", "model_config", "list", "str", "field"]
    for name in some([*PAYLOADS, *words], models, of):
        check_name(tmp_path, models, document, name)


@pytest.mark.parametrize("document", [crd, openapi], ids=["crd", "openapi"])
def test_modules_with_odd_names_can_be_imported(tmp_path: Path, document: Callable[..., Any]) -> None:
    names = [
        *PAYLOADS,
        "it's",
        'say "hi"',
        "tab\t",
        "back\\slash",
        "\x7f",
        "\x85",
        "é",
        "class",
        "__init__",
        "a.b/c",
    ]
    made = []
    for index, name in enumerate(names):
        built = make(tmp_path, document("harmless", name), package=f"hostile{index}_api")
        if not refused(built):
            write(built, tmp_path)
            made.append(built.package.name)
    assert 2 < len(made) < len(names)
    construct(tmp_path, *made)


@pytest.mark.parametrize(("document", "models"), NAMED)
@given(text=texts)
@SETTINGS
def test_any_name_gives_no_power(
    tmp_path: Path, models: str, document: Callable[..., Any], text: str
) -> None:
    check_name(tmp_path, models, document, text)


def test_the_comparison_can_fail() -> None:
    harmless = ast.parse('class A:\n    """x"""\n    a: str = "b"\n')
    assert program(harmless) == program(ast.parse('class A:\n    """y"""\n    a: str = "c"\n'))
    injected = ast.parse('class A:\n    """x"""\n    import os\n    a: str = "c"\n')
    assert program(harmless) != program(injected)
    assert powers(injected) - powers(harmless) == {"Import", "alias", "import os"}


def test_a_dump_does_not_steer_the_terminal(tmp_path: Path) -> None:
    marks = "\u202eradcifisrever\u2066hidden\u2069 \u200e\u061c\u2028\x9b\x1b[31m"
    (tmp_path / "spec.json").write_text(json.dumps(crd(marks, "na\u202eme")))
    code, out, err = kubewright("generate", tmp_path / "spec.json", "--package", "x_api", "--dump-ir")
    assert (code, err) == (0, "")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", out)
    [definition] = [each for each in yaml.safe_load(out)["definitions"] if each["name"].endswith(".Thing")]
    assert definition["value"]["doc"] == marks
