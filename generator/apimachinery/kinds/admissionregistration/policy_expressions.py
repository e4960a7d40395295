"""The CEL environment of admission policies, and their expressions as programs.

Variables (KEP-3488): ``object`` and ``oldObject`` (plain JSON; null where there is none), ``request`` (attributes of an
AdmissionRequest), ``params``, ``namespaceObject``, ``variables`` and ``authorizer``. ``variables`` are computed when
first used, at most once for each evaluation. Mutating policies also know the types ``Object…``, whose fields are free,
and ``JSONPatch``.

Costs: one expression may cost what any expression may; all of a policy for one binding and parameter together
``POLICY_BUDGET``, its match conditions a quarter of that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from apimachinery.cel.checking.checker import TypeProvider
from apimachinery.cel.environment import Environment, Outcome, Program
from apimachinery.cel.libraries.authorizer import Authorizer, ResourceCheck
from apimachinery.cel.libraries.jsonpatch import jsonpatch
from apimachinery.cel.values import types as t
from apimachinery.cel.values.errors import CelError, CompileError, EvalError
from apimachinery.cel.values.types import Type
from apimachinery.meta.release import current_release

POLICY_BUDGET = 10_000_000
CONDITIONS_BUDGET = POLICY_BUDGET // 4
VARIABLES = "kubernetes.variables"
PATCH = t.object_type("JSONPatch")
OBJECT = t.object_type("Object")
_TEXTS = t.map_of(t.STRING, t.STRING)


def _record(type_name: str, /, **fields: Type) -> tuple[str, dict[str, Type]]:
    return type_name, fields


_GVK = t.object_type("kubernetes.GroupVersionKind")
_GVR = t.object_type("kubernetes.GroupVersionResource")
_USER = t.object_type("kubernetes.UserInfo")
REQUEST = t.object_type("kubernetes.AdmissionRequest")
NAMESPACE = t.object_type("kubernetes.Namespace")
_RECORDS: dict[str, dict[str, Type]] = dict(
    (
        _record(_GVK.name, group=t.STRING, version=t.STRING, kind=t.STRING),
        _record(_GVR.name, group=t.STRING, version=t.STRING, resource=t.STRING),
        _record(
            _USER.name,
            username=t.STRING,
            uid=t.STRING,
            groups=t.list_of(t.STRING),
            extra=t.map_of(t.STRING, t.list_of(t.STRING)),
        ),
        _record(
            REQUEST.name,
            kind=_GVK,
            resource=_GVR,
            subResource=t.STRING,
            requestKind=_GVK,
            requestResource=_GVR,
            requestSubResource=t.STRING,
            name=t.STRING,
            namespace=t.STRING,
            operation=t.STRING,
            userInfo=_USER,
            dryRun=t.BOOL,
            options=t.DYN,
        ),
        _record(
            NAMESPACE.name,
            metadata=t.object_type("kubernetes.NamespaceMetadata"),
            spec=t.object_type("kubernetes.NamespaceSpec"),
            status=t.object_type("kubernetes.NamespaceStatus"),
        ),
        _record(
            "kubernetes.NamespaceMetadata",
            name=t.STRING,
            generateName=t.STRING,
            namespace=t.STRING,
            labels=_TEXTS,
            annotations=_TEXTS,
            UID=t.STRING,
            creationTimestamp=t.TIMESTAMP,
            deletionGracePeriodSeconds=t.INT,
            deletionTimestamp=t.TIMESTAMP,
            generation=t.INT,
            resourceVersion=t.STRING,
            finalizers=t.list_of(t.STRING),
        ),
        _record("kubernetes.NamespaceSpec", finalizers=t.list_of(t.STRING)),
        _record(
            "kubernetes.NamespaceStatus",
            conditions=t.list_of(t.object_type("kubernetes.NamespaceCondition")),
            phase=t.STRING,
        ),
        _record(
            "kubernetes.NamespaceCondition",
            status=t.STRING,
            type=t.STRING,
            lastTransitionTime=t.TIMESTAMP,
            message=t.STRING,
            reason=t.STRING,
        ),
        ("JSONPatch", {"op": t.STRING, "path": t.STRING, "from": t.STRING, "value": t.DYN}),
    )
)


class PolicyTypes:
    """The object types of policies; ``variables`` are those declared so far."""

    def __init__(self, variables: Mapping[str, Type], *, mutates: bool = False) -> None:
        self._records = {**_RECORDS, VARIABLES: variables}
        self._mutates = mutates

    def find_type(self, type_name: str) -> Type | None:
        if self._mutates and (type_name == PATCH.name or _is_object(type_name)):
            return t.object_type(type_name)
        return t.object_type(type_name) if type_name in self._records and type_name != PATCH.name else None

    def field_type(self, type_name: str, field: str) -> Type | None:
        """See ``TypeProvider``. Fields of an ``Object`` are free."""
        if _is_object(type_name):
            return t.DYN
        found = self._records.get(type_name, {}).get(field)
        if found is None and type_name == PATCH.name:
            # kube-apiserver's provider gives an unknown field of a patch a type without a name.
            return t.object_type("")
        return found

    def construct(self, type_name: str, fields: dict[str, Any]) -> Any:
        """An object literal: plain JSON."""
        return fields


def _is_object(type_name: str) -> bool:
    return type_name == "Object" or type_name.startswith("Object.")


@cache
def _environment(has_params: bool, version: str, asks: bool) -> Environment:
    variables = {
        "object": t.DYN,
        "oldObject": t.DYN,
        "request": REQUEST,
        "namespaceObject": NAMESPACE,
    }
    if asks:
        variables["authorizer"] = t.object_type(Authorizer.type_name)
        variables["authorizer.requestResource"] = t.object_type(ResourceCheck.type_name)
    if has_params:
        variables["params"] = t.DYN
    return Environment.kubernetes(version).extend(variables=variables)


class ExpressionFault(Exception):
    """An expression that cannot be used; the text is what follows the value in a validation error. ``internal``: it is
    right but for what its constants come to, which counts as an internal error."""

    def __init__(self, text: str, *, internal: bool = False) -> None:
        super().__init__(text)
        self.internal = internal


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression and its text, as messages show it."""

    source: str
    program: Program


