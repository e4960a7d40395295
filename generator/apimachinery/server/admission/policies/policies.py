"""What validating and mutating policies share: which ones there are now, and what their expressions see.

Policies and bindings are read from the watch cache when one of them has changed, so a policy is in force with the first
request after the write that made it. A policy without a binding does nothing. Internal writes of the server, which
have no user, meet no policies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apimachinery.access.control import Access
from apimachinery.kinds.admissionregistration.policy_expressions import (
    BOOL,
    CONDITIONS_BUDGET,
    POLICY_BUDGET,
    BudgetSpent,
    Compiler,
    Evaluation,
    Expression,
    ExpressionFault,
)
from apimachinery.kinds.hooks import Json
from apimachinery.meta.errors import ApiError, Cause, forbidden
from apimachinery.meta.field_errors import aggregate
from apimachinery.meta.selectors import selector_of
from apimachinery.server.admission.interface import Operation
from apimachinery.server.admission.objects import check_readable
from apimachinery.server.admission.policies.matching import (
    Candidates,
    MatchConstraints,
    NamespaceLabels,
    is_exempt,
)
from apimachinery.server.admission.policies.request_values import request_values, shown_namespace
from apimachinery.server.catalog.catalog import Catalog
from apimachinery.server.catalog.served import Served
from apimachinery.storage.interface import Event
from apimachinery.storage.watch_cache import WatchCache

GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class PolicyBinding:
    """A binding: ``resources`` narrows the policy's own constraints."""

    name: str
    spec: Json
    resources: MatchConstraints | None


class Policy:
    """A policy as compiled: constraints, conditions and variables. ``fault`` says why it cannot be used."""

    def __init__(self, name: str, spec: Json, *, mutates: bool) -> None:
        self.name = name
        self.spec = spec
        self.ignores_failures = spec.get("failurePolicy") == "Ignore"
        self.constraints = MatchConstraints(spec.get("matchConstraints") or {})
        self.param_kind: Json | None = spec.get("paramKind")
        self.compiler = Compiler(has_params=self.param_kind is not None, mutates=mutates)
        self.conditions: list[Expression] = []
        self.fault = ""
        try:
            for variable in spec.get("variables") or ():
                self.compiler.declare(variable["name"], variable["expression"])
            plain = Compiler(has_params=self.param_kind is not None)
            self.conditions = [
                plain.compile(condition["expression"], BOOL)
                for condition in spec.get("matchConditions") or ()
            ]
        except ExpressionFault as fault:
            self.fault = str(fault)


@dataclass(frozen=True, slots=True)
class Match:
    """A policy and a binding that are about an operation, with one parameter; ``served`` is the version matched."""

    policy: Policy
    binding: PolicyBinding
    served: Served
    params: Json | None


class PolicyFailure(Exception):
    """A policy that cannot be evaluated; the text is what follows \"denied request: \"."""


