"""The table of compiled modules: it names what there is, and nothing that mypyc cannot do.

``make test-compiled`` tests the compiled wheel itself.
"""

from __future__ import annotations

import ast
import builtins
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.environment import ROOT
from tests.packaging.outcomes import CASES, drawn, tell

sys.path.insert(0, str(ROOT / "build"))
import compiled

EXTENDABLE = {"object", "Exception", "ValueError", "KeyError", "TypeError", "LookupError", "RuntimeError"}
BUILT_IN = {name for name in dir(builtins) if isinstance(getattr(builtins, name), type)} - EXTENDABLE
C_WORDS = set(
    "auto break case char const continue default do double else enum extern float for goto if inline int long register "
    "restrict return short signed sizeof static struct switch typedef union unsigned void volatile while".split()
) - set(keyword.kwlist)


def name_of(node: ast.expr) -> str:
    node = node.value if isinstance(node, ast.Subscript) else node
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def cannot(tree: ast.Module) -> Iterator[str]:
    """What mypyc does not compile, or compiles to something else."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for place, each in enumerate(classes):
        bases = {name_of(base) for base in each.bases}
        if found := bases & BUILT_IN:
            yield f"{each.name} extends {found}"
        later = {other.name for other in classes[place:]}
        fields = [node for node in each.body if isinstance(node, ast.AnnAssign)]
        if "NamedTuple" in bases:
            for field in fields:
                if found := later & set(re.findall(r"\w+", ast.unparse(field.annotation))):
                    yield f"the NamedTuple {each.name} names {found}, a class that comes later"
        if "dataclass" in {name_of(decorator) for decorator in each.decorator_list}:
            for field in fields:
                if "ClassVar" in ast.unparse(field.annotation):
                    yield f"the dataclass {each.name} has a ClassVar: assign it without its type"
        for method in each.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__" and method.args.vararg:
                yield f"{each.name}.__init__ passes *{method.args.vararg.arg} on"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            generator = any(isinstance(inner, ast.Yield | ast.YieldFrom) for inner in ast.walk(node))
            if generator and any(isinstance(inner, ast.Delete) for inner in ast.walk(node)):
                yield f"{node.name} is a generator with del"
        if isinstance(node, ast.DictComp):
            if any(name_of(each.iter) == "reversed" for each in node.generators):
                yield f"line {node.lineno} goes through reversed() in the comprehension of a dict"


def test_the_table_names_what_there_is() -> None:
    for room in compiled.rooms():
        folder = compiled.PACKAGES / room["folder"]
        assert folder.is_dir()
        for path, reason in room["left_out"].items():
            assert (folder / path).is_file() and len(reason) > 10, path
        assert all((ROOT / tests).is_dir() for tests in room["tests"])
    assert len(compiled.modules()) == len(set(compiled.modules())) > 50


@pytest.mark.parametrize("path", compiled.modules(), ids=str)
def test_mypyc_can_compile(path: Path) -> None:
    assert [*cannot(ast.parse((compiled.PACKAGES / path).read_text()))] == []


@pytest.mark.parametrize(
    "source",
    [
        "class A(int): ...",
        "class A(NamedTuple):\n  b: B | None\nclass B: ...",
        "@dataclass(frozen=True)\nclass A(B):\n  c: ClassVar[str] = ''",
        "class A(B):\n  def __init__(self, *args): super().__init__(*args)",
        "def a(b):\n  del b\n  yield 1",
        "{a: 1 for a in reversed(b)}",
    ],
)
def test_what_it_cannot_is_seen(source: str) -> None:
    assert [*cannot(ast.parse(source))] != []


@pytest.mark.parametrize(
    "show, strategy", [pytest.param(case[0], case[2], id=case[0].__name__) for case in CASES]
)
def test_outcomes_are_compared_of_every_case(
    show: Any, strategy: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program that compares both builds still knows what it calls."""
    tell(show, drawn(3, strategy))
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_no_module_is_named_by_a_word_of_c() -> None:
    assert not {path.stem for path in compiled.modules()} & C_WORDS


C = """
char CPyDef_values___equal(PyObject *cpy_r_a) {
    return 1;
}
static PyObject *
values___A_new(PyTypeObject *type) {
}
tuple_T2II CPyDef_a___b(void) {
}
PyObject *CPyDef_a___c(void) {
}
char CPyDef_values___equal(PyObject *cpy_r_a);
"""


def test_every_function_asks_for_room_first() -> None:
    lines = compiled.guarded(C).splitlines()
    assert (
        lines[lines.index("char CPyDef_values___equal(PyObject *cpy_r_a) {") + 1] == "    KUBEWRIGHT_ROOM(2)"
    )
    assert lines[lines.index("PyObject *CPyDef_a___c(void) {") + 1] == "    KUBEWRIGHT_ROOM(NULL)"
    at = lines.index("tuple_T2II CPyDef_a___b(void) {")
    assert lines[at + 1] == "    KUBEWRIGHT_ROOM(((tuple_T2II){.f0 = CPY_INT_TAG}))"
    assert sum("KUBEWRIGHT_ROOM" in line for line in lines) == 3


@pytest.mark.parametrize(
    "source", ["", "short CPyDef_a___b(void) {\n}\n", "tuple_T2TO CPyDef_a___b(void) {\n}\n"]
)
def test_c_of_another_form_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"build/compiled\.py"):
        compiled.guarded(source)
