"""Code for declared rules: how a path becomes loops, conditions and a place to write to.

A rule becomes headers (``for …:``, ``if …:``) and statements below them. Rules that follow one another and
begin with the same headers share them, and an ``if`` that holds nothing but another ``if`` is joined with it, so
that the result reads as a person would have typed it. No text of a rule reaches the code except through
``literal``; every identifier comes from ``names``.
"""

from __future__ import annotations

import builtins
import keyword
import re
from dataclasses import dataclass, field

from kubewright.emit.code import names
from kubewright.emit.code.render import INDENT, literal
from kubewright.ir.paths import Items, Key, Path, Step
from kubewright.ir.rules import Condition

_TAKEN = frozenset(keyword.kwlist) | frozenset(dir(builtins))


@dataclass(slots=True)
class FunctionBody:
    """The statements of one function, in order, each under its headers. Where they change nothing (``pure``), what a
    header has looked up once is not looked up again."""

    pure: bool = False
    lines: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def add(self, headers: tuple[str, ...], *statements: str) -> None:
        """Adds statements below ``headers`` (which have no colon and no indentation)."""
        self.lines.append((headers, statements))

    def render(self, depth: int = 1) -> str:
        """The body as code."""
        return "\n".join(_render(self.lines, depth, self.pure))


_BINDING = re.compile(r"if \((\w+) := (?:struct|lookup)\(.*\)\) is not None$")


def _render(
    lines: list[tuple[tuple[str, ...], tuple[str, ...]]], depth: int, pure: bool = False
) -> list[str]:
    out: list[str] = []
    pad = INDENT * depth
    index = 0
    bound: set[str] = set()
    while index < len(lines):
        headers, statements = lines[index]
        if not headers:
            out.extend(pad + statement for statement in statements)
            index += 1
            continue
        group = []
        while index < len(lines) and lines[index][0][:1] == headers[:1]:
            group.append((lines[index][0][1:], lines[index][1]))
            index += 1
        header, inner = headers[0], group
        if pure and (binding := _BINDING.match(header)):
            if header in bound:
                header = f"if {binding[1]} is not None"
            bound.add(headers[0])
        while (
            header.startswith("if ")
            and all(rest and rest[0].startswith("if ") and rest[0] == inner[0][0][0] for rest, _ in inner)
            and inner[0][0]
        ):
            header = f"{header} and {inner[0][0][0][3:]}"
            inner = [(rest[1:], statements) for rest, statements in inner]
        out.append(f"{pad}{header}:")
        out.extend(_render(inner, depth + 1, pure))
    return out


