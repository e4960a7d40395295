"""No string of a spec becomes code, in any language; for Python ``test_hostile_text`` asks more.

What is made of hostile text is held against what is made of harmless text in the same places: with literals emptied and
comments taken out, the two must be the same program. Where text decides names, the two may differ in names alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kubewright.config import Package, PathSource
from kubewright.emit.registry import LANGUAGES
from kubewright.pipeline import build
from tests.compiler.test_hostile_text import PAYLOADS, crd, openapi, texts

OTHERS = [name for name in LANGUAGES if name != "python"]
SETTINGS = settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
ORDERS = [
    "@ts-ignore",
    "@ts-nocheck\n@ts-expect-error",
    "/ <reference path='x' />",
    "eslint-disable",
    "+kubebuilder:object:root=true",
    'x\n+kubebuilder:validation:XValidation:rule="true"',
    "  +optional\n\t+listType=set",
    "go:generate rm x",
    "+build ignore",
    "line x.go:1",
    "`+x+`",
    "*/ import 'fs'; /*",
    "---\nTODO: x",
]
# A literal, else a comment, whichever begins first.
_TOKENS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|/\*[\s\S]*?\*/|//[^\n]*|[A-Za-z_$][\w$]*|\s+|[\s\S]', re.ASCII
)
_MARKER = re.compile(r"//\s*\+(.*)")


def made(language: str, spec: Any) -> dict[str, str] | None:
    """The files by path, or nothing for a spec that is refused."""
    with TemporaryDirectory() as name:
        path = Path(name) / "spec.json"
        path.write_text(json.dumps(spec))
        options = (("module", "example.com/hostile"),) if language == "go" else ()
        package = Package(
            name="hostile",
            sources=(PathSource(path),),
            documentation=True,
            language=language,
            settings=options,
        )
        built = build(package, Path(name) / "out")
    if built.diagnostics.has_errors:
        assert not built.tree.files
        return None
    return {path: content.decode() for path, content in built.tree.files.items()}


def program(path: str, text: str, *, names: bool = True) -> str:
    """What a compiler reads of a file: no comments but markers, empty literals; without ``names`` each is alike."""
    if path.endswith(".json"):
        return _frame(json.loads(text), names)
    words = []
    for token in _TOKENS.findall(text):
        if token.startswith("//") and (marker := _MARKER.match(token)):
            words.append("+" + re.sub(r'"(?:[^"\\]|\\.)*"|`[^`]*`', '""', marker[1]).partition("=")[0])
        elif token[0] in '"`':
            words.append('""' if names else "name")
        elif not token.isspace() and not token.startswith(("//", "/*")):
            words.append("name" if not names and re.match(r"[A-Za-z_$]", token) else token)
    return " ".join(words)


def _frame(value: Any, names: bool) -> str:
    """JSON with its strings emptied."""
    if isinstance(value, dict):
        keys = [(key if names else "") + ":" + _frame(inner, names) for key, inner in value.items()]
        return "{" + ",".join(sorted(keys)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_frame(item, names) for item in value) + "]"
    return "" if isinstance(value, str) else json.dumps(value)


@cache
def harmless(language: str) -> tuple[dict[str, str], ...]:
    found = []
    for text, pattern in (("harmless", None), ("harmless", "(")):
        files = made(language, crd(text, pattern=pattern))
        assert files is not None
        found.append(
            {path: program(path, content, names=language != "go") for path, content in files.items()}
        )
    return tuple(found)


def check_text(language: str, text: str) -> None:
    files = made(language, crd(text))
    if files is None:
        return
    if language == "jsonschema":
        return  # every file was read as JSON, and a default there is text of the spec
    # In Go the words of an enum name constants.
    programs = {path: program(path, content, names=language != "go") for path, content in files.items()}
    assert programs in harmless(language)
    for content in files.values():
        assert all(c.isprintable() or c in "\n\t" for c in content)


@cache
def harmless_names(language: str, document: Callable[..., Any]) -> frozenset[str]:
    found = set()
    for name in ("from", "not a name", "simple", "someName", "Thing", "list"):
        for path, content in (made(language, document("harmless", name)) or {}).items():
            found.update(_statements(program(path, content, names=False)))
    return frozenset(found)


def _statements(text: str) -> set[str]:
    return {re.sub(r"(name ?)+", "name ", part).strip() for part in re.split(r"[{};,]", text)}


def check_name(language: str, document: Callable[..., Any], name: str) -> None:
    for path, content in (made(language, document("harmless", name)) or {}).items():
        assert _statements(program(path, content, names=False)) <= harmless_names(language, document)


@pytest.mark.parametrize("language", OTHERS)
def test_known_attacks_are_data(language: str) -> None:
    for payload in [*PAYLOADS, *ORDERS]:
        check_text(language, payload)


@pytest.mark.parametrize("language", OTHERS)
@given(text=texts)
@SETTINGS
def test_any_text_is_data(language: str, text: str) -> None:
    check_text(language, text)


@pytest.mark.parametrize("document", [crd, openapi], ids=["crd", "openapi"])
@pytest.mark.parametrize("language", [name for name in OTHERS if name != "jsonschema"])
def test_names_give_no_power(language: str, document: Callable[..., Any]) -> None:
    for name in [
        *PAYLOADS,
        *ORDERS,
        "class",
        "__proto__",
        "constructor",
        "type",
        "func",
        "interface",
        "default",
    ]:
        check_name(language, document, name)


def test_the_comparison_can_fail() -> None:
    assert program("a.ts", 'let a = "x"; // c') == program("a.ts", 'let a = "y"; /* d */')
    assert program("a.ts", 'let a = "x";') != program("a.ts", 'let a = "x"; rm();')
    assert program("a.go", "// +optional\nx") != program("a.go", "// optional\nx")
    assert _statements(program("a.ts", "a: b; c()", names=False)) == {"name : name", "name ( )"}
