"""MutatingAdmissionPolicy (KEP-3962): CEL expressions that change an object before it is validated.

A mutation is an apply configuration (an ``Object`` that is merged as server-side apply merges, without owners) or a
JSON patch. Mutations see what those before them made. A policy that says ``IfNeeded`` is evaluated once more if it or
another one changed the object after that. The result is read as the kind again: unknown fields go, defaults are filled
in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from apimachinery.kinds.admissionregistration.policy_expressions import (
    CONFIGURATION,
    PATCHES,
    BudgetSpent,
    Evaluation,
    Expression,
    ExpressionFault,
)
from apimachinery.kinds.hooks import Json
from apimachinery.merge import json_patch
from apimachinery.merge.apply import FieldOwnership
from apimachinery.merge.errors import MergeError
from apimachinery.merge.json_patch import JsonPatchFailed
from apimachinery.meta.errors import ApiError
from apimachinery.server.admission.interface import Operation, Plugin
from apimachinery.server.admission.policies.patching import (
    is_of_own_kind,
    patch_fault,
    shown,
    take,
)
from apimachinery.server.admission.policies.policies import (
    Match,
    Policies,
    Policy,
    PolicyBinding,
    PolicyFailure,
    conditions_hold,
    denied,
    evaluation_of,
)
from apimachinery.server.admission.reinvocation import Reinvocation
from apimachinery.server.catalog.served import Served
from apimachinery.wire.json import decode, encode

Merge = Callable[[Json, Any], Json]
_PLUGIN = "MutatingAdmissionPolicy"


class MutatingPolicies(Plugin):
    """Applies the mutating policies in force."""

    def __init__(self, policies: Policies) -> None:
        self._policies = policies

    def admit(self, operation: Operation) -> None:
        """Changes ``operation.obj`` in place. Raises ApiError 403."""
        if operation.obj is None or operation.verb not in ("CREATE", "UPDATE"):
            return
        if self._policies.is_idle:
            return
        memory = Reinvocation.of(operation, _PLUGIN)
        denials: list[ApiError] = []
        # Which policies are about the object is asked before any of them changes it.
        for policy, binding, served in [*self._policies.about(operation)]:
            failures = [*self._failures(policy, binding, served, operation, memory)]
            if not policy.ignores_failures:
                denials += [_denial(policy, binding, failure, operation) for failure in failures]
        memory.leave()
        if denials:
            # What failed first is the answer, its causes are all that failed.
            denials[0].causes = tuple(cause for denial in denials for cause in denial.causes)
            raise denials[0]

    def _failures(
        self,
        policy: Policy,
        binding: PolicyBinding,
        served: Served,
        operation: Operation,
        memory: Reinvocation,
    ) -> Iterator[PolicyFailure]:
        """Changes the object; what could not be done."""
        try:
            every = self._policies.params(policy, binding, operation)
        except PolicyFailure as failure:
            yield failure
            return
        for params in every:
            try:
                yield from self._apply(Match(policy, binding, served, params), operation, memory)
            except PolicyFailure as failure:
                yield failure

    def _apply(self, match: Match, operation: Operation, memory: Reinvocation) -> Iterator[PolicyFailure]:
        """One mutation after another; one that fails leaves the object to the next as it is."""
        obj, policy, key = operation.obj, match.policy, (match.policy.name, match.binding.name)
        assert obj is not None
        if policy.fault:
            raise PolicyFailure(policy.fault)
        values = self._policies.values(match, operation, obj, {})
        # In the second round conditions are asked of all: one that fails then refuses the object, too.
        if not conditions_hold(policy, values) or not memory.may_call(key):
            return
        start: Json = decode(encode(shown(operation)))
        changed = start
        willing = policy.spec.get("reinvocationPolicy") == "IfNeeded"
        merge = partial(_merged_in, operation)
        for mutation in policy.spec.get("mutations") or ():
            values["object"] = before = changed
            try:
                changed = mutated(policy, mutation, changed, evaluation_of(policy, values), merge)
            except PolicyFailure as failure:
                yield failure
                continue
            memory.called(key, changed=changed != before, willing=willing, for_itself=True)
        if changed != start:
            take(operation, changed, start)


def _denial(policy: Policy, binding: PolicyBinding, failure: PolicyFailure, operation: Operation) -> ApiError:
    text = f"policy '{policy.name}' with binding '{binding.name}' denied request: {failure}"
    reason = "Forbidden" if str(failure).startswith("failed to configure") else "Invalid"
    return denied(operation, text, 403, reason, names_object=False)


def mutation_of(policy: Policy, mutation: Json) -> Expression:
    """The expression of a mutation. Raises PolicyFailure."""
    is_patch = mutation.get("patchType") == "JSONPatch"
    stated = mutation.get("jsonPatch" if is_patch else "applyConfiguration") or {}
    try:
        return policy.compiler.compile(stated.get("expression") or "", PATCHES if is_patch else CONFIGURATION)
    except ExpressionFault as fault:
        raise PolicyFailure(str(fault)) from None


def mutated(policy: Policy, mutation: Json, obj: Json, evaluation: Evaluation, merge: Merge) -> Json:
    """What a mutation makes of an object; ``merge`` merges an apply configuration. Raises PolicyFailure."""
    value = _value(mutation_of(policy, mutation), evaluation)
    return _patched(obj, value) if mutation.get("patchType") == "JSONPatch" else merge(obj, value)


def _merged_in(operation: Operation, obj: Json, configuration: Any) -> Json:
    if not is_of_own_kind(operation):
        what = f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"
        raise PolicyFailure(
            f"error applying patch: failed to convert patch object to typed object: no corresponding type for {what}"
        )
    served = operation.target.served
    return merged(obj, configuration, served.ownership(""), served.api_version, served.kind)


def _value(expression: Expression, evaluation: Evaluation) -> Any:
    try:
        outcome = evaluation.run(expression)
    except BudgetSpent:
        raise PolicyFailure("mutation failed due to running out of cost budget") from None
    if outcome.error is not None:
        raise PolicyFailure(f"expression '{expression.source}' resulted in error: {outcome.error}")
    return outcome.value


def _patched(obj: Json, operations: Any) -> Json:
    try:
        patched: Json = json_patch.apply(obj, operations)
    except JsonPatchFailed as failed:
        # A test that does not hold means that the patch is not for this object.
        if operations[failed.operation].get("op") == "test":
            return obj
        raise PolicyFailure(f"JSON Patch: {patch_fault(obj, operations, failed)}") from None
    except MergeError as error:
        raise PolicyFailure(f"JSON Patch: {error}") from None
    return patched


def _without_nulls(value: Any) -> Any:
    """A value of CEL as the merge sees it there: null is the number of its enumeration's one value."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return 0 if value is None else value


def merged(obj: Json, configuration: Any, ownership: FieldOwnership, api_version: str, kind: str) -> Json:
    """``obj`` with the fields of an apply configuration, lists merged by their keys, nobody's ownership asked.
    Raises PolicyFailure."""
    applied = {**_without_nulls(configuration), "apiVersion": api_version, "kind": kind}
    if "metadata" not in applied:
        applied["metadata"] = {}
    live: Json = decode(encode(obj))
    owners = live.get("metadata", {}).pop("managedFields", None)
    try:
        found: Json = ownership.apply(live, applied, "admission", force=True, now="")
    except MergeError as error:
        _, is_form, why = str(error).partition("failed to create typed patch object ")
        why = why.partition("): ")[2] if is_form else str(error)
        raise PolicyFailure(
            f"error applying patch: failed to convert patch object to typed object: {why}"
        ) from None
    metadata = found.setdefault("metadata", {})
    metadata.pop("managedFields", None)
    if owners is not None:
        metadata["managedFields"] = owners
    return found
