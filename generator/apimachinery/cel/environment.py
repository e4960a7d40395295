"""The environment an expression is compiled in: variables, functions, macros, types; and the program it becomes.

    env = Environment.kubernetes("1.36").extend(variables={"self": types.INT})
    program = env.compile("self > 1")
    program.evaluate({"self": 3})        # True

``Environment.standard`` has the CEL specification alone, ``Environment.kubernetes`` what that release's
kube-apiserver has, ``Environment.everything`` all libraries of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from apimachinery.cel.checking.checker import Checker, NoTypes, TypeProvider, candidates
from apimachinery.cel.checking.literal_checks import literal_faults
from apimachinery.cel.libraries.declarations import Function, Library, merge
from apimachinery.cel.running.planner import Planner
from apimachinery.cel.running.steps import FIRST_SLOT
from apimachinery.cel.running.trace import TracedPart, TracingPlanner
from apimachinery.cel.syntax import macros as m
from apimachinery.cel.syntax.ast import Node
from apimachinery.cel.syntax.macros import Expander, MacroKey
from apimachinery.cel.syntax.parser import Positions, parse
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CompileError, CostLimitError, EvalError
from apimachinery.cel.values.types import Type
from apimachinery.cel.values.values import MISSING, NO_OVERLOAD, TypeValue

NO_LIMIT = 2**64
PER_CALL_LIMIT = 1_000_000
"""What one evaluation may cost in kube-apiserver."""

_TYPE_NAMES: dict[str, Type] = {
    "bool": t.BOOL,
    "int": t.INT,
    "uint": t.UINT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "bytes": t.BYTES,
    "list": t.list_of(t.DYN),
    "map": t.map_of(t.DYN, t.DYN),
    "null_type": t.NULL,
    "type": t.TYPE,
    "google.protobuf.Timestamp": t.TIMESTAMP,
    "google.protobuf.Duration": t.DURATION,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """An evaluation that may have failed: ``error`` is None where ``value`` counts."""

    value: Any
    error: EvalError | None
    cost: int


class Program:
    """A compiled expression. ``result_type`` is what the checker says; ``node`` the checked tree."""

    __slots__ = ("_blank", "_cost", "_limit", "_names", "_run", "node", "result_type", "source")

    def __init__(self, source: str, node: Node, planner: Planner, limit: int):
        self.source = source
        self.node = node
        self.result_type = node.type or t.DYN
        step = planner.plan(node)
        self._run = step.run
        self._cost = step.cost
        self._limit = limit
        self._names = [(name, planner.slot_of[name]) for name in planner.variables]
        self._blank: list[Any] = [self._cost, limit] + [MISSING] * (planner.slots - FIRST_SLOT)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """The value. Raises EvalError, and CostLimitError where it costs more than the environment allows."""
        frame = self._blank[:]
        for name, slot in self._names:
            if name in variables:
                frame[slot] = variables[name]
        try:
            value = self._run(frame)
        except (TypeError, AttributeError, KeyError, ValueError, IndexError, OverflowError):
            # A value that is not what its declared type says.
            raise EvalError(NO_OVERLOAD) from None
        if frame[0] > self._limit:
            raise CostLimitError
        return value

    def run(self, variables: Mapping[str, Any]) -> Outcome:
        """The value or the error, and what was spent."""
        frame = self._blank[:]
        for name, slot in self._names:
            if name in variables:
                frame[slot] = variables[name]
        error: EvalError | None = None
        value = None
        try:
            value = self._run(frame)
        except EvalError as caught:
            error = caught
        except (TypeError, AttributeError, KeyError, ValueError, IndexError, OverflowError):
            error = EvalError(NO_OVERLOAD)
        if frame[0] > self._limit:
            error = CostLimitError()
        return Outcome(value if error is None else None, error, frame[0])


@dataclass(frozen=True)
class Environment:
    """What names mean. Immutable; ``extend`` makes a wider one."""

    functions: Mapping[str, Function]
    macros: Mapping[MacroKey, Expander]
    variables: Mapping[str, Type] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    provider: TypeProvider = field(default_factory=NoTypes)
    container: str = ""
    mixed_literals: bool = True
    check_literals: bool = False
    optional_syntax: bool = True
    folds: bool = True
    limit: int = NO_LIMIT
    version: str = ""

    @classmethod
    def of(
        cls, libraries: Iterable[Library], macro_sets: Iterable[Mapping[MacroKey, Expander]], **options: Any
    ) -> Environment:
        """An environment of ``libraries`` and macros."""
        libraries = list(libraries)
        macros: dict[MacroKey, Expander] = {}
        for each in macro_sets:
            macros.update(each)
        names = dict(_TYPE_NAMES)
        for library in libraries:
            names.update({of.name: of for of in library.types.values()})
            if "optional.of" in library.functions:
                names[t.OPTIONAL_NAME] = t.optional_of(t.DYN)
        return cls(
            functions=merge(libraries),
            macros=macros,
            variables={name: t.type_of(of) for name, of in names.items()},
            constants={name: TypeValue(name) for name in names},
            **options,
        )

    @classmethod
    def standard(cls) -> Environment:
        """The CEL specification alone."""
        return _standard()

    @classmethod
    def everything(cls) -> Environment:
        """All libraries of this package."""
        return _everything()

    @classmethod
    def kubernetes(cls, version: str = "1.36") -> Environment:
        """What kube-apiserver of that release offers in CRDs and admission policies."""
        return _kubernetes(version)

    def extend(
        self,
        *,
        variables: Mapping[str, Type] | None = None,
        provider: TypeProvider | None = None,
        functions: Iterable[Library] = (),
        container: str | None = None,
        limit: int | None = None,
    ) -> Environment:
        """A copy with more variables and functions, or another provider, container or limit."""
        more = merge([_as_library(self.functions), *functions]) if functions else self.functions
        return replace(
            self,
            variables={**self.variables, **(variables or {})},
            provider=provider or self.provider,
            functions=more,
            container=self.container if container is None else container,
            limit=self.limit if limit is None else limit,
        )

    def parse(self, source: str) -> Node:
        """The tree of ``source``; raises CompileError."""
        return parse(source, self.macros, self.optional_syntax)

    def check(self, source: str) -> Node:
        """The tree of ``source`` with all types; raises CompileError."""
        node = self.parse(source)
        checker = Checker(self.variables, self.functions, self.provider, self.container, self.mixed_literals)
        checker.check(node)
        faults = checker.faults
        if not faults and self.check_literals:
            faults = literal_faults(node)
        if faults:
            positions = Positions(source)
            issues = [positions.issue(offset, message) for offset, message in faults]
            raise CompileError(sorted(issues, key=lambda i: (i.line, i.column)), source)
        return node

    def compile(self, source: str) -> Program:
        """Parse, check and plan ``source``; raises CompileError, or EvalError where constants do not compute."""
        return self.plan(source, self.check(source))

    def plan(self, source: str, node: Node) -> Program:
        """The program of a checked tree; EvalError where a constant part of it cannot be computed."""
        planner = Planner(
            self.functions, self.constants, self._wire_name, construct=self._construct, folds=self.folds
        )
        return Program(source, node, planner, self.limit)

    def trace(self, source: str) -> tuple[Program, list[TracedPart]]:
        """The program of an expression that writes down what its parts give; raises as ``compile`` does."""
        node = self.check(source)
        planner = TracingPlanner(self.functions, self.constants, self._wire_name, self._construct)
        return Program(source, node, planner, self.limit), planner.parts

    def compile_unchecked(self, source: str) -> Program:
        """Parse and plan without types: every name is looked for when it is met."""
        node = self.parse(source)
        planner = Planner(
            self.functions, self.constants, self._wire_name, resolve=self._resolve, construct=self._construct
        )
        return Program(source, node, planner, self.limit)

    def _resolve(self, name: str) -> str | None:
        for candidate in candidates(self.container, name):
            if candidate in self.variables:
                return candidate
        return None

    @property
    def _wire_name(self) -> Callable[[str, str], str]:
        found = getattr(self.provider, "wire_name", None)
        return found if found is not None else lambda type_name, field: field

    @property
    def _construct(self) -> Callable[[str, dict[str, Any]], Any] | None:
        return getattr(self.provider, "construct", None)


def _as_library(functions: Mapping[str, Function]) -> Library:
    library = Library("own")
    library.functions = dict(functions)
    return library


@cache
def _standard() -> Environment:
    from .libraries.standard import cross_type_comparisons, standard

    return Environment.of([standard(), cross_type_comparisons()], [m.STANDARD], optional_syntax=False)


@cache
def _everything() -> Environment:
    from .libraries.catalog import ALL_LIBRARIES, ALL_MACROS

    return Environment.of([make() for make in ALL_LIBRARIES], ALL_MACROS)


@cache
def _kubernetes(version: str) -> Environment:
    from .libraries.catalog import kubernetes_libraries, kubernetes_macros

    return Environment.of(
        kubernetes_libraries(version),
        kubernetes_macros(version),
        check_literals=True,
        limit=PER_CALL_LIMIT,
        version=version,
    )