BOOL = (t.BOOL,)
STRING = (t.STRING,)
TEXT_OR_NULL = (t.STRING, t.NULL)
PATCHES = (t.list_of(PATCH),)
CONFIGURATION = (OBJECT,)


class Compiler:
    """Compiles the expressions of one policy. ``declare`` its variables first, in order."""

    def __init__(
        self,
        *,
        has_params: bool,
        mutates: bool = False,
        typed: Mapping[str, Type] | None = None,
        types: Callable[[PolicyTypes], TypeProvider] | None = None,
    ) -> None:
        """``typed`` are types of variables that else have any, and ``types`` knows the fields of these types."""
        self._environments = {
            asks: _environment(has_params, current_release(), asks).extend(
                functions=[jsonpatch()] if mutates else [], variables=dict(typed or {})
            )
            for asks in (True, False)
        }
        self._provider = types
        self._mutates = mutates
        self._types: dict[str, Type] = {}
        self.variables: dict[str, Expression] = {}
        self._compiled: dict[tuple[str, tuple[Type, ...] | None, bool], Expression] = {}

    def declare(self, name: str, source: str) -> None:
        """Adds a variable, which sees those before it. Raises ExpressionFault; to those after it, it may then be
        anything."""
        self._types.setdefault(name, t.DYN)
        # ``variables`` exists as soon as a policy declares one, also for the first, for which it has no field yet.
        known = {key: of for key, of in self._types.items() if key != name}
        expression = self._compile(source, None, known=known)
        self.variables[name] = expression
        self._types[name] = expression.program.result_type

    def compile(self, source: str, wanted: tuple[Type, ...] | None, *, asks: bool = True) -> Expression:
        """An expression of one of the types ``wanted`` (any where None), compiled once; ``asks`` where it may ask the
        authorizer, which expressions of messages may not. Raises ExpressionFault.

        All variables must be declared by now.
        """
        expression = self._compiled.get((source, wanted, asks))
        if expression is None:
            expression = self._compiled[source, wanted, asks] = self._compile(source, wanted, asks=asks)
        return expression

    def _compile(
        self,
        source: str,
        wanted: tuple[Type, ...] | None,
        *,
        known: Mapping[str, Type] | None = None,
        asks: bool = True,
    ) -> Expression:
        own = PolicyTypes(dict(self._types) if known is None else known, mutates=self._mutates)
        env = self._environments[asks].extend(provider=own if self._provider is None else self._provider(own))
        # Expressions that change objects see ``variables`` even where a policy declares none.
        if self._types or wanted in (PATCHES, CONFIGURATION):
            env = env.extend(variables={"variables": t.object_type(VARIABLES)})
        try:
            node = env.check(source)
            program_type = node.type or t.DYN
            if wanted is not None and program_type not in wanted:
                if len(wanted) > 1:
                    words = " ".join("null_type" if of == t.NULL else str(of) for of in wanted)
                    raise ExpressionFault(f"must evaluate to one of [{words}] but got {program_type}")
                raise ExpressionFault(f"must evaluate to {wanted[0]} but got {program_type}")
            return Expression(source, env.plan(source, node))
        except CompileError as error:
            raise ExpressionFault(f"compilation failed: {error}") from None
        except CelError as error:
            raise ExpressionFault(f"program instantiation failed: {error}", internal=True) from None


class Variables:
    """``variables`` while a policy is evaluated: each computed when first read."""

    type_name = VARIABLES

    def __init__(self, expressions: Mapping[str, Expression], run: Callable[[Expression], Outcome]) -> None:
        self._expressions = expressions
        self._run = run
        self._known: dict[str, Outcome] = {}

    def __getitem__(self, name: str) -> Any:
        """The value. Raises EvalError in the words of the variable that failed."""
        outcome = self._known.get(name)
        if outcome is None:
            outcome = self._known[name] = self._run(self._expressions[name])
        if outcome.error is not None:
            raise EvalError(f'composited variable "{name}" fails to evaluate: {outcome.error}')
        return outcome.value

    def __contains__(self, name: str) -> bool:
        """For ``has``: whether the policy declares the variable. Raises EvalError as reading it does."""
        if name not in self._expressions:
            return False
        self[name]
        return True


class BudgetSpent(Exception):
    """A policy has cost more than all of its expressions together may."""


class Evaluation:
    """One object before one policy with one parameter: the values of its variables, and what it has cost."""

    def __init__(self, variables: Mapping[str, Expression], values: Mapping[str, Any], budget: int) -> None:
        self._values = {**values, "variables": Variables(variables, self._outcome)}
        self._left = budget

    def run(self, expression: Expression) -> Outcome:
        """The value or the error. Raises BudgetSpent."""
        outcome = self._outcome(expression)
        if self._left < 0:
            raise BudgetSpent
        return outcome

    def _outcome(self, expression: Expression) -> Outcome:
        outcome = expression.program.run(self._values)
        self._left -= outcome.cost
        return outcome