class Policies:
    """The policies of one kind that are in force. ``kind`` is ``validating`` or ``mutating``."""

    def __init__(self, kind: str, catalog: Catalog, cache: WatchCache, access: Access) -> None:
        self._mutates = kind == "mutating"
        self._plural = f"{kind}admissionpolicies"
        self._prefixes = (f"/{GROUP}/{self._plural}/", f"/{GROUP}/{kind}admissionpolicybindings/")
        self._catalog = catalog
        self._cache = cache
        self._access = access
        self.namespaces = NamespaceLabels(cache)
        self._compiled: dict[str, tuple[int, Policy]] = {}
        self._bound: list[tuple[Policy, list[PolicyBinding]]] = []
        self._stale = True
        self._candidates: Candidates[tuple[Policy, list[PolicyBinding]]] = Candidates(
            catalog, lambda bound: bound[0].constraints
        )
        for prefix in self._prefixes:
            cache.resource(prefix).listen(prefix, self._changed)

    def _changed(self, event: Event) -> None:
        self._stale = True

    def in_force(self) -> list[tuple[Policy, list[PolicyBinding]]]:
        """All bound policies with their bindings, by name."""
        if self._stale:
            self._bound = self._read()
            self._candidates.replace(self._bound)
            self._stale = False
        return self._bound

    @property
    def is_idle(self) -> bool:
        """Whether no operation meets a policy."""
        return not self.in_force() and not self._cache.hides

    def _read(self) -> list[tuple[Policy, list[PolicyBinding]]]:
        policies = self._catalog.find(GROUP, "v1", self._plural)
        bindings = self._catalog.find(GROUP, "v1", self._plural.removesuffix("policies") + "policybindings")
        if policies is None or bindings is None:
            return []
        by_policy: dict[str, list[PolicyBinding]] = {}
        for record in self._cache.resource(bindings.prefix).snapshot(bindings.prefix).records:
            obj = bindings.read(record)
            spec = obj.get("spec") or {}
            narrowed = spec.get("matchResources")
            binding = PolicyBinding(
                obj["metadata"]["name"], spec, MatchConstraints(narrowed) if narrowed else None
            )
            by_policy.setdefault(spec.get("policyName") or "", []).append(binding)
        compiled: dict[str, tuple[int, Policy]] = {}
        for record in self._cache.resource(policies.prefix).snapshot(policies.prefix).records:
            name = record.key[len(policies.prefix) :]
            if name not in by_policy:
                continue
            known = self._compiled.get(name)
            if known is None or known[0] != record.revision:
                spec = policies.read(record).get("spec") or {}
                known = (record.revision, Policy(name, spec, mutates=self._mutates))
            compiled[name] = known
        self._compiled = compiled
        return [(policy, by_policy[name]) for name, (_, policy) in sorted(compiled.items())]

    def about(self, operation: Operation) -> Iterator[tuple[Policy, PolicyBinding, Served]]:
        """The policies and bindings that are about an operation. Raises ApiError 500 where one of them cannot be read:
        it might forbid the operation."""
        if operation.target.user is None or is_exempt(operation):
            return
        if self._cache.hides:
            for prefix in self._prefixes:
                check_readable(self._cache, prefix)
        self.in_force()
        versions = self._candidates.versions
        for policy, bindings in self._candidates.of(operation):
            served = policy.constraints.match(operation, self.namespaces.of, versions(operation))
            if served is None:
                continue
            for binding in bindings:
                if binding.resources is not None:
                    narrowed = binding.resources.match(operation, self.namespaces.of, versions(operation))
                    if narrowed is None:
                        continue
                yield policy, binding, served

    def params(self, policy: Policy, binding: PolicyBinding, operation: Operation) -> list[Json | None]:
        """The parameters to evaluate a policy with, one after another. Raises PolicyFailure."""
        kind = policy.param_kind
        if kind is None:
            return [None]
        served = self._param_resource(kind)
        if served is None:
            raise PolicyFailure(
                "failed to configure policy: failed to find resource referenced by paramKind: "
                f"'{kind.get('apiVersion')}, Kind={kind.get('kind')}'"
            )
        reference = binding.spec.get("paramRef")
        if reference is None:
            return [None]
        namespace = ""
        if served.namespaced:
            namespace = reference.get("namespace") or operation.target.namespace
            if not namespace:
                raise PolicyFailure(
                    "failed to configure binding: cannot use namespaced paramRef in policy binding that matches "
                    "cluster-scoped resources"
                )
        elif reference.get("namespace"):
            raise PolicyFailure(
                "failed to configure binding: paramRef.namespace must not be provided for a "
                "cluster-scoped `paramKind`"
            )
        found = self._find_params(served, namespace, reference)
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise PolicyFailure(
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return [*found]

    def _param_resource(self, kind: Json) -> Served | None:
        api_version, name = kind.get("apiVersion"), kind.get("kind")
        for served in self._catalog:
            if served.api_version == api_version and served.kind == name and served.prefix:
                return served
        return None

    def _find_params(self, served: Served, namespace: str, reference: Json) -> list[Json]:
        cache = self._cache.resource(served.prefix)
        name = reference.get("name")
        scope = served.key(namespace, name) if name else served.scope(namespace)
        if hidden := self._cache.unreadable_in(scope):
            raise PolicyFailure(f"failed to configure binding: {hidden[0]} cannot be read")
        if name:
            record = cache.get(scope)
            return [] if record is None else [served.read(record)]
        selector = selector_of(reference.get("selector") or {})
        objects = (served.read(record) for record in cache.snapshot(scope).records)
        return [obj for obj in objects if selector.matches(obj["metadata"].get("labels") or {})]

    def values(
        self, match: Match, operation: Operation, obj: Json | None, known: dict[str, dict[str, Any]]
    ) -> dict[str, Any]:
        """What the expressions of a policy see of an operation whose object is now ``obj``. ``known`` is what others
        saw of the same object, by version, and is added to."""
        values = known.get(match.served.api_version)
        if values is None:
            values = known[match.served.api_version] = self._common(match.served, operation, obj)
        return {**values, "params": match.params} if match.policy.param_kind is not None else dict(values)

    def _common(self, served: Served, operation: Operation, obj: Json | None) -> dict[str, Any]:
        values = request_values(operation, served, obj, self._access)
        target = operation.target
        if target.served.namespaced:
            values["namespaceObject"] = shown_namespace(self.namespaces.object(target.namespace))
        elif target.served.plural == "namespaces" and not target.served.group:
            values["namespaceObject"] = shown_namespace(obj if obj is not None else operation.old)
        return values


def conditions_hold(policy: Policy, values: Mapping[str, Any]) -> bool:
    """Whether all match conditions hold; one that is false decides, whatever others fail with.

    Raises PolicyFailure.
    """
    # Conditions are evaluated before anybody looks for the namespace.
    values = {**values, "namespaceObject": None}
    evaluation = Evaluation({}, values, CONDITIONS_BUDGET)
    failed = []
    for condition in policy.conditions:
        try:
            outcome = evaluation.run(condition)
        except BudgetSpent:
            raise PolicyFailure("match conditions exceeded the cost budget") from None
        if outcome.error is not None:
            failed.append(f"expression '{condition.source}' resulted in error: {outcome.error}")
        elif outcome.value is not True:
            return False
    if failed:
        raise PolicyFailure(aggregate(failed))
    return True


def evaluation_of(policy: Policy, values: Mapping[str, Any]) -> Evaluation:
    """A fresh evaluation of a policy's own expressions."""
    return Evaluation(policy.compiler.variables, values, POLICY_BUDGET)


def denied(operation: Operation, text: str, code: int, reason: str, *, names_object: bool = True) -> ApiError:
    """The refusal of a policy."""
    served = operation.target.served
    error = forbidden(served.plural, served.said_group, operation.said_name, text, (Cause("", text),))
    error.code, error.reason = code, reason
    if not names_object:
        error.message = text
    return error