@dataclass(slots=True)
class Scope:
    """The variables of one function: one for each place that is walked to."""

    root: str
    uses: set[str] = field(default_factory=set)
    _variables: dict[tuple[Step, ...], str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._taken.add(self.root)
        self._variables[()] = self.root

    def use(self, function: str) -> str:
        """Notes that the module needs ``function`` of ``apimachinery.kinds.fields``."""
        self.uses.add(function)
        return function

    def variable(self, steps: tuple[Step, ...]) -> str:
        """The variable of the place that ``steps`` lead to."""
        if steps not in self._variables:
            words = [names.attribute_name(step.name) for step in steps if isinstance(step, Key)]
            name = words[-1] if words else "value"
            if steps and not isinstance(steps[-1], Key):
                name = singular(name)
            parents = words[:-1]
            while name in self._taken or name in _TAKEN:
                name = f"{parents.pop()}_{name}" if parents else f"{name}_"
            self._taken.add(name)
            self._variables[steps] = name
        return self._variables[steps]

    def anchor(self, path: Path) -> tuple[Step, ...]:
        """The steps up to the innermost list item or map value of ``path``."""
        for index in range(len(path.steps), 0, -1):
            if not isinstance(path.steps[index - 1], Key):
                return path.steps[:index]
        return ()

    def walk(
        self, steps: tuple[Step, ...], start: tuple[Step, ...] = (), create: bool = False
    ) -> tuple[str, ...]:
        """The headers that lead from ``start`` to the objects at ``steps``."""
        headers: list[str] = []
        here, pending = start, list[str]()
        for index, step in enumerate(steps[len(start) :], len(start)):
            if isinstance(step, Key):
                pending.append(step.name)
                continue
            owner = self._reach(headers, here, steps[: index - 1], pending[:-1], create)
            function = self.use("items" if isinstance(step, Items) else "entries")
            here = steps[: index + 1]
            variable = self.variable(here)
            headers.append(f"for {variable} in {function}({owner}, {literal(pending[-1])})")
            if isinstance(step, Items) and step.field:
                headers.append(f"if {variable}.get({literal(step.field)}) {equals(step.value)}")
            pending = []
        self._reach(headers, here, steps, pending, create)
        return tuple(headers)

    def _reach(
        self,
        headers: list[str],
        here: tuple[Step, ...],
        there: tuple[Step, ...],
        keys: list[str],
        create: bool,
    ) -> str:
        """The variable of the object under ``keys``; adds the header that binds it."""
        if not keys:
            return self.variable(here)
        function = self.use("created" if create else "struct")
        variable = self.variable(there)
        arguments = ", ".join(literal(key) for key in keys)
        headers.append(f"if ({variable} := {function}({self.variable(here)}, {arguments})) is not None")
        return variable

    def read(self, path: Path, anchor: tuple[Step, ...], bound: tuple[Step, ...] = ()) -> str:
        """An expression for the value at ``path``; ``None`` where there is none. ``bound`` leads to an object that
        has a variable here."""
        keys = path.keys or ()
        owner = self.root if path.absolute else self.variable(anchor)
        if bound and len(keys) > 1 and (() if path.absolute else anchor) + path.steps[:-1] == bound:
            return f"{self.variable(bound)}.get({literal(keys[-1])})"
        if not keys:
            return owner
        if len(keys) == 1:
            return f"{owner}.get({literal(keys[0])})"
        return f"{self.use('lookup')}({owner}, {', '.join(literal(key) for key in keys)})"

    def condition(self, condition: Condition, anchor: tuple[Step, ...], bound: tuple[Step, ...] = ()) -> str:
        """An expression that says whether ``condition`` holds."""
        value = (
            f"given_{condition.path.text}" if condition.given else self.read(condition.path, anchor, bound)
        )
        argument = condition.argument
        if condition.test == "above":
            return f"{self.use('is_above')}({value}, {argument})"
        if condition.test == "longer":
            return f"{self.use('is_longer')}({value}, {argument})"
        if condition.test == "equals":
            return f"{value} {equals(argument)}"
        if condition.test == "not":
            return f"{value} {differs(argument)}"
        if condition.test in ("in", "not-in"):
            word = "in" if condition.test == "in" else "not in"
            return f"{value} {word} {literal(tuple(argument))}"
        if condition.test == "set":
            return f"{'' if argument else 'not '}{self.use('is_set')}({value})"
        if condition.test == "empty":
            return f"not {value}" if argument else value
        if condition.test == "matches":
            return f"{self.use('matches')}({value}, {literal(str(argument))})"
        if condition.test in ("only", "any-of"):
            function = self.use("has_only" if condition.test == "only" else "has_any")
            return f"{function}({value}, {literal(tuple(argument))})"
        return f"{'' if argument else 'not '}{self.use('has_latest_tag')}({value})"


def equals(value: object) -> str:
    """``== value``, or ``is value`` for booleans and null."""
    return f"is {value}" if value is None or isinstance(value, bool) else f"== {literal(value)}"


def differs(value: object) -> str:
    """``!= value``, or ``is not value`` for booleans and null."""
    return f"is not {value}" if value is None or isinstance(value, bool) else f"!= {literal(value)}"


def singular(name: str) -> str:
    """What one of several is called: ``containers`` → ``container``."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith(("sses", "xes", "ches")):
        return name[:-2]
    return name[:-1] if name.endswith("s") and not name.endswith("ss") else f"{name}_item"


PREDICATES = frozenset(
    {"has_any", "has_latest_tag", "has_only", "is_above", "is_longer", "is_set", "matches"}
)
"""Those functions that ``apimachinery.kinds.predicates`` has; unless they name their module the others are of
``fields``."""


def imports(uses: set[str]) -> list[str]:
    """The import lines for the functions a module uses, each by its name or as ``module.name``."""
    wanted: dict[str, set[str]] = {}
    for use in uses:
        home, _, name = use.rpartition(".")
        wanted.setdefault(home or ("predicates" if name in PREDICATES else "fields"), set()).add(name)
    return [
        f"from apimachinery.kinds.{home} import {', '.join(sorted(wanted[home], key=_isort_key))}"
        for home in sorted(wanted)
    ]


def _isort_key(name: str) -> tuple[bool, str]:
    return (not name[:1].isupper(), name)
